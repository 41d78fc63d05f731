//! The command as a user meets it: help, exit codes and messages of the real binary. What needs a worker is in
//! `deploy/end-to-end`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output};

use insta::assert_snapshot;

/// Runs `togl` with a state directory of its own and without the user's settings.
fn togl(arguments: &[&str]) -> Output {
    let state = tempfile::tempdir().unwrap();
    Command::new(env!("CARGO_BIN_EXE_togl"))
        .args(arguments)
        .current_dir(state.path())
        .env("TOGL_STATE", state.path().join("state"))
        .env("TOGL_CONFIG", state.path().join("config.json"))
        .env_remove("TOGL_CONTEXT")
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
fn the_help_of_a_verb_ends_with_examples() {
    let folds = "\nExamples:\n  togl folds zinc-depth --in failed\n  togl folds zinc-depth --fields fold,value,worker --format csv\n";
    let add = "\nExample:\n  togl context add lab gpu-head:7447 --token-file lab.token\n";
    let history = "\nExamples:\n  togl history 2f9c/3/0\n  togl history zinc-depth\n";
    for (verb, examples) in [(&["folds"][..], folds), (&["context", "add"], add), (&["history"], history)] {
        let help = seen(&[verb, &["--help"]].concat());
        assert!(help.starts_with("exit 0\n") && help.ends_with(examples), "{help}");
    }
}

/// Runs `togl` with a configuration file that stays.
fn with_config(config: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_togl"));
    command.args(arguments).current_dir(config.parent().unwrap()).env("TOGL_CONFIG", config);
    for variable in ["TOGL_STATE", "TOGL_TOKEN", "TOGL_STORE", "TOGL_COORDINATOR", "TOGL_CONTEXT", "RUST_LOG"]
    {
        command.env_remove(variable);
    }
    command.env("XDG_STATE_HOME", config.parent().unwrap().join("no-state"));
    let output = command.envs(environment.iter().copied()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A configuration file of its own beside a token, with two contexts.
struct Configured(tempfile::TempDir);

impl Configured {
    fn new() -> Self {
        let configured = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(configured.0.path().join("made")).unwrap();
        std::fs::write(configured.0.path().join("lab.token"), "togl1.viewer.00").unwrap();
        assert_eq!((configured.add("lab", "127.0.0.1:9").0, configured.add("home", "127.0.0.1:8").0), (0, 0));
        configured
    }

    fn file(&self) -> std::path::PathBuf {
        self.0.path().join("made/config.json")
    }

    fn run(&self, arguments: &[&str], environment: &[(&str, &str)]) -> (i32, String, String) {
        with_config(&self.file(), arguments, environment)
    }

    fn add(&self, name: &str, address: &str) -> (i32, String, String) {
        self.run(&["context", "add", name, address, "--token-file", "../lab.token"], &[])
    }

    /// The port that a command asks, where nobody answers; empty if none is known.
    fn port(&self, arguments: &[&str], environment: &[(&str, &str)]) -> String {
        let (code, _, err) = self.run(&[&["sweeps"], arguments].concat(), environment);
        assert_eq!(code, 3, "{err}");
        let rest =
            err.split_once("no coordinator answers at 127.0.0.1:").map(|(_, rest)| rest).unwrap_or_default();
        rest.chars().take_while(char::is_ascii_digit).collect()
    }
}

#[test]
fn a_context_stands_below_environment_and_options() {
    let user = Configured::new();
    assert_eq!(user.port(&[], &[]), "", "none is meant yet");
    assert_eq!(user.run(&["context", "use", "lab"], &[]).0, 0);
    assert_eq!(user.port(&[], &[]), "9");
    assert_eq!(user.port(&["--context", "home"], &[]), "8");
    assert_eq!(user.port(&[], &[("TOGL_CONTEXT", "home")]), "8");
    let elsewhere = ("TOGL_COORDINATOR", "127.0.0.1:7");
    assert_eq!(
        user.port(&[], &[elsewhere, ("TOGL_TOKEN", "togl1.viewer.0")]),
        "7",
        "the environment is above"
    );
    assert_eq!(user.port(&["--context", "home"], &[elsewhere]), "8", "an option is above the environment");
    assert_eq!(user.port(&["--coordinator", "127.0.0.1:6", "--token-file", "../lab.token"], &[]), "6");
    let state = user.0.path().join("state");
    let named = user.run(&["sweeps", "--state", state.to_str().unwrap()], &[]).2;
    assert!(named.contains("no coordinator serves"), "a state directory that was named is meant: {named}");
    assert_eq!(user.run(&["context", "use", "--none"], &[]).0, 0);
    assert_eq!(user.port(&[], &[]), "");
}

#[test]
fn contexts_are_listed_forgotten_and_refused_with_a_reason() {
    let user = Configured::new();
    for (name, address, why) in [
        ("lab", "127.0.0.1:7", "there is a context `lab` already"),
        ("a b", "127.0.0.1:7", "cannot be the name of a context"),
        ("far", "nonsense", "nonsense"),
    ] {
        let (code, _, err) = user.add(name, address);
        assert!(code == 2 && err.contains(why), "{err}");
    }
    let (code, _, err) = user.run(&["sweeps", "--context", "home", "--coordinator", "127.0.0.1:6"], &[]);
    assert!(code == 2 && err.contains("two coordinators"), "{err}");
    let (code, _, err) = user.run(&["sweeps", "--context", "lap"], &[]);
    assert!(code == 2 && err.contains("did you mean `lab`?"), "{err}");
    assert_eq!(user.run(&["context", "use", "lab"], &[]).0, 0);
    let listed = user.run(&["context", "list", "--format", "csv"], &[]).1;
    assert!(listed.contains("\nlab,yes,127.0.0.1:9,") && listed.contains("\nhome,,127.0.0.1:8,"), "{listed}");
    assert!(!std::fs::read_to_string(user.file()).unwrap().contains("togl1."), "no secret is in it");
    assert_eq!(user.run(&["context", "remove", "lab"], &[]).0, 0);
    assert_eq!(user.port(&[], &[]), "", "it is no longer meant");
    assert!(user.0.path().join("lab.token").exists());
    assert_eq!(user.run(&["context", "remove", "home"], &[]).0, 0);
    let (code, out, err) = user.run(&["context", "list"], &[]);
    assert!(code == 0 && out.is_empty() && err.starts_with("no contexts yet"), "{err}");
}

#[test]
fn a_configuration_that_is_damaged_or_open_to_others_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.json");
    std::fs::write(&config, "{\"contexts\": {\"lab\": {\"adress\": 1}}}").unwrap();
    let (code, _, err) = with_config(&config, &["sweeps"], &[]);
    assert!(code == 2 && err.contains("config.json") && err.contains("unknown field `adress`"), "{err}");
    std::fs::write(&config, "{}").unwrap();
    std::fs::set_permissions(&config, PermissionsExt::from_mode(0o666)).unwrap();
    let (code, _, err) = with_config(&config, &["sweeps"], &[]);
    assert!(code == 2 && err.contains("chmod go-w"), "{err}");
    assert_eq!(with_config(&config, &["schema"], &[]).0, 0, "who talks to nobody needs none");
}

#[test]
fn fields_are_chosen_by_name_and_misspelt_ones_are_told() {
    let output = togl(&["data", "list", "--fields", "classes,name", "--format", "csv"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("classes,name\n") && text.contains(",MUTAG\n"), "{text}");
    let output = togl(&["data", "list", "--fields", "name,mean_nodes", "--format", "ndjson"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(first.as_object().unwrap().len(), 2, "{first}");
    let refused = seen(&["data", "list", "--fields", "nam"]);
    assert!(
        refused.starts_with("exit 2\nerror: this list has no field `nam`\n\n  hint: did you mean `name`?"),
        "{refused}"
    );
}

#[test]
fn quiet_leaves_data_and_errors() {
    let [loud, quiet] = [&["data", "list"][..], &["data", "list", "-q"]].map(togl);
    assert!(!loud.stderr.is_empty() && quiet.stderr.is_empty());
    assert_eq!(loud.stdout, quiet.stdout);
    let refused = togl(&["--quiet", "plan", "nosuch.yaml"]);
    assert!(String::from_utf8(refused.stderr).unwrap().starts_with("error: cannot read the sweep file"));
}

#[test]
fn completions_of_every_shell_ask_this_program() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = String::from_utf8(togl(&["completions", shell]).stdout).unwrap();
        assert!(script.contains("TOGL_COMPLETE"), "{shell}: {script}");
    }
    for (shell, line) in [("bash", "bash -n"), ("zsh", "zsh -n"), ("fish", "fish -n")] {
        let program = line.split(' ').next().unwrap();
        if Command::new(program).args(["-c", "true"]).output().is_err() {
            eprintln!("skipped: there is no {program} to read its completions");
            continue;
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), togl(&["completions", shell]).stdout).unwrap();
        let read = Command::new(program).arg("-n").arg(file.path()).output().unwrap();
        assert!(read.status.success(), "{shell}: {}", String::from_utf8_lossy(&read.stderr));
    }
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
    assert!(damaged.starts_with("exit 1\nthe file: "), "{damaged}");
    assert!(damaged.contains("does not fit its checksum\n") && !damaged.contains("***"), "{damaged}");
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

#[test]
fn each_verb_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let output = Command::new(env!("CARGO_BIN_EXE_togl")).arg("man").arg(&pages).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names: Vec<String> = std::fs::read_dir(&pages)
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    for verb in ["togl.1", "togl-submit.1", "togl-watch.1", "togl-web.1", "togl-token-revoke.1"] {
        assert!(names.iter().any(|name| name == verb), "{verb} is not among {names:?}");
    }
    let text = std::fs::read_to_string(pages.join("togl-web.1")).unwrap();
    assert!(text.contains(".TH") && text.contains("open"), "{text}");
}
