//! Real processes that are killed in the middle: `togl-worker train` and the trainer child. Whoever goes on must end
//! with the numbers of an undisturbed run. Nothing here waits for a time, only for things to happen.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod processes;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use processes::{Place, Trainer, numbers, result_of, worker};
use serde_json::{Value, json};
use togl_sweeps::TrialConfig;

/// One fold of a few short epochs. Each is a single batch: a wish to stop is then followed after a whole epoch, however
/// slow the machine; a longer epoch would be cut short.
fn trial() -> TrialConfig {
    TrialConfig {
        dataset: "necklaces".to_owned(),
        togl: true,
        hidden_dim: 16,
        depth: 2,
        dropout_p: 0.1,
        batch_size: 1000,
        max_epochs: 16,
        lr_min: 0.0,
        ..TrialConfig::default()
    }
}

/// The same for stories in which nobody has to come in time.
fn short() -> TrialConfig {
    TrialConfig { max_epochs: 3, ..trial() }
}

impl Place {
    fn new() -> Self {
        Self::of(trial())
    }
}

/// Polls until something is there, or until the process that should make it is gone.
fn until<T>(child: &mut Child, what: &str, mut there: impl FnMut() -> Option<T>) -> T {
    for _ in 0..12_000 {
        if let Some(found) = there() {
            return found;
        }
        if let Some(status) = child.try_wait().unwrap() {
            panic!("waited for {what}, but the process ended with {status}");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("waited in vain for {what}");
}

fn undisturbed(trial: TrialConfig) -> Value {
    let calm = Place::of(trial);
    let result = result_of(&calm.train().output().unwrap());
    assert_eq!(calm.checkpoints(), Vec::<PathBuf>::new(), "a finished fold leaves no checkpoint");
    assert!(result["peak_memory"].as_u64().unwrap() > 0);
    numbers(&result)
}

fn signal(child: &Child, signal: libc::c_int) {
    // SAFETY: plain numbers; the child has not been waited for, so its id is still its own.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, signal) }, 0);
}

#[test]
fn a_fold_that_was_killed_goes_on_and_ends_with_the_same_numbers() {
    let place = Place::new();
    let mut child = place.train().spawn().unwrap();
    until(&mut child, "a checkpoint", || (!place.checkpoints().is_empty()).then_some(()));
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    assert_eq!(place.checkpoints().len(), 1, "the checkpoint outlives its writer");
    let second = place.train().output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("goes on after epoch"), "{said}");
    assert_eq!(numbers(&result_of(&second)), undisturbed(trial()));
    assert_eq!(place.checkpoints(), Vec::<PathBuf>::new(), "a finished fold leaves no checkpoint");
}

/// The program ends itself while it writes the checkpoint of some epoch (`worker/agent/src/crash.rs`).
#[test]
fn a_fold_that_ends_at_any_point_of_a_checkpoint_goes_on_and_ends_with_the_same_numbers() {
    use std::os::unix::process::ExitStatusExt;
    let calm = undisturbed(trial());
    for point in ["write:1", "half-written:2", "written:1", "synced:3", "renamed:1", "kept:2"] {
        let place = Place::new();
        let first = place.train().env("TOGL_CRASH", point).output().unwrap();
        assert_eq!(first.status.signal(), Some(libc::SIGABRT), "{point} was not reached");
        let (kept, count) = point.rsplit_once(':').unwrap();
        let whole = count != "1" || ["renamed", "kept"].contains(&kept);
        assert_eq!(place.checkpoints().len(), usize::from(whole), "{point}");
        let second = place.train().output().unwrap();
        let said = String::from_utf8_lossy(&second.stderr).into_owned();
        assert_eq!(said.contains("goes on after epoch"), whole, "{point}: {said}");
        assert!(!said.contains("is ignored"), "{point}: nothing half-written is ever looked at: {said}");
        assert_eq!(numbers(&result_of(&second)), calm, "{point}");
        assert_eq!(place.checkpoints(), Vec::<PathBuf>::new(), "{point}");
    }
}

/// Whether the process has a handler of its own for this signal.
#[cfg(target_os = "linux")]
fn handles(process: u32, signal: libc::c_int) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or_default();
    u64::from_str_radix(caught.trim(), 16).unwrap_or(0) & (1 << (signal - 1)) != 0
}

#[cfg(target_os = "linux")]
#[test]
fn a_fold_that_was_asked_to_stop_saves_itself_and_says_how_to_go_on() {
    let place = Place::new();
    let mut child = place.train_saving_every("100000").spawn().unwrap(); // nothing is saved but at the stop
    let process = child.id();
    until(&mut child, "its signal handler", || handles(process, libc::SIGTERM).then_some(()));
    signal(&child, libc::SIGTERM);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("the same command goes on"), "{said}");
    assert_eq!(place.checkpoints().len(), 1);
    assert_eq!(numbers(&result_of(&place.train().output().unwrap())), undisturbed(trial()));
}

#[test]
fn trainers_hand_a_fold_to_each_other_through_saved_stopped_and_killed_attempts() {
    let place = Place::new();

    let mut first = Trainer::start(worker());
    first.train(1, &place);
    assert_eq!(first.event().0, "epoch");
    first.tell(&json!("save"));
    until(&mut first.child, "the checkpoint", || (place.checkpoints().len() == 1).then_some(()));
    first.child.kill().unwrap();
    first.child.wait().unwrap();

    let mut second = Trainer::start(worker());
    second.train(2, &place);
    assert_eq!(second.event().0, "epoch");
    second.tell(&json!("stop"));
    let (kind, failure, epochs) = second.outcome();
    assert_eq!((kind.as_str(), failure["class"].as_str().unwrap()), ("failed", "preempted"), "{failure}");
    assert!(epochs <= 1, "it stops after the epoch in hand, not after {epochs} more");
    assert!(second.child.wait().unwrap().success(), "a trainer that was told to stop leaves");
    assert_eq!(place.checkpoints().len(), 2, "one file an attempt");

    let mut third = Trainer::start(worker());
    third.train(3, &place);
    let (kind, result, epochs) = third.outcome();
    assert_eq!(kind, "done", "{result}");
    assert!(epochs <= 14, "it went on instead of starting anew");
    assert_eq!(numbers(&result), undisturbed(trial()));
    assert_eq!(
        place.checkpoints().len(),
        2,
        "they go when the result is acknowledged, which is the agent's part"
    );
    assert!(place.path("models").join(format!("{}-3-4.safetensors", trial().id())).exists());

    third.train(4, &place);
    let (kind, again, epochs) = third.outcome();
    assert_eq!((kind.as_str(), numbers(&again)), ("done", numbers(&result)), "the trainer lives on");
    assert!(epochs <= 14);
    drop(third.commands);
    third.child.wait().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_trainer_that_gets_sigterm_saves_its_fold_and_reports_it_as_preempted() {
    let place = Place::new();
    let mut trainer = Trainer::start(worker());
    trainer.train(1, &place);
    assert_eq!(trainer.event().0, "epoch");
    signal(&trainer.child, libc::SIGTERM);
    let (kind, failure, _) = trainer.outcome();
    assert_eq!((kind.as_str(), failure["class"].as_str().unwrap()), ("failed", "preempted"), "{failure}");
    assert_eq!(place.checkpoints().len(), 1);
    assert!(trainer.child.wait().unwrap().success());
}

#[test]
fn filtrations_come_from_a_model_a_checkpoint_or_a_trial_and_agree() {
    let place = Place::of(short());
    let whole = place.train().arg("--keep-models").arg(place.path("models")).output().unwrap();
    result_of(&whole);
    let model = place.path("models").join(format!("{}-3-4.safetensors", short().id()));
    let filtrations = |arguments: &[&str], file: &Path| {
        let output =
            worker().arg("filtrations").args(arguments).arg(file).args(["--graph", "0", "7"]).output();
        result_of(&output.unwrap())
    };
    let learnt = filtrations(&["--checkpoint"], &model);
    assert_eq!((&learnt["dataset"], &learnt["num_filtrations"]), (&json!("necklaces"), &json!(8)));
    let graph = &learnt["graphs"][1];
    assert_eq!(graph["graph"], 7);
    let vertices = graph["vertices"].as_u64().unwrap() as usize;
    assert_eq!(graph["filtrations"].as_array().unwrap().len(), 8);
    assert_eq!(graph["filtrations"][0].as_array().unwrap().len(), vertices);
    assert_eq!(graph["degrees"].as_array().unwrap().len(), vertices);
    let checkpoints = place.path("checkpoints");
    let place_for_checkpoints = checkpoints.to_string_lossy();
    let arguments = ["--split", "3", "--seed", "4", "--checkpoint-dir", &place_for_checkpoints, "--trial"];
    assert_eq!(filtrations(&arguments, &place.path("trial.json")), learnt);
}

/// What a newcomer runs into: the message must contain these words, and the exit code is 2.
#[test]
fn mistakes_get_a_clear_message_and_exit_code_2() {
    let place = Place::new();
    let file = |name: &str, text: &str| {
        fs::write(place.path(name), text).unwrap();
        place.path(name).to_string_lossy().into_owned()
    };
    let unknown = file("unknown.yaml", "version: 1\nname: x\nbase: {dataset: necklases}\n");
    let several =
        file("several.yaml", "version: 1\nname: x\nbase: {dataset: necklaces}\ngrid: {depth: [1, 2]}\n");
    let typo = file("typo.yaml", "version: 1\nname: x\nbase: {dataset: necklaces, dept: 2}\n");
    let broken = file("broken.json", "{\"canonical\":1,");
    let plain = file("plain.yaml", "version: 1\nname: x\nbase: {dataset: necklaces}\n");
    let good = file("good.json", &trial().canonical());
    let kernel =
        file("kernel.yaml", "version: 1\nname: x\nbase: {dataset: necklaces, model: ph, outer_folds: 3}\n");
    let absent = file("absent.yaml", "version: 1\nname: x\nbase: {dataset: ENZYMES, model: wl}\n");
    let text = file("text.safetensors", "this is not a checkpoint at all");
    let missing = place.path("nowhere.yaml").to_string_lossy().into_owned();
    let folder = place.path("empty").to_string_lossy().into_owned();
    let cases: [(&[&str], &str); 13] = [
        (&["join", "http://127.0.0.1:7447"], "is not an address; use HOST:PORT"),
        (&["train", "--trial", &missing], "hint: --trial names"),
        (&["train", "--trial", &kernel, "--split", "3"], "hint: valid splits are 0 to 2"),
        (&["train", "--trial", &absent, "--offline", "--data-dir", &folder], "hint: "),
        (&["train", "--trial", &unknown], "did you mean `necklaces`"),
        (&["train", "--trial", &several], "hint: `togl hash"),
        (&["train", "--trial", &typo], "did you mean `depth`"),
        (&["train", "--trial", &broken], "broken.json"),
        (&["train", "--trial", &good, "--device", "cuda:7"], "no usable device cuda:7"),
        (&["filtrations", "--checkpoint", &text, "--graph", "0"], "not a checkpoint"),
        (&["filtrations", "--checkpoint", &missing, "--graph", "0"], "cannot read"),
        (&["filtrations", "--trial", &plain, "--graph", "0"], "no topological layer"),
        (&["filtrations", "--graph", "0"], "--checkpoint"),
    ];
    for (arguments, word) in cases {
        let output = worker().args(arguments).env("XDG_STATE_HOME", place.path("home")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(word), "{arguments:?} does not say {word:?}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}

/// Training goes on whatever is wrong with checkpoints, says so once, and gives the same numbers.
#[test]
fn trouble_with_checkpoints_is_a_warning_and_never_the_end_of_a_fold() {
    let calm = undisturbed(short());
    let place = Place::of(short());
    fs::write(place.path("checkpoints"), "a file in the way of the folder").unwrap();
    let output = place.train().output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.matches("no checkpoint written, training goes on without").count(), 1, "{said}");
    assert_eq!(numbers(&result_of(&output)), calm, "a folder that cannot be made");

    let place = Place::of(short());
    let stem = format!("{}-3-4", short().id());
    fs::create_dir(place.path("checkpoints")).unwrap();
    fs::write(place.path("checkpoints").join(format!("{stem}.1.safetensors")), "torn").unwrap();
    let output = place.train().output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("is ignored") && said.contains("torn"), "{said}");
    assert_eq!(numbers(&result_of(&output)), calm, "a torn checkpoint");

    // A disk that takes nothing: every file this process writes may have no byte at all.
    let place = Place::of(short());
    let train = place.train();
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]);
    let output = shell.arg(train.get_program()).args(train.get_args()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.matches("no checkpoint written").count(), 1, "{said}");
    assert_eq!(numbers(&result_of(&output)), calm, "a full disk");
    assert_eq!(fs::read_dir(place.path("checkpoints")).unwrap().count(), 0, "nothing half-written");
}

#[test]
fn two_trainers_of_one_fold_may_share_a_folder() {
    let place = Place::of(short());
    let (mut one, mut two) = (Trainer::start(worker()), Trainer::start(worker()));
    one.train(1, &place);
    two.train(1, &place); // the same attempt: two stores may know the same fold
    for trainer in [&mut one, &mut two] {
        assert_eq!(trainer.event().0, "epoch");
        trainer.tell(&json!("save"));
    }
    let (first, second) = (one.outcome(), two.outcome());
    assert_eq!((first.0.as_str(), second.0.as_str()), ("done", "done"));
    assert_eq!(numbers(&first.1), numbers(&second.1));
    for mut trainer in [one, two] {
        drop(trainer.commands);
        trainer.child.wait().unwrap();
    }
}

/// Priority and scheduling class of a thread, as the kernel's numbers.
fn priority(thread: &Path) -> Option<(i32, u32)> {
    let stat = fs::read_to_string(thread.join("stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect(); // from field 3 on, see proc(5)
    Some((fields.get(19 - 3)?.parse().ok()?, fields.get(41 - 3)?.parse().ok()?))
}

#[test]
fn a_trainer_in_the_background_has_the_lowest_priority_in_all_its_threads_and_trains_the_same() {
    let expected = undisturbed(short());
    let place = Place::of(short());
    let mut trainer = Trainer::start_with(worker(), &["--background"]);
    trainer.train(1, &place);
    let tasks = fs::read_dir(format!("/proc/{}/task", trainer.child.id())).unwrap();
    let threads: Vec<_> = tasks.filter_map(|task| priority(&task.unwrap().path())).collect();
    let lowest = (19, libc::SCHED_IDLE.unsigned_abs());
    assert!(threads.len() > 1 && threads.iter().all(|thread| *thread == lowest), "{threads:?}");
    let (kind, result, _) = trainer.outcome();
    assert_eq!(kind, "done", "{result}");
    assert_eq!(numbers(&result), expected);
}

/// A stopped process cannot notice that nobody is left to train for.
#[test]
fn a_paused_trainer_dies_with_its_worker() {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"exec 3<&0; "$0" trainer --background <&3 & echo $!; read rest"#]);
    shell.arg(env!("CARGO_BIN_EXE_togl-worker")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    let mut number = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut number).unwrap();
    let process = PathBuf::from(format!("/proc/{}", number.trim()));
    until(&mut shell, "low priority", || priority(&process).filter(|(nice, _)| *nice == 19));
    // SAFETY: takes plain numbers; the process is ours and has not been waited for.
    assert_eq!(unsafe { libc::kill(number.trim().parse().unwrap(), libc::SIGSTOP) }, 0);
    let commands = shell.stdin.take();
    shell.kill().unwrap();
    shell.wait().unwrap();
    let is_gone = || fs::read_to_string(process.join("stat")).map_or(true, |stat| stat.contains(") Z "));
    while !is_gone() {
        std::thread::yield_now();
    }
    drop(commands); // it did not die because its input ended
}
