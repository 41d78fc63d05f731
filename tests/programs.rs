//! A sweep of a program of one's own, from `togl init` to the table, with the real programs: what is written works at once, a worker
//! that is killed changes nothing, both sides have to opt in, and bad input gets one clear line.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A folder of a user with a state directory in it.
struct World(tempfile::TempDir);

impl World {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_togl"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TOGL_") || name == "RUST_LOG")
        {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(self.0.path());
        command.env("TOGL_STATE", self.path("state")).env("TOGL_CONFIG", self.path("config.json"));
        command.env("XDG_CACHE_HOME", self.path("cache")).stdin(Stdio::null());
        command
    }

    fn togl(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What a command that must succeed printed.
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.togl(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// What a command that must fail said.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.togl(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stderr)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Why a sweep of a script in Python cannot be trained here, if it cannot.
fn lacks() -> Option<&'static str> {
    let worker = Path::new(env!("CARGO_BIN_EXE_togl")).with_file_name("togl-worker");
    let python =
        Command::new("python3").args(["-c", "import sys; assert sys.version_info >= (3, 9)"]).output();
    match python {
        _ if !worker.is_file() => Some("togl-worker is not built"),
        Ok(python) if python.status.success() => None,
        _ => Some("there is no python3 of 3.9 or newer"),
    }
}

/// The processes whose parent is this one.
fn children(of: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_child = |entry: fs::DirEntry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let parent: u32 = stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()?;
        (parent == of).then_some(id)
    };
    entries.filter_map(is_child).collect()
}

fn until(what: &str, mut there: impl FnMut() -> bool) {
    for _ in 0..12_000 {
        if there() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("waited in vain for {what}");
}

#[test]
fn what_init_writes_works_at_once_and_a_worker_that_is_killed_changes_nothing() {
    if let Some(why) = lacks() {
        return eprintln!("skipped: {why}");
    }
    let calm = World::new();
    let said = calm.done(&["init", "--program", "train.py"]);
    assert_eq!(said, "wrote train.yaml and train.py; `togl run train.yaml` trains them\n");
    assert!(calm.refused(&["init", "--program", "train.py"]).contains("train.yaml is there already"));
    assert!(calm.done(&["plan", "train.yaml"]).contains("20"), "2 trials x 5 splits x 2 seeds");
    let table = calm.done(&["run", "train.yaml", "--slots", "2"]);
    assert!(table.contains("0.3") && table.contains("0.03") && table.contains('±'), "{table}");

    let hurt = World::new();
    hurt.done(&["init", "--program", "train.py"]);
    let mut run = hurt
        .command(&["run", "train.yaml", "--slots", "2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut worker = None;
    until("a fold in training", || {
        worker = children(run.id()).first().copied();
        let trainers = worker.map(children).unwrap_or_default();
        trainers.iter().any(|trainer| !children(*trainer).is_empty()) || run.try_wait().unwrap().is_some()
    });
    if let Some(worker) = worker {
        let killed = Command::new("kill").args(["-9", &worker.to_string()]).status().unwrap();
        assert!(killed.success(), "the worker lived until now");
    }
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), table, "the same table");
    let results = hurt.done(&["folds", "train", "--format", "json"]);
    assert_eq!(results.matches("\"finished\"").count(), 20, "{results}");
}

/// A sweep of a shell script whose values follow from the learning rate as `value` says.
fn shell_sweep(world: &World, score: &str, value: &str) {
    let script = format!(
        "read -r request\nlr=$(printf '%s' \"$request\" | sed 's/.*\"lr\":\\([0-9.]*\\).*/\\1/')\n\
         value=$(awk \"BEGIN {{ print {value} }}\")\n\
         printf '{{\"event\":\"epoch\",\"epoch\":0,\"of\":1,\"train\":%s,\"validation\":%s}}\\n' $value $value >&3\n\
         printf '{{\"event\":\"result\",\"test\":%s}}\\n' $value >&3\n"
    );
    world.write("train.sh", &script);
    let sweep = format!(
        "version: 1\nname: scored\nprogram:\n  run: [sh, train.sh]\n  files: [train.sh]\n  settings: {{lr: number}}\n\
         {score}base: {{dataset: mine}}\ngrid: {{lr: [0.3, 0.1, 0.2]}}\nsplits: [0, 1]\nlimits: {{attempts: 1}}\n"
    );
    world.write("scored.yaml", &sweep);
}

#[test]
fn a_program_of_an_error_has_a_table_in_which_the_lowest_is_bold() {
    if let Some(why) = lacks() {
        return eprintln!("skipped: {why}");
    }
    let world = World::new();
    shell_sweep(&world, "  score: {name: RMSE, goal: min, range: [0, null]}\n", "1 + 2 * $lr");
    let table = world.done(&["run", "scored.yaml", "--slots", "2"]);
    assert!(table.contains("1.200 ± 0.000▲") && table.contains("1.600 ± 0.000\n"), "{table}");
    assert!(table.contains("Test RMSE of the best checkpoint, lower is better, mean ±"), "{table}");
    assert!(table.contains("▲ best (lowest) mean of its column") && !table.contains('%'), "{table}");
    let chosen = world.done(&["table", "scored", "--rows", "method", "--select", "lr", "--format", "json"]);
    assert!(
        chosen.contains("\"mean\":1.2,") && chosen.contains("\"score\":\"RMSE\",\"goal\":\"min\""),
        "{chosen}"
    );
    let best = world.done(&["best", "scored"]);
    assert!(best.lines().nth(1).unwrap().contains("1.200 ± 0.000"), "{best}");
    let picture = world.path("curves.svg");
    world.done(&["plot", "scored", "--figure", "learning-curves", "--out", picture.to_str().unwrap()]);
    assert!(fs::read_to_string(picture).unwrap().contains("RMSE"));

    let beyond = World::new();
    shell_sweep(&beyond, "  score: {name: RMSE, goal: min, range: [0, null]}\n", "0.15 - $lr");
    beyond.togl(&["run", "scored.yaml"]);
    let why = beyond.done(&["folds", "scored", "--in", "failed", "--format", "json"]);
    assert!(why.contains("which is no RMSE (0 or more); widen the `range` of `score`"), "{why}");
    let share = World::new();
    shell_sweep(&share, "", "1 + 2 * $lr");
    share.togl(&["run", "scored.yaml"]);
    let why = share.done(&["folds", "scored", "--in", "failed", "--format", "json"]);
    assert!(why.contains("which is no share in 0..1; divide percent by 100, or declare a `score`"), "{why}");
}

#[test]
fn editing_the_script_makes_other_trials_and_settings_can_be_given_on_the_command_line() {
    let world = World::new();
    world.done(&["init", "--program", "train.py"]);
    let before = world.done(&["hash", "train.yaml", "--format", "csv"]);
    assert_eq!(before, world.done(&["hash", "train.yaml", "--format", "csv"]));
    let given = world.done(&["plan", "train.yaml", "lr=0.1,0.2,0.3", "width=4", "--format", "json"]);
    assert!(given.contains("\"trials\": 3") || given.contains("\"trials\":3"), "{given}");
    assert!(world.refused(&["plan", "train.yaml", "wdith=4"]).contains("did you mean `width`"));
    let script = fs::read_to_string(world.path("train.py")).unwrap();
    world.write("train.py", &script.replace("EPOCHS = 30", "EPOCHS = 31"));
    let after = world.done(&["hash", "train.yaml", "--format", "csv"]);
    assert_ne!(before, after, "another script, other trials");
}

#[test]
fn bad_input_gets_one_clear_line_and_what_to_do() {
    let world = World::new();
    world.done(&["init", "--program", "train.py"]);
    fs::remove_file(world.path("train.py")).unwrap();
    let missing = world.refused(&["plan", "train.yaml"]);
    assert!(
        missing.contains("cannot read train.py, a file of the program") && missing.contains("hint:"),
        "{missing}"
    );
    world.write("train.py", &"#".repeat(5 << 20));
    let large = world.refused(&["plan", "train.yaml"]);
    assert!(large.contains("more than 4194304") && large.contains("data directory"), "{large}");
    world.write("train.py", "");
    let sweep = fs::read_to_string(world.path("train.yaml")).unwrap();
    world.write("train.yaml", &sweep.replace("  width: 8", "  widht: 8"));
    assert!(world.refused(&["plan", "train.yaml"]).contains("did you mean `width`"));
    world.write(
        "flow.yaml",
        "{version: 1, name: x, program: {run: [sh, train.py], files: [train.py]}, base: {dataset: x}}",
    );
    let flow = world.refused(&["plan", "flow.yaml"]);
    assert!(flow.contains("keys at the beginning of lines"), "{flow}");
    world.write("frozen.yaml", &format!("{sweep}frozen: {}\n", "f".repeat(64)));
    let frozen = world.refused(&["plan", "frozen.yaml"]);
    assert!(frozen.contains("not those that frozen.yaml was frozen with"), "{frozen}");
}

/// A coordinator that is served until this is dropped.
struct Served {
    process: Child,
}

impl Served {
    fn start(world: &World, options: &[&str]) -> Self {
        let arguments = [&["serve", "--listen", "127.0.0.1:0"], options].concat();
        let mut process = world.command(&arguments).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().starts_with("serving ")), "it serves");
        std::thread::Builder::new().spawn(move || lines.for_each(drop)).unwrap();
        Self { process }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_coordinator_takes_programs_only_if_it_was_told_to_and_says_that_no_worker_runs_them() {
    let world = World::new();
    world.write("train.sh", "exit 0\n");
    let sweep =
        "version: 1\nname: own\nprogram: {run: [sh, train.sh], files: [train.sh]}\nbase: {dataset: mine}\n";
    world.write("own.yaml", sweep);
    let served = Served::start(&world, &[]);
    let refused = text(&world.togl(&["submit", "own.yaml"]).stderr);
    assert!(refused.contains("takes no programs; start it with `togl serve --programs`"), "{refused}");
    drop(served);
    let _served = Served::start(&world, &["--programs"]);
    world.done(&["submit", "own.yaml"]);
    assert_eq!(fs::read_dir(world.path("state/programs")).unwrap().count(), 1, "its files are kept");
    if Path::new(env!("CARGO_BIN_EXE_togl")).with_file_name("togl-worker").is_file() {
        let worker = Path::new(env!("CARGO_BIN_EXE_togl")).with_file_name("togl-worker");
        let mut plain = Command::new(worker);
        plain.args(["join", "--slots", "1", "--device", "cpu", "--state"]).arg(world.path("state"));
        let mut plain = plain
            .env("XDG_CACHE_HOME", world.path("cache"))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("the worker", || world.done(&["workers", "--format", "json"]).contains("connected"));
        let fold = world.done(&["folds", "own", "--format", "csv", "--fields", "fold"]);
        let fold = fold.lines().nth(1).unwrap_or_default().to_owned();
        let why = world.done(&["explain", &fold]);
        assert!(why.contains("no connected worker runs programs"), "{why}");
        plain.kill().unwrap();
        plain.wait().unwrap();
    } else {
        eprintln!("skipped: togl-worker is not built");
    }
}

#[test]
fn a_program_that_cannot_be_run_or_says_nothing_ends_a_run_with_one_line_and_what_to_do() {
    if let Some(why) = lacks() {
        return eprintln!("skipped: {why}");
    }
    let world = World::new();
    world.write("train.sh", "exit 0\n");
    for (name, command, says) in [
        ("none", "python9.9", "cannot run `python9.9`"),
        (
            "silent",
            "sh",
            "it exited without a result; a program ends with the event `result` (`fold.result(...)`)",
        ),
    ] {
        let sweep = format!(
            "version: 1\nname: {name}\nprogram:\n  run: [{command}, train.sh]\n  files: [train.sh]\nbase: {{dataset: mine}}\n\
             limits: {{attempts: 1}}\n"
        );
        world.write("own.yaml", &sweep);
        let output = world.togl(&["run", "own.yaml", "--slots", "1"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let line = said.lines().find(|line| line.trim_start().starts_with("failed: ")).unwrap_or_default();
        assert!(line.contains(says), "{said}");
        if name == "none" {
            assert!(
                line.contains(
                    "install it there, name it in `files`, or give `togl-worker join --python FILE`"
                )
            );
        }
    }
}

/// Everything that a script can do wrong at once: rubbish, another fold's result, children that outlive it, a closed descriptor.
const HOSTILE: &str = "trap '' TERM\nread -r request\n(trap '' TERM; sleep 600) &\n\
    printf 'rubbish\\n{\"event\":\"result\",\"fold\":\"0/0/0\",\"test\":1}\\n' >&3\nexec 3>&-\nhead -c 400000000 /dev/zero\nsleep 600\n";

/// A worker of one slot.
fn one_that_runs_programs(world: &World) -> Child {
    let worker = Path::new(env!("CARGO_BIN_EXE_togl")).with_file_name("togl-worker");
    let mut worker = Command::new(worker);
    worker
        .args(["join", "--programs", "--slots", "1", "--device", "cpu", "--state"])
        .arg(world.path("state"));
    worker.env("XDG_CACHE_HOME", world.path("cache")).stdin(Stdio::null()).stderr(Stdio::null());
    worker.spawn().unwrap()
}

#[test]
fn a_hostile_program_fails_its_folds_and_coordinator_and_worker_go_on() {
    if let Some(why) = lacks() {
        return eprintln!("skipped: {why}");
    }
    let world = World::new();
    let _served = Served::start(&world, &["--programs"]);
    let mut worker = one_that_runs_programs(&world);
    let sweep = |name: &str, splits: &str| {
        format!(
            "version: 1\nname: {name}\nprogram:\n  run: [sh, {name}.sh]\n  files: [{name}.sh]\nbase: {{dataset: mine}}\n\
             splits: [{splits}]\nlimits: {{attempts: 1}}\n"
        )
    };
    world.write("hostile.sh", HOSTILE);
    world.write(
        "honest.sh",
        "read -r request\necho '{\"event\":\"result\",\"test\":0.5,\"validation\":0.5,\"train\":0.5}' >&3\n",
    );
    for (name, splits) in [("hostile", "0, 1"), ("honest", "0")] {
        world.write(&format!("{name}.yaml"), &sweep(name, splits));
        world.done(&["submit", &format!("{name}.yaml")]);
    }
    let states =
        |name: &str, state: &str| world.done(&["folds", name, "--format", "json"]).matches(state).count();
    until("the hostile folds to fail", || states("hostile", "\"state\": \"failed\"") == 2);
    until("the honest fold to finish", || states("honest", "\"state\": \"finished\"") == 1);
    let why = world.done(&["folds", "hostile", "--format", "json"]);
    assert_eq!(why.matches("\"failure\": \"error: ").count(), 2, "{why}");
    let listed = world.done(&["workers", "--format", "json"]);
    assert_eq!(listed.matches("\"worker\"").count(), 1, "the worker is the one that came: {listed}");
    assert!(listed.contains("connected"), "{listed}");
    worker.kill().unwrap();
    worker.wait().unwrap();
}
