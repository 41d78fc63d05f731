//! Bad input and what is said about it, as a user meets it: in the user's words, at once, and within bounds, whatever a path
//! turns out to be.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod desk;

use std::fs;
use std::process::Command;

use desk::Desk;

#[test]
fn all_mistakes_of_a_sweep_file_are_told_at_once_with_file_and_line() {
    let desk = Desk::new();
    let yaml = "version: 1\nname: x\nbase: {dataset: cycles, depth: \"4\"}\ngird: {}\nsplits: [0, one]\n";
    fs::write(desk.path("x.yaml"), yaml).unwrap();
    let said = desk.togl(&["plan", "x.yaml"]);
    assert_eq!(said.code, 2);
    insta::assert_snapshot!(said.err, @r#"
    error: x.yaml:3:32: base.depth: the quoted text "4" (leave the quotes away) does not fit; expected a whole number from 0 to 64
    x.yaml:4:1: unknown key `gird`; did you mean `grid`?
    x.yaml:5:13: splits[1]: expected a whole number from 0 to 4294967295, found `one`
    "#);
}

#[test]
fn options_that_are_no_times_and_no_numbers_are_told_what_to_write() {
    let desk = Desk::new();
    let said = desk.togl(&["token", "create", "--role", "viewer", "--expires", "soon"]);
    assert!(
        said.err.contains("`soon` is not a time; write a number and its unit, such as 12h, 30d or 1y"),
        "{}",
        said.err
    );
    let said = desk.togl(&["prioritise", "first", "high"]);
    assert!(said.err.contains("`high` is not a whole number"), "{}", said.err);
    let said = desk.togl(&["prioritise", "first", "-5"]);
    assert!(said.err.contains("no coordinator serves"), "a number passes: {}", said.err);
}

/// Runs `togl` with at most this much memory, in a folder.
fn within(megabytes: u32, desk: &Desk, arguments: &[&str]) -> (i32, String) {
    let output = Command::new("sh")
        .args(["-c", &format!("ulimit -v {}; exec \"$0\" \"$@\"", megabytes * 1024)])
        .arg(env!("CARGO_BIN_EXE_togl"))
        .args(arguments)
        .current_dir(desk.path(""))
        .env("TOGL_STATE", desk.path("state"))
        .env_remove("RUST_LOG")
        .output()
        .unwrap();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_path_that_never_ends_is_refused_and_fills_no_memory() {
    let desk = Desk::new();
    for arguments in [
        &["plan", "/dev/urandom"][..],
        &["run", "/dev/zero"],
        &["sweeps", "--coordinator", "127.0.0.1:9", "--token-file", "/dev/zero"],
        &["sweeps", "--coordinator", "127.0.0.1:9", "--identity", "/dev/zero", "--token-file", "token"],
        &["plot", "--from", "/dev/zero", "--figure", "filtrations", "--out", "x.svg"],
        &["import", "wandb", "/dev/zero", "--out", "x.parquet"],
    ] {
        fs::write(desk.path("token"), "togl1.operator.x").unwrap();
        let (code, said) = within(4096, &desk, arguments);
        assert_eq!(code, 2, "{arguments:?}: {said}");
        assert!(
            said.contains("it has more than") || said.contains("a device or a pipe"),
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn a_data_set_whose_file_is_a_pipe_is_refused_instead_of_waited_for() {
    let desk = Desk::new();
    for set in ["MUTAG", "MINE"] {
        let folder = desk.path("data").join(set);
        fs::create_dir_all(&folder).unwrap();
        let pipes = ["A", "graph_indicator"].map(|file| folder.join(format!("{set}_{file}.txt")));
        assert!(Command::new("mkfifo").args(&pipes).status().unwrap().success());
        let said = desk.togl(&["data", "check", set, "--data-dir", "data"]);
        assert_eq!(said.code, 2, "{}", said.err);
        assert!(said.err.contains("this is not a file, but a device or a pipe"), "{}", said.err);
    }
}

#[test]
fn settings_on_the_command_line_make_a_plan_of_their_own_and_misspelt_ones_get_a_hint() {
    let desk = Desk::new();
    for (name, depths) in [("a", "[1, 2]"), ("b", "[3]")] {
        let yaml =
            format!("version: 1\nname: {name}\nbase: {{dataset: cycles}}\ngrid: {{depth: {depths}}}\n");
        fs::write(desk.path(&format!("{name}.yaml")), yaml).unwrap();
    }
    let said = desk.togl(&["plan", "a.yaml", "b.yaml", "depth=4", "lr=1e-3,1e-2", "--format", "json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let names = said.out.matches("+depth=4+lr=1e-3,1e-2\"").count();
    assert_eq!((names, said.out.matches("\"trials\": 2,").count()), (2, 2), "{}", said.out);
    let said = desk.togl(&["plan", "a.yaml", "dpeth=4"]);
    assert_eq!((said.code, said.err.as_str()), (2, "error: no setting `dpeth`; did you mean `depth`?\n"));
    let said = desk.togl(&["plan", "depth=4"]);
    assert!(said.err.contains("no sweep file"), "{}", said.err);
    let said = desk.togl(&["plan", "a.yaml", "b.yaml", "--name", "c"]);
    assert!(said.err.contains("--name is for one file"), "{}", said.err);
}

#[test]
fn a_split_that_the_data_set_does_not_have_is_refused_before_anything_runs() {
    let desk = Desk::new();
    let yaml = "version: 1\nname: x\nbase: {dataset: MUTAG}\nsplits: [0, 4, 5]\n";
    fs::write(desk.path("x.yaml"), yaml).unwrap();
    for verb in ["plan", "run"] {
        let said = desk.togl(&[verb, "x.yaml"]);
        assert_eq!(said.code, 2, "{verb}: {}", said.err);
        assert!(
            said.err.starts_with("error: split 5 of MUTAG does not exist\n\n  hint: valid splits are"),
            "{}",
            said.err
        );
    }
    assert_eq!(desk.togl(&["plan", "x.yaml", "splits=0,4"]).code, 0);
    assert_eq!(desk.togl(&["plan", "x.yaml", "dataset=cycles"]).code, 0, "a seed may be any number");
}

#[test]
fn data_that_is_missing_where_nothing_may_be_fetched_is_refused_at_once() {
    let desk = Desk::new();
    fs::write(desk.path("x.yaml"), "version: 1\nname: x\nbase: {dataset: MUTAG}\n").unwrap();
    let run = |verb: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_togl"))
            .args([verb, "x.yaml", "--data-dir", "empty"])
            .current_dir(desk.path(""))
            .env("TOGL_STATE", desk.path("state"))
            .env("TOGL_OFFLINE", "true")
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run("run");
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("MUTAG is not in empty, and TOGL_OFFLINE forbids to fetch it"), "{said}");
    let (code, said) = run("plan");
    assert_eq!(code, 0, "{said}");
    assert!(said.starts_with("note: MUTAG is not in empty"), "{said}");
}
