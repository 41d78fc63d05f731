//! A coordinator as its user meets it: `togl serve`, and what other commands say while it runs, is killed and comes back.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod served;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use served::{Served, modes};

#[cfg(target_os = "linux")]
#[test]
fn a_coordinator_takes_as_many_connections_as_the_system_allows() {
    let state = tempfile::tempdir().unwrap();
    let mut child = Command::new("sh")
        .args(["-c", "ulimit -Sn 64; exec \"$0\" serve --until-stdin-closes --listen 127.0.0.1:0"])
        .arg(env!("CARGO_BIN_EXE_togl"))
        .env("TOGL_STATE", state.path())
        .env_remove("RUST_LOG")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    said.find(|line| line.as_ref().unwrap().contains("togl-worker join")).unwrap().unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let [soft, hard] = [3, 4].map(|place| files.split_whitespace().nth(place).unwrap());
    assert_eq!(soft, hard, "{files}");
    assert_ne!(soft, "64", "{files}");

    // Whoever started it is gone: it puts its store in order and ends.
    drop(child.stdin.take());
    said.find(|line| line.as_ref().unwrap().contains("everything acknowledged is stored")).unwrap().unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_token_lives_from_create_to_revoke_while_the_coordinator_runs() {
    let (served, said) = Served::start(&[]);
    assert!(said.contains("--token-file FILE` and a copy of ") && !said.contains("togl1."), "{said}");
    let made = served.togl(&["token", "create", "--role", "viewer", "--name", "wall", "--expires", "30d"]);
    let token = String::from_utf8(made.stdout).unwrap();
    let file = served.state.path().join("viewer");
    std::fs::write(&file, &token).unwrap();
    let with_it = |verb: &[&str]| {
        let arguments: Vec<&str> =
            verb.iter().copied().chain(["--token-file", file.to_str().unwrap()]).collect();
        served.togl(&arguments).status.code().unwrap()
    };
    assert_eq!(
        (with_it(&["sweeps"]), with_it(&["cancel", "x"])),
        (0, 2),
        "a viewer reads and changes nothing"
    );
    let listed = String::from_utf8(served.togl(&["token", "list", "--format", "csv"]).stdout).unwrap();
    let id = listed.lines().find(|line| line.contains(",viewer,wall,")).unwrap().split(',').next().unwrap();
    assert!(
        listed.lines().count() == 4 && !listed.contains(token.trim().split('.').nth(2).unwrap()),
        "{listed}"
    );
    assert!(served.togl(&["token", "revoke", id]).status.success());
    assert_eq!(with_it(&["sweeps"]), 2);
    assert_eq!(served.togl(&["token", "revoke", id]).status.code(), Some(1));
    assert!(served.stop().success(), "a coordinator that is asked to stop does so well");
}

#[test]
fn a_second_coordinator_on_the_same_state_is_told_of_the_first() {
    let (served, said) = Served::start(&[]);
    let address =
        said.lines().find(|line| line.starts_with("serving ")).unwrap().rsplit_once(" at ").unwrap().1;
    for listen in [address, "127.0.0.1:0"] {
        let second = served.togl(&["serve", "--listen", listen]);
        let told = String::from_utf8(second.stderr).unwrap();
        assert_eq!(second.status.code(), Some(2), "{told}");
        assert!(told.contains(&format!("{}", served.child.id())), "the process that serves it: {told}");
        assert!(
            told.contains(&format!("the running coordinator at {address} with `togl submit FILE`")),
            "{told}"
        );
    }
    assert!(served.stop().success());
}

#[test]
fn a_file_with_the_name_of_another_sweep_asks_before_it_drops_folds_and_keeps_the_priority() {
    let (served, _) = Served::start(&[]);
    let submit = |depths: &str, more: &[&str]| {
        let file = served.state.path().join("x.yaml");
        let grid = format!("version: 1\nname: x\nbase: {{dataset: cycles}}\ngrid: {{depth: {depths}}}\n");
        std::fs::write(&file, grid).unwrap();
        let said = served.togl(&[&["submit", file.to_str().unwrap()], more].concat());
        (said.status.code().unwrap(), String::from_utf8(said.stderr).unwrap())
    };
    let sweeps = || String::from_utf8(served.togl(&["sweeps", "--format", "csv"]).stdout).unwrap();
    assert_eq!(submit("[1, 2, 3]", &[]).0, 0);
    assert!(served.togl(&["prioritise", "x", "7"]).status.success());
    let (code, said) = submit("[3, 4]", &[]);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("1 fold is new, 1 is kept, 2 are no longer in it") && said.contains("--yes"),
        "{said}"
    );
    assert!(sweeps().contains("\nx,active,3,3,3,0,0,0,7\n"), "nothing was changed: {}", sweeps());
    assert_eq!(submit("[3, 4]", &["--yes"]).0, 0);
    assert!(sweeps().contains("\nx,active,2,2,2,0,0,0,7\n"), "{}", sweeps());
    let (code, said) = submit("[3, 4]", &["depth=5,6", "seeds=0,1"]);
    assert_eq!(code, 0, "{said}");
    assert!(sweeps().contains("\n\"x+depth=5,6+seeds=0,1\",active,2,4,4,"), "{}", sweeps());
    assert!(served.stop().success());
}

/// Runs a command of `sh` on a terminal on which somebody types; exit code and what stood there then.
fn on_a_terminal(state: &Path, line: &str, typed: &str) -> (i32, String) {
    let mut script = Command::new("script");
    script.args(["-qefc", &format!("{} {line}", env!("CARGO_BIN_EXE_togl")), "/dev/null"]);
    script.env("TOGL_STATE", state).env_remove("TOGL_TOKEN").env_remove("TOGL_COORDINATOR");
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap().replace('\r', ""))
}

#[test]
fn whoever_sits_at_a_terminal_is_asked_before_folds_are_dropped_or_deleted() {
    if Command::new("script").arg("--version").stdout(Stdio::null()).status().is_err() {
        return eprintln!("skipped: there is no `script` to play a terminal");
    }
    let (served, _) = Served::start(&[]);
    let state = served.state.clone();
    let write = |depths: &str| {
        let grid = format!("version: 1\nname: x\nbase: {{dataset: cycles}}\ngrid: {{depth: {depths}}}\n");
        std::fs::write(state.path().join("x.yaml"), grid).unwrap();
    };
    let submit = format!("submit {}/x.yaml", state.path().display());
    write("[1, 2, 3]");
    assert_eq!(on_a_terminal(state.path(), &submit, "").0, 0, "nobody is asked about a new sweep");
    write("[3, 4]");
    let (code, said) = on_a_terminal(state.path(), &submit, "n\n");
    assert!(said.contains("1 fold is new, 1 is kept, 2 are no longer in it"), "{said}");
    assert!(
        code == 1 && said.contains("change the sweep? [y/N]") && said.contains("nothing was changed"),
        "{said}"
    );
    let (code, said) = on_a_terminal(state.path(), &submit, "y\n");
    assert!(
        code == 0 && said.contains("x: 2 trials, 2 folds, 0 done already; 1 new, 2 no longer in it"),
        "{said}"
    );
    assert!(served.stop().success());

    let (code, said) = on_a_terminal(state.path(), "delete x", "\n");
    assert!(code == 1 && said.contains("Delete them? [y/N]"), "{said}");
    let (code, said) = on_a_terminal(state.path(), "delete x", "y\n");
    assert!(code == 0 && said.contains("deleted x"), "{said}");
}

#[test]
fn a_watch_outlives_its_coordinator_and_says_why_nothing_happens() {
    let (served, _) = Served::start(&[]);
    let file = served.state.path().join("s.yaml");
    std::fs::write(&file, "version: 1\nname: s\nbase: {dataset: necklaces}\nsplits: [0, 1]\n").unwrap();
    let submitted = String::from_utf8(served.togl(&["submit", file.to_str().unwrap()]).stderr).unwrap();
    assert!(submitted.contains("nothing runs: no worker is connected"), "{submitted}");
    let mut watch = served.command(&["watch", "s"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(watch.stderr.take().unwrap()).lines().map(Result::unwrap);
    let first = said.next().unwrap();
    assert!(first.starts_with("s: trials 0/1, folds 0/2; nothing runs: no worker is connected"), "{first}");
    let state = served.state.clone();
    drop(served); // kills it
    let away = said.next().unwrap();
    assert!(away.contains("is away since ") && away.ends_with("UTC; trying again"), "{away}");
    let (served, _) = Served::on(state, &[]);
    assert_eq!(said.next().unwrap(), first, "it is back");
    assert!(served.togl(&["cancel", "s"]).status.success());
    let last = said.last().unwrap();
    assert_eq!(last, "s is cancelled; make its table with `togl table s`");
    assert!(watch.wait().unwrap().success());
    assert!(served.stop().success());
}

#[test]
fn a_history_says_who_did_what_and_why() {
    let (served, _) = Served::start(&[]);
    let file = served.state.path().join("s.yaml");
    std::fs::write(&file, "version: 1\nname: s\nbase: {dataset: necklaces}\nsplits: [0, 1]\n").unwrap();
    assert!(served.togl(&["submit", file.to_str().unwrap(), "--reason", "for the paper"]).status.success());
    let made = served.togl(&["token", "create", "--role", "operator", "--name", "Ada"]);
    let token = served.state.path().join("ada");
    std::fs::write(&token, made.stdout).unwrap();
    let ada = token.to_str().unwrap();
    let done = served.togl(&["pause", "s", "--reason", "naïve \u{1b}[2J", "--token-file", ada]);
    assert!(done.status.success());
    assert!(served.togl(&["prioritise", "s", "-5", "--token-file", ada]).status.success());
    let history = |options: &[&str]| {
        let output = served.togl(&[&["history", "--fields", "by,act,detail,reason"], options].concat());
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let told = "by,act,detail,reason\nmade with the state directory,submit,\"2 folds, 2 new, 0 no longer in it\",for the paper\n\
                Ada,pause,,naïve \u{1b}[2J\nAda,prioritise,priority -5,\n";
    assert_eq!(history(&["s", "--format", "csv"]), (0, told.to_owned()));
    let (code, shown) = history(&["s"]);
    assert!(code == 0 && shown.contains("naïve \\u{1b}[2J") && !shown.contains('\u{1b}'), "{shown}");
    assert_eq!(history(&["--format", "csv"]).1, told, "all that was done");
    let unknown = served.togl(&["history", "z"]);
    assert!(String::from_utf8(unknown.stderr).unwrap().contains("there is no sweep `z`"));
    assert!(served.stop().success());
}

#[test]
fn a_shell_completes_what_the_coordinator_has_and_is_silent_where_there_is_none() {
    let (served, _) = Served::start(&[]);
    let file = served.state.path().join("s.yaml");
    std::fs::write(&file, "version: 1\nname: zinc-depth\nbase: {dataset: necklaces}\nsplits: [0, 1]\n")
        .unwrap();
    assert!(served.togl(&["submit", file.to_str().unwrap()]).status.success());
    let complete = |state: &Path, words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_togl"));
        command.arg("--").arg("togl").args(words).env("TOGL_STATE", state).env_remove("TOGL_CONTEXT");
        command.env("TOGL_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", words.len().to_string());
        let output = command
            .env("_CLAP_IFS", "\n")
            .env_remove("TOGL_TOKEN")
            .env_remove("TOGL_COORDINATOR")
            .output()
            .unwrap();
        assert_eq!(
            (output.status.success(), String::from_utf8(output.stderr).unwrap()),
            (true, String::new())
        );
        String::from_utf8(output.stdout).unwrap()
    };
    for verb in ["status", "watch", "cancel", "table", "history"] {
        assert_eq!(complete(served.state.path(), &[verb, "zi"]).trim(), "zinc-depth", "{verb}");
    }
    let fold = complete(served.state.path(), &["explain", ""]);
    assert!(fold.lines().any(|line| line.ends_with("/1/0")), "{fold}");
    assert_eq!(complete(served.state.path(), &["pau"]).trim(), "pause");
    let address = served.togl(&["version"]); // the same program answers verbs as before
    assert!(address.status.success());
    let elsewhere = tempfile::tempdir().unwrap();
    let words = ["status", "--state", served.state.path().to_str().unwrap(), "zi"];
    assert_eq!(complete(elsewhere.path(), &words).trim(), "zinc-depth", "where the line says");
    assert_eq!(complete(elsewhere.path(), &["status", "zi"]).trim(), "");
    assert!(served.stop().success());
}

#[test]
fn a_log_for_programs_is_json_and_holds_no_secret() {
    let (served, said) = Served::start(&["--log-format", "json", "--metrics", "127.0.0.1:0"]);
    let logged: Vec<serde_json::Value> = said
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(logged.iter().any(|line| line["fields"]["message"] == "loaded the store"), "{said}");
    assert!(said.contains("metrics at http://127.0.0.1:") && !said.contains("togl1."), "{said}");
    assert!(served.stop().success());
}

#[test]
fn every_file_of_a_state_directory_is_private_whatever_the_umask() {
    let (served, _) = Served::start(&[]);
    // The shell would make this file for everybody.
    let make = "umask 000; \"$0\" token create --role viewer >\"$TOGL_STATE/viewer\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", make, env!("CARGO_BIN_EXE_togl")]).env("TOGL_STATE", served.state.path());
    assert!(shell.stderr(Stdio::null()).status().unwrap().success());
    let mut found = Vec::new();
    modes(served.state.path(), &mut found);
    let names: Vec<_> = found.iter().map(|(path, _)| path.file_name().unwrap().to_str().unwrap()).collect();
    for name in
        ["store.sqlite", "store.sqlite-wal", "store.sqlite.lock", "tokens.json", "coordinator.json", "viewer"]
    {
        assert!(names.contains(&name), "{names:?}");
    }
    let public: Vec<_> = found.iter().filter(|(_, mode)| mode & 0o077 != 0).collect();
    assert!(public.is_empty(), "{public:?}");
    assert!(served.stop().success());
}

#[test]
fn a_state_directory_that_everybody_can_write_to_is_named_and_refused() {
    let state = tempfile::tempdir().unwrap();
    std::fs::set_permissions(state.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_togl"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--until-stdin-closes"]).stdin(Stdio::null());
    let output = command.env("TOGL_STATE", state.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let folder = state.path().display();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("error: everybody can write to {folder}")), "{said}");
    assert!(said.contains(&format!("chmod o-w {folder}")), "{said}");
    assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0, "nothing was made there");
}

#[test]
fn strangers_cannot_fill_the_log_through_a_library() {
    let (served, said) = Served::start(&[]);
    let address = said.lines().find_map(|line| line.split_once(" at 127.0.0.1:")).unwrap().1;
    let mut stream = TcpStream::connect(format!("127.0.0.1:{address}")).unwrap();
    // HTTP/2: an answer to a ping that was never sent makes the library warn, every time.
    let ping = |answer: u8, text: &[u8; 8]| [&[0, 0, 8, 6, answer, 0, 0, 0, 0], &text[..]].concat();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00").unwrap();
    for _ in 0..400 {
        stream.write_all(&ping(1, b"surprise")).unwrap();
    }
    stream.write_all(&ping(0, b"all read")).unwrap();
    let (mut answered, mut buffer) = (Vec::new(), [0; 4096]);
    while !answered.windows(8).any(|bytes| bytes == b"all read") {
        let count = stream.read(&mut buffer).unwrap();
        assert_ne!(count, 0, "it closed the connection");
        answered.extend_from_slice(&buffer[..count]);
    }
    let (ended, said) = served.last_words();
    assert!(ended.success());
    let warned = said.lines().filter(|line| line.contains("PING")).count();
    assert_eq!(warned, 1, "{said}");
}

#[test]
fn a_page_that_is_opened_at_once_shows_its_code_in_no_list_of_processes() {
    let (served, _) = Served::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let browser = folder.path().join("browser");
    let pipe = folder.path().join("told");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // A browser that tells what it was called with, how private the file is and what stands in it.
    let script = format!("#!/bin/sh\n(echo \"$@\"; stat -c %a \"$1\"; cat \"$1\") >'{}'\n", pipe.display());
    std::fs::write(&browser, script).unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut web = served.command(&["web", "--listen", "127.0.0.1:0", "--open", "--until-stdin-closes"]);
    let mut web = web.env("BROWSER", &browser).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let told = std::fs::read_to_string(&pipe).unwrap();
    let mut lines = told.lines();
    let file = PathBuf::from(lines.next().unwrap());
    assert!(!file.to_str().unwrap().contains('#') && file.is_file(), "{told}");
    assert_eq!(lines.next(), Some("600"));
    let link = lines.next().unwrap();
    assert!(link.contains("url=http://127.0.0.1:") && link.contains("/#"), "{link}");
    drop(web.stdin.take());
    assert!(web.wait().unwrap().success());
    assert!(!file.exists(), "it goes with the page");
    drop(served);
}

#[test]
fn a_token_that_is_not_there_is_answered_with_the_nearest() {
    let (served, _) = Served::start(&[]);
    let made = served.togl(&["token", "create", "--role", "viewer", "--name", "wall", "--format", "json"]);
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    let id = made["id"].as_str().unwrap();
    let said = |asked: &str| {
        let output = served.togl(&["token", "revoke", asked]);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said("wal").contains("did you mean `wall`"), "{}", said("wal"));
    assert!(said("wall").contains(&format!("the token of that name is `{id}`")), "{}", said("wall"));
    let near = id.replace(|sign: char| sign == id.chars().next_back().unwrap(), "x");
    assert!(said(&near).contains(&format!("did you mean `{id}`")), "{}", said(&near));
}
