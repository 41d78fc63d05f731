//! The command as a user meets it: help, exit codes and messages of the real binary. What needs a worker is in
//! `deploy/end-to-end`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

use insta::assert_snapshot;

/// Runs `togl` with a state directory of its own and without the user's settings.
fn togl(arguments: &[&str]) -> Output {
    let state = tempfile::tempdir().unwrap();
    Command::new(env!("CARGO_BIN_EXE_togl"))
        .args(arguments)
        .current_dir(state.path())
        .env("TOGL_STATE", state.path().join("state"))
        .env_remove("TOGL_TOKEN")
        .env_remove("TOGL_STORE")
        .env_remove("TOGL_COORDINATOR")
        .env_remove("RUST_LOG")
        .output()
        .unwrap()
}

/// Exit code, standard output and standard error, with the temporary folder hidden.
fn seen(arguments: &[&str]) -> String {
    let output = togl(arguments);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    let shown = format!("exit {}\n{out}{err}", output.status.code().unwrap());
    let hide = |word: &str| if word.contains("/state") { "STATE".to_owned() } else { word.to_owned() };
    shown.lines().map(|line| line.split(' ').map(hide).collect::<Vec<_>>().join(" ") + "\n").collect()
}

#[test]
fn the_help_names_every_verb_and_the_exit_codes() {
    assert_snapshot!("help", seen(&["--help"]));
}

#[test]
fn a_file_that_is_not_there_is_bad_input() {
    assert_snapshot!("no_such_file", seen(&["run", "nosuch.yaml"]));
}

#[test]
fn a_misspelt_verb_is_bad_usage() {
    assert_snapshot!("misspelt_verb", seen(&["sumbit", "x.yaml"]));
}

#[test]
fn without_a_coordinator_the_hint_says_how_to_get_one() {
    assert_snapshot!("no_coordinator", seen(&["sweeps"]));
}

#[test]
fn an_address_that_nobody_answers_at_is_unreachable() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "secret").unwrap();
    let token = file.path().to_str().unwrap();
    let output = togl(&["sweeps", "--coordinator", "127.0.0.1:9", "--token-file", token]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("no coordinator answers at 127.0.0.1:9"), "{said}");
    assert!(!said.contains("secret"));
}

#[test]
fn a_table_without_a_store_is_bad_input() {
    assert_snapshot!("no_store", seen(&["table", "anything"]));
}

#[test]
fn listening_beyond_this_machine_without_encryption_must_be_asked_for() {
    assert_snapshot!("plaintext", seen(&["serve", "--listen", "0.0.0.0:0"]));
}

#[test]
fn data_goes_to_standard_output_and_talk_to_standard_error() {
    let output = togl(&["version", "--format", "json"]);
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["togl"], env!("CARGO_PKG_VERSION"));
    assert!(output.stderr.is_empty());
}

#[test]
fn regular_graphs_give_the_published_error_counts() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/graph6");
    if !std::path::Path::new(folder).exists() {
        eprintln!("skipped: {folder} is not there");
        return;
    }
    let published = [
        ("reg3_n12", 712),
        ("reg3_n14", 26745),
        ("reg3_n16", 1_757_385),
        ("reg4_n10", 229),
        ("reg4_n11", 4832),
        ("reg4_n12", 170_814),
    ];
    for (name, errors) in published {
        let file = format!("{folder}/{name}.g6");
        let output = togl(&["expressivity", &file, "--format", "json"]);
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(said[0]["betti_errors"], errors, "{name}");
        assert_eq!(
            said[0]["wl_errors"], said[0]["pairs"],
            "WL[1] cannot tell regular graphs of one degree apart"
        );
        assert_eq!(
            said[0]["persistence_errors"], said[0]["pairs"],
            "a constant filtration has no persistence"
        );
    }
}
