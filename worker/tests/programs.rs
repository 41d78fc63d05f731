//! Programs of users under a real trainer: what they are given, what becomes of what they say, and that none of them, whatever
//! it does, ends otherwise than as a result or as a failure with a class. The programs are shell scripts; the one in Python
//! uses the helper. Nothing here waits for a time, only for things to happen.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(target_os = "linux")]

mod processes;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use processes::{Trainer, worker};
use serde_json::{Value, json};
use togl_sweeps::bundle::ProgramFiles;
use togl_sweeps::program::freeze;
use togl_sweeps::{FoldKey, SweepSpec, TrialConfig};

/// What every good script ends with.
const RESULT: &str = r#"echo '{"event":"result","test":0.75,"validation":0.5,"train":1}' >&3"#;

/// A worker's folder with the files of one program in it.
struct World {
    folder: tempfile::TempDir,
    trial: TrialConfig,
    memory: Option<u64>,
    disk: u64,
    python: Option<PathBuf>,
    /// Whether it is run by bubblewrap, or by what is called so in the folder `bin`, if that is there.
    sandbox: bool,
}

impl World {
    /// A shell script.
    fn shell(script: &str) -> Self {
        Self::of("[sh, run.sh]", "run.sh", script, "own")
    }

    /// A program of one file on a data set.
    fn of(run: &str, name: &str, script: &str, dataset: &str) -> Self {
        let bundle =
            ProgramFiles::new(BTreeMap::from([(name.to_owned(), script.as_bytes().to_vec())])).unwrap();
        let yaml = format!(
            "version: 1\nname: x\nprogram: {{run: {run}, files: [{name}], settings: {{lr: number, mode: [a, b]}}}}\n\
             base: {{dataset: {dataset}, lr: 0.25, mode: a}}\n"
        );
        let spec = SweepSpec::parse(&freeze(&yaml, &bundle.digest())).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("programs/files").join(bundle.digest());
        fs::create_dir_all(&files).unwrap();
        fs::write(files.join(name), script).unwrap();
        let trial = spec.trials[0].config.clone();
        Self { folder, trial, memory: None, disk: 1 << 30, python: None, sandbox: false }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn fold(&self) -> FoldKey {
        FoldKey { trial: self.trial.id(), split: 3, seed: 4 }
    }

    fn request(&self, attempt: u32) -> Value {
        json!({"train": {
            "fold": self.fold(),
            "attempt": attempt,
            "config": self.trial.canonical(),
            "device": "cpu",
            "data": {"data_dir": self.path("data"), "offline": true, "data_mirror": null, "data_ca": null},
            "keeping": {"checkpoints": {"folder": self.path("checkpoints"), "most_bytes": 1 << 30}, "models": null},
            "programs": {"folder": self.path("programs"), "python": self.python, "memory": self.memory, "disk": self.disk,
                         "sandbox": self.sandbox},
        }})
    }

    fn trainer(&self) -> Trainer {
        let mut worker = worker();
        worker
            .env("TOGL_TOKEN", "secret")
            .env("MY_PASSWORD", "secret")
            .env("XDG_CACHE_HOME", self.path("cache"));
        if self.path("bin").is_dir() {
            let path = std::env::var("PATH").unwrap_or_default();
            worker.env("PATH", format!("{}:{path}", self.path("bin").display()));
        }
        Trainer::start(worker)
    }

    /// Trains one fold and gives the last event.
    fn train(&self) -> Value {
        let mut trainer = self.trainer();
        trainer.tell(&self.request(1));
        let ended = last(&mut trainer);
        assert!(alive(trainer.child.id()), "the trainer goes on, whatever the program did");
        self.nothing_is_left();
        ended
    }

    /// Neither processes nor a scratch folder.
    fn nothing_is_left(&self) {
        let marks = self.folder.path().display().to_string();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let works_in = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            assert!(
                !works_in.display().to_string().starts_with(&marks),
                "{} is left",
                entry.path().display()
            );
        }
        let scratch = fs::read_dir(self.path("programs/scratch")).into_iter().flatten().count();
        assert_eq!(scratch, 0, "the scratch folder goes with the fold");
    }

    fn failure(&self) -> (String, String) {
        let ended = self.train();
        let failed = &ended["failed"];
        assert!(failed.is_object(), "{ended}");
        (failed["class"].as_str().unwrap().to_owned(), failed["message"].as_str().unwrap().to_owned())
    }
}

/// The event that ends the fold.
fn last(trainer: &mut Trainer) -> Value {
    loop {
        let (kind, what) = trainer.event();
        if kind == "done" || kind == "failed" {
            return json!({kind: what});
        }
    }
}

fn alive(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.starts_with('Z') && !rest.is_empty())
}

#[test]
fn a_script_is_given_its_settings_and_its_result_counts() {
    let script = format!(
        "read request\necho \"$request\" > request.json\n\
         case \"$request\" in *'\"lr\":0.25'*'\"mode\":\"a\"'*) ;; *) exit 9;; esac\n\
         case \"$request\" in *'\"split\":3'*) ;; *) exit 8;; esac\n\
         [ -z \"$TOGL_TOKEN$MY_PASSWORD\" ] || exit 7\n[ -z \"$CUDA_VISIBLE_DEVICES\" ] || exit 6\n\
         echo '{{\"event\":\"epoch\",\"epoch\":0,\"of\":2,\"train\":0.5,\"validation\":0.25,\"train_loss\":2}}' >&3\n\
         echo '{{\"event\":\"epoch\",\"epoch\":1,\"of\":2,\"train\":0.6,\"validation\":0.3}}' >&3\n\
         echo hello; echo world >&2\n{RESULT}\n"
    );
    let done = World::shell(&script).train();
    let result = &done["done"];
    assert_eq!(
        (&result["test"]["accuracy"], &result["validation"]["accuracy"]),
        (&json!(0.75), &json!(0.5)),
        "{done}"
    );
    assert_eq!((&result["epochs"], &result["history"].as_array().unwrap().len()), (&json!(2), &2));
    assert_eq!(result["history"][0]["train"], json!({"loss": 2.0, "accuracy": 0.5}));
    assert_eq!(result["provenance"]["device"], "cpu");
    assert_eq!(result["provenance"]["commit"].as_str().unwrap().len(), 64, "the digest of its files");
}

#[test]
fn a_program_may_say_how_large_the_parts_of_its_own_data_are() {
    let with = |sizes: &str| {
        let event =
            format!("{{\"event\":\"result\",\"test\":0.5,\"validation\":0.5,\"train\":1,\"sizes\":{sizes}}}");
        World::shell(&format!("read request\necho '{event}' >&3\n")).train()
    };
    assert_eq!(with("[80, 10, 10]")["done"]["part_sizes"], json!([80, 10, 10]));
    assert_eq!(with("null")["done"]["part_sizes"], json!([0, 0, 0]));
    for wrong in ["[80, 10]", "[-1, 10, 10]", "80"] {
        assert!(with(wrong).to_string().contains("\"error\""), "{wrong}");
    }
}

#[test]
fn a_data_set_of_ours_brings_its_digest_and_its_splits() {
    let script = format!("read request\nls split.json >&2 || exit 5\n{RESULT}\n");
    let done = World::of("[sh, run.sh]", "run.sh", &script, "necklaces").train();
    let result = &done["done"];
    assert!(!result["data_digest"].as_str().unwrap().is_empty(), "{done}");
    assert!(result["part_sizes"].as_array().unwrap().iter().all(|size| size.as_u64().unwrap() > 0));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a list of all that can be done wrong")]
fn whatever_a_program_does_wrong_is_a_failure_with_its_class() {
    let cases = [
        ("read request; exit 0", "crashed", "exited without a result"),
        ("read request; echo boom >&2; exit 3", "crashed", "its last words: boom"),
        ("kill -9 $$", "crashed", "signal: 9"),
        ("echo hello >&3", "error", "no event to descriptor 3: `hello`"),
        ("head -c 100000 /dev/urandom >&3; sleep 1000", "error", "no event to descriptor 3"),
        ("head -c 3000000 /dev/zero | tr '\\0' x >&3; sleep 1000", "error", "a line of more than"),
        (
            r#"echo '{"event":"result","test":93.5,"validation":1,"train":1}' >&3"#,
            "error",
            "divide percent by 100",
        ),
        (
            r#"echo '{"event":"result","test": NaN,"validation":1,"train":1}' >&3"#,
            "error",
            "no finite number as `test`",
        ),
        (r#"echo '{"event":"result","test":0.5}' >&3"#, "error", "no finite number as `validation`"),
        (
            r#"echo '{"event":"result","fold":"other/0/0","test":1,"validation":1,"train":1}' >&3"#,
            "error",
            "another fold",
        ),
        (&format!("{RESULT}\n{RESULT}"), "error", "two results"),
        (
            r#"echo '{"event":"epoch","epoch":5,"train":1,"validation":1}
{"event":"epoch","epoch":5,"train":1,"validation":1}' >&3"#,
            "error",
            "reports epoch 5",
        ),
        (
            r#"echo '{"event":"failed","class":"out-of-memory","message":"too wide"}' >&3"#,
            "out-of-memory",
            "too wide",
        ),
        (r#"echo '{"event":"failed","class":"worker-lost","message":"me"}' >&3"#, "error", "me"),
        (
            "echo 'torch.OutOfMemoryError: CUDA out of memory.' >&2; exit 1",
            "out-of-memory",
            "CUDA out of memory",
        ),
    ];
    for (script, class, words) in cases {
        let (found, message) = World::shell(script).failure();
        assert!(found == class && message.contains(words), "{script}\n{found}: {message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn a_program_that_cannot_be_run_says_what_to_do() {
    let (class, message) = World::of("[python9, run.py]", "run.py", "", "own").failure();
    assert!(
        class == "error" && message.contains("cannot run `python9`") && message.contains("--python FILE"),
        "{message}"
    );
    let world = World::shell(RESULT);
    fs::remove_dir_all(world.path("programs/files")).unwrap();
    let (_, message) = world.failure();
    assert!(message.contains("the files of the program are not here"), "{message}");
}

#[test]
fn files_that_somebody_changed_are_not_run() {
    let world = World::shell(RESULT);
    for folder in fs::read_dir(world.path("programs/files")).unwrap() {
        fs::write(folder.unwrap().path().join("run.sh"), "exit 0").unwrap();
    }
    let (_, message) = world.failure();
    assert!(message.contains("are not here"), "{message}");
}

#[test]
fn forks_that_outlive_their_parent_are_ended_with_the_fold() {
    let forks = "(setsid sh -c 'sleep 1000' &) ; sh -c 'sleep 1000 & sleep 1000 &' ; (setsid sleep 1000 >&- 2>&- 3>&- &)\n";
    let done = World::shell(&format!("{forks}{RESULT}\n")).train();
    assert_eq!(done["done"]["test"]["accuracy"], 0.75, "its result counts all the same: {done}");
    let (class, _) = World::shell(&format!("{forks}exit 2\n")).failure();
    assert_eq!(class, "crashed");
}

#[test]
fn a_program_that_closes_its_events_and_stays_is_ended() {
    let (class, message) = World::shell("exec 3>&-\nsleep 1000\n").failure();
    assert!(class == "crashed" && message.contains("closed its events"), "{class}: {message}");
}

#[test]
fn a_program_that_fills_the_disk_or_the_memory_or_prints_without_end_is_ended() {
    let mut world = World::shell("head -c 30000000 /dev/zero > big; sleep 1000");
    world.disk = 20 << 20;
    let (class, message) = world.failure();
    assert!(class == "error" && message.contains("20 MiB are allowed"), "{class}: {message}");
    let mut world = World::shell("x=$(head -c 90000000 /dev/zero | tr '\\0' x); sleep 1000");
    world.memory = Some(40 << 20);
    let (class, message) = world.failure();
    assert!(class == "out-of-memory" && message.contains("40 MiB are allowed"), "{class}: {message}");
    let (class, message) = World::shell("yes 0123456789012345678901234567890123456789").failure();
    assert!(class == "error" && message.contains("printed more than"), "{class}: {message}");
}

/// Tells a program to stop after its first epoch; its fold was preempted.
fn stopped_after_an_epoch(world: &World) {
    let mut trainer = world.trainer();
    trainer.tell(&world.request(1));
    while trainer.event().0 != "epoch" {}
    trainer.tell(&json!("stop"));
    let ended = last(&mut trainer);
    assert_eq!(ended["failed"]["class"], "preempted", "{ended}");
    trainer.child.wait().unwrap();
}

#[test]
fn a_program_that_ignores_the_wish_to_stop_is_ended_and_the_fold_was_preempted() {
    let world = World::shell(
        "trap '' TERM\nread request\necho '{\"event\":\"epoch\",\"epoch\":0,\"train\":1,\"validation\":1}' >&3\nwhile :; do sleep 1; done\n",
    );
    stopped_after_an_epoch(&world);
    world.nothing_is_left();
}

/// A script that saves and leaves when it gets SIGTERM, and only then.
const SAVES_ON_SIGNAL: &str = r#"
read -r request
save=$(printf '%s' "$request" | sed 's/.*"save":"\([^"]*\)".*/\1/')
trap 'echo 1 > "$save"; echo "{\"event\":\"saved\",\"epoch\":0}" >&3; exit 0' TERM
echo '{"event":"epoch","epoch":0,"train":1,"validation":1}' >&3
while :; do sleep 0.05; done
"#;

/// Runs what stands behind `--` as bubblewrap does: as the child of a child.
const NOT_BUBBLEWRAP: &str = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nsh -c '\"$@\"; exit $?' first \"$@\"\nexit $?\n";

fn saves_when_told_to_stop(world: &World) {
    stopped_after_an_epoch(world);
    let kept = fs::read_dir(world.path("checkpoints")).into_iter().flatten().count();
    assert_eq!(kept, 1, "it heard the signal and saved");
    world.nothing_is_left();
}

#[test]
fn a_program_is_told_to_stop_by_a_signal_also_below_what_sandboxes_it() {
    saves_when_told_to_stop(&World::shell(SAVES_ON_SIGNAL));
    let mut below = World::shell(SAVES_ON_SIGNAL);
    below.sandbox = true;
    fs::create_dir(below.path("bin")).unwrap();
    fs::write(below.path("bin/bwrap"), NOT_BUBBLEWRAP).unwrap();
    fs::set_permissions(below.path("bin/bwrap"), fs::Permissions::from_mode(0o755)).unwrap();
    saves_when_told_to_stop(&below);
}

#[test]
fn in_a_sandbox_there_is_no_network_and_nothing_can_be_written_but_the_programs_own_folder() {
    let works = Command::new("bwrap").args(["--ro-bind", "/", "/", "--unshare-net", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        return eprintln!("skipped: bubblewrap is not here, or may not be used");
    }
    let mut world = World::shell(&format!(
        "echo 1 > here || exit 3\necho 1 > /var/tmp/not-here 2>/dev/null && exit 4\n\
         [ $(wc -l < /proc/net/route) -le 1 ] || exit 5\n{RESULT}\n"
    ));
    world.sandbox = true;
    let done = world.train();
    assert_eq!(done["done"]["test"]["accuracy"], 0.75, "{done}");
    let mut stops = World::shell(SAVES_ON_SIGNAL);
    stops.sandbox = true;
    saves_when_told_to_stop(&stops);
}

#[test]
fn nothing_outlives_a_trainer_whose_worker_is_gone() {
    let world = World::shell(
        "echo '{\"event\":\"epoch\",\"epoch\":0,\"train\":1,\"validation\":1}' >&3\n(setsid sleep 1000 &)\nsleep 1000\n",
    );
    let mut trainer = world.trainer();
    trainer.tell(&world.request(1));
    while trainer.event().0 != "epoch" {}
    let Trainer { mut child, commands, .. } = trainer;
    drop(commands);
    child.wait().unwrap();
    let marks = world.folder.path().display().to_string();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let works_in = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        assert!(!works_in.display().to_string().starts_with(&marks), "{} is left", entry.path().display());
    }
}

/// A script that saves when told to and goes on from there.
const IN_PYTHON: &str = r#"
import pathlib, sys
import togl
with togl.fold(width=3) as fold:
    assert fold.settings == {"lr": 0.25, "mode": "a", "width": 3}, fold.settings
    start = int(fold.resume.read_text()) if fold.resume else 0
    assert start == fold.start
    total = 40
    for epoch in range(start, total):
        fold.epoch(epoch, total, train=0.5, validation=epoch / total)
        while epoch == 7 and start == 0 and not fold.wants_save:
            pass
        if fold.wants_save:
            with fold.saving(epoch) as path:
                path.write_text(str(epoch + 1))
    fold.result(test=0.25 + start / 1000)
"#;

fn python() -> Option<PathBuf> {
    let found = Command::new("python3")
        .arg("-c")
        .arg("import sys; print(sys.executable)")
        .stderr(Stdio::null())
        .output();
    let path = found.ok().filter(|output| output.status.success())?.stdout;
    Some(PathBuf::from(String::from_utf8(path).ok()?.trim()))
}

#[test]
fn a_fold_that_was_told_to_stop_goes_on_where_its_program_saved() {
    let Some(python) = python() else { return eprintln!("skipped: there is no python3") };
    let mut world = World::of("[python3, train.py]", "train.py", IN_PYTHON, "own");
    world.python = Some(python);
    let mut trainer = world.trainer();
    trainer.tell(&world.request(1));
    let mut epochs = 0;
    while epochs < 8 {
        epochs += u32::from(trainer.event().0 == "epoch");
    }
    trainer.tell(&json!("stop"));
    let ended = last(&mut trainer);
    assert_eq!(ended["failed"]["class"], "preempted", "{ended}");
    trainer.child.wait().unwrap();
    let kept: Vec<_> = fs::read_dir(world.path("checkpoints")).unwrap().flatten().collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let done = world.train();
    let result = &done["done"];
    assert_eq!(result["test"]["accuracy"], 0.258, "it went on after epoch 8: {done}");
    let epochs: Vec<u64> =
        result["history"].as_array().unwrap().iter().map(|line| line["epoch"].as_u64().unwrap()).collect();
    assert_eq!(epochs, (0..40).collect::<Vec<u64>>(), "the curve is whole");
    let environment = result["provenance"]["code_version"].as_str().unwrap();
    assert!(environment.contains("Python 3.") && environment.contains("packages"), "{environment}");
}

#[test]
fn an_error_of_a_script_in_python_is_told_in_its_words() {
    let Some(python) = python() else { return eprintln!("skipped: there is no python3") };
    for (body, class, words) in [
        (
            "raise RuntimeError('CUDA out of memory. Tried to allocate')",
            "out-of-memory",
            "CUDA out of memory",
        ),
        ("raise KeyError('width')", "error", "KeyError: 'width'"),
        ("fold.result(test=float('nan'), validation=1, train=1)", "not-finite", "test is nan"),
    ] {
        let script = format!("import togl\nwith togl.fold() as fold:\n    {body}\n");
        let mut world = World::of("[python3, train.py]", "train.py", &script, "own");
        world.python = Some(python.clone());
        let (found, message) = world.failure();
        assert!(found == class && message.contains(words), "{found}: {message}");
    }
}
