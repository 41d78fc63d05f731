//! Whether and where somebody serves: health, several addresses, coordinators elsewhere, what a standby needs.

mod served;

use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use served::{Served, modes, serving_at};

#[test]
fn health_is_one_line_and_an_exit_code_and_needs_no_token_on_the_own_machine() {
    let (served, said) = Served::start(&[]);
    let address = serving_at(&said);
    let health = |more: &[&str]| {
        let output = served.togl(&[&["health"], more].concat());
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let serving = (0, format!("serving at {address}\n"), String::new());
    assert_eq!(health(&[]), serving);
    assert_eq!(health(&["--coordinator", &address, "--state", "/nowhere"]), serving);
    let (code, out, err) = health(&["--coordinator", &format!("127.0.0.1:9,{address}")]);
    assert_eq!((code, &out), (0, &serving.1), "{err}");
    assert!(
        err.contains("127.0.0.1:9 does not answer (") && err.contains(&format!("going on with {address}")),
        "{err}"
    );
    let (code, _, err) = health(&["--coordinator", "127.0.0.1:9,127.0.0.1:10"]);
    assert_eq!(code, 3, "{err}");
    assert!(
        err.contains("127.0.0.1:9 does not answer (") && err.contains("127.0.0.1:10 does not answer ("),
        "{err}"
    );
    let (code, _, err) = health(&["--coordinator", "127.0.0.1:9,nonsense"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("`nonsense` is not an address; use HOST:PORT"), "{err}");

    assert!(served.stop().success());
}

#[test]
fn what_waits_is_told_from_what_serves_and_a_note_of_who_has_died_is_not_believed() {
    let (served, _) = Served::start(&[]);
    let state = served.state.clone();
    let health = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_togl"));
        command.arg("health").args(more).env("TOGL_STATE", state.path()).env_remove("TOGL_COORDINATOR");
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    assert!(served.stop().success());
    assert_eq!(health(&["--or-standby"]).0, 3);
    let note = |pid: u32| {
        let text = format!(r#"{{"address":"0.0.0.0:7447","pid":{pid}}}"#);
        std::fs::write(state.path().join("standby.json"), text).unwrap();
    };
    note(std::process::id());
    assert_eq!(health(&[]).0, 3);
    let waiting = format!("waiting to take over, then at 0.0.0.0:7447 (process {})\n", std::process::id());
    assert_eq!(health(&["--or-standby"]), (0, waiting));
    note(u32::MAX);
    assert_eq!(health(&["--or-standby"]).0, 3);
}

#[test]
fn several_addresses_are_tried_in_turn_by_those_who_read_and_those_who_change() {
    let (served, said) = Served::start(&[]);
    let address = serving_at(&said);
    let listed = served.togl(&["sweeps", "--coordinator", &format!("127.0.0.1:9, {address}")]);
    let err = String::from_utf8(listed.stderr).unwrap();
    assert!(listed.status.success(), "{err}");
    assert!(err.contains("127.0.0.1:9 does not answer ("), "{err}");
    assert!(served.stop().success());
}

#[test]
fn a_coordinator_that_begins_with_a_bundle_has_its_ca_and_knows_its_tokens() {
    let state = Rc::new(tempfile::tempdir().unwrap());
    let bundle = |folder: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_togl"));
        command.args(["token", "bundle"]).arg(folder).env("TOGL_STATE", "/nowhere");
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let (code, said) = bundle(state.path());
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("wrote ca.key, ca.pem, operator.token, tokens.json, worker.token to "), "{said}");
    assert!(said.contains("kubectl create secret generic togl-worker --from-file=worker.token="), "{said}");
    assert!(!said.contains("togl1."), "no secret is shown: {said}");
    let mut found = Vec::new();
    modes(state.path(), &mut found);
    assert!(found.len() == 5 && found.iter().all(|(_, mode)| mode & 0o077 == 0), "{found:?}");
    let (code, said) = bundle(state.path());
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("is not empty; nothing was changed in it")
            && said.contains("hint: name another folder"),
        "{said}"
    );

    let token = std::fs::read_to_string(state.path().join("operator.token")).unwrap();
    let copy = state.path().join("copied");
    std::fs::write(&copy, &token).unwrap();
    let (served, said) = Served::on(state, &[]);
    let address = serving_at(&said);
    // Over TLS, because a coordinator that is named is believed for its CA.
    let listed = served.togl(&["sweeps", "--coordinator", &address, "--token-file", copy.to_str().unwrap()]);
    assert!(listed.status.success(), "{}", String::from_utf8(listed.stderr).unwrap());
    assert!(served.stop().success());
}

#[test]
fn only_a_store_that_several_can_reach_has_a_standby() {
    let state = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_togl"));
    command.args(["serve", "--standby", "--listen", "127.0.0.1:0"]).env("TOGL_STATE", state.path());
    let output = command.env_remove("TOGL_STORE").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("only a PostgreSQL store can be taken over") && said.contains("--store postgres://"),
        "{said}"
    );
}
