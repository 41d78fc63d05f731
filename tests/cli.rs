//! The command as a user meets it: help, exit codes and messages of the real binary. What needs a worker is in
//! `deploy/end-to-end`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::rc::Rc;

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
fn a_plan_mentions_data_sets_that_nobody_here_knows() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.yaml");
    std::fs::write(&file, "version: 1\nname: x\ngrid: {dataset: [necklases, mine, cycles]}\n").unwrap();
    let output = togl(&["plan", file.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].starts_with("note: unknown data set `mine`: it is not in the catalogue"), "{said}");
    assert!(lines[1].starts_with("note: unknown data set `necklases`: "), "{said}");
    assert!(lines[1].contains(" (did you mean `necklaces`?); fine if workers have it"), "{said}");
    for place in ["/tu/mine,", "/tu/mine.zip,", "/mine,", "/mine.zip;"] {
        assert!(lines[0].contains(place), "every place that was looked at is said: {said}");
    }
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

/// Answers every connection as a web server would that is asked nonsense; until the test is over.
fn web_server() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answer = move || {
        for mut stream in listener.incoming().flatten() {
            drop(stream.read(&mut [0; 64])); // it answers, it does not begin
            drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"));
            drop(std::io::copy(&mut stream, &mut std::io::sink())); // until the other side has had enough
        }
    };
    drop(std::thread::Builder::new().spawn(answer).unwrap());
    address
}

#[test]
fn a_port_where_somebody_else_listens_is_told_from_a_coordinator_that_is_not_there() {
    let address = web_server();
    let encrypted = format!("togl1.operator.{}.ca{}", "5".repeat(48), "6".repeat(32));
    for token in [encrypted.as_str(), "togl1.operator.plain"] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), token).unwrap();
        let file = file.path().to_str().unwrap();
        let output = togl(&["sweeps", "--coordinator", &address, "--token-file", file]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.starts_with("error: something answers"), "{said}");
        assert!(said.contains("\n\n  hint: check host and port"), "{said}");
    }
}

#[test]
fn hints_of_data_sets_look_like_other_hints() {
    let refused = seen(&["data", "check", "NOSUCH"]);
    assert!(
        refused.starts_with("exit 2\nerror: unknown data set `NOSUCH`: ")
            && refused.contains("\n\n  hint: there are "),
        "{refused}"
    );
}

#[test]
fn backups_that_cannot_be_made_or_found_come_with_a_hint() {
    let refused = seen(&["restore", "nosuch.sqlite"]);
    assert_eq!(
        refused,
        "exit 2\nerror: there is no file nosuch.sqlite\n\n  hint: name a file that `togl backup FILE` made\n"
    );
    let refused = seen(&["backup", "/nowhere/at/all"]);
    assert_eq!(
        refused,
        "exit 2\nerror: there is no folder /nowhere/at\n\n  hint: create it, or name a file in another one\n"
    );
    let other = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(other.path(), "dear diary").unwrap();
    let refused = seen(&["restore", other.path().to_str().unwrap()]);
    assert!(
        refused.contains("is not a togl store") && refused.contains("\n\n  hint: stores are made by"),
        "{refused}"
    );
}

#[test]
fn a_check_says_whether_a_store_is_whole_and_damage_is_answered_with_restore() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.sqlite");
    let address = format!("sqlite:{}", file.display());
    let missing = seen(&["check", "--store", &address]);
    assert!(missing.starts_with("exit 2\nerror: there is no store at "), "{missing}");
    let store = togl_coordinator::store::address::StoreAddress::Sqlite(file.clone());
    store.open().unwrap().close().unwrap();
    let whole = seen(&["check", "--store", &address]);
    assert_eq!(whole, format!("exit 0\n{address}: 1 rows, nothing is damaged\n"));
    let mut bytes = std::fs::read(&file).unwrap();
    let last = bytes.len() - 2_000;
    bytes[last] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let damaged = seen(&["check", "--store", &address]);
    assert!(damaged.starts_with("exit 1\nthe file: a page does not fit its checksum\nerror: "), "{damaged}");
    assert!(
        damaged.contains("\n\n  hint: `togl restore FILE --replace` puts a backup in its place"),
        "{damaged}"
    );
    let read = seen(&["table", "s", "--state", folder.path().to_str().unwrap()]);
    assert!(!read.contains("run a sweep first"), "{read}");
}

#[test]
fn a_table_without_a_store_is_bad_input() {
    assert_snapshot!("no_store", seen(&["table", "anything"]));
}

#[test]
fn a_file_that_is_no_list_of_cas_is_bad_input() {
    let refused = seen(&["serve", "--listen", "127.0.0.1:0", "--client-ca", "nosuch.pem"]);
    assert!(refused.starts_with("exit 2\nerror: cannot use nosuch.pem: No such file"), "{refused}");
}

#[test]
fn before_the_first_start_there_are_no_tokens() {
    let refused = seen(&["token", "list"]);
    assert!(refused.starts_with("exit 2\nerror: cannot use the token file"), "{refused}");
    assert!(refused.contains("`togl serve` makes the first ones"), "{refused}");
    let refused = seen(&["token", "create", "--role", "boss"]);
    assert!(
        refused.starts_with("exit 2\n") && refused.contains("use operator, viewer or worker"),
        "{refused}"
    );
}

/// A `togl serve` of its own, as careless a user starts it: with a umask that forbids nothing. Stopped with SIGTERM.
struct Served {
    state: Rc<tempfile::TempDir>,
    child: std::process::Child,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Served {
    /// Starts and waits until it says that workers can be added. Gives what it said so far.
    fn start(arguments: &[&str]) -> (Self, String) {
        Self::on(Rc::new(tempfile::tempdir().unwrap()), arguments)
    }

    /// The same on a state directory that may have been served before.
    fn on(state: Rc<tempfile::TempDir>, arguments: &[&str]) -> (Self, String) {
        let mut child = Command::new("sh")
            .args(["-c", "umask 000; exec \"$0\" serve --listen 127.0.0.1:0 \"$@\""])
            .arg(env!("CARGO_BIN_EXE_togl"))
            .args(arguments)
            .env("TOGL_STATE", state.path())
            .env_remove("RUST_LOG")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("togl-worker join") {
            assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "it ended: {said}");
        }
        (Self { state, child, stderr }, said)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_togl"));
        command.args(arguments).env("TOGL_STATE", self.state.path()).env_remove("TOGL_TOKEN");
        command.env_remove("TOGL_COORDINATOR");
        command
    }

    fn togl(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn stop(self) -> std::process::ExitStatus {
        self.last_words().0
    }

    /// Stops it. Gives how it ended and what it said meanwhile.
    fn last_words(mut self) -> (std::process::ExitStatus, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap(), said)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill(); // of a test that failed; otherwise it has ended
        let _ = self.child.wait();
    }
}

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
        said.contains("1 folds are new, 1 are kept, 2 are no longer in it") && said.contains("--yes"),
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
    assert!(away.contains("is away since ") && away.ends_with("GMT; trying again"), "{away}");
    let (served, _) = Served::on(state, &[]);
    assert_eq!(said.next().unwrap(), first, "it is back");
    assert!(served.togl(&["cancel", "s"]).status.success());
    let last = said.last().unwrap();
    assert_eq!(last, "s is cancelled; make its table with `togl table s`");
    assert!(watch.wait().unwrap().success());
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

/// Every file and folder below `folder`, with its mode.
fn modes(folder: &Path, found: &mut Vec<(PathBuf, u32)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            modes(&path, found);
        }
        found.push((path, metadata.permissions().mode() & 0o777));
    }
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
fn data_goes_to_standard_output_and_talk_to_standard_error() {
    let output = togl(&["version", "--format", "json"]);
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["togl"], env!("CARGO_PKG_VERSION"));
    assert!(output.stderr.is_empty());
}

#[test]
fn regular_graphs_give_the_published_error_counts() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/graph6");
    if !Path::new(folder).exists() {
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
