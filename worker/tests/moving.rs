//! Folds that move: the real worker is killed on one machine, or told to leave it, and another one with a state directory of its
//! own, which shares nothing but the coordinator, ends the fold. The numbers are those of an undisturbed run, and nothing is
//! trained again that had been brought.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use togl_coordinator::service::{Coordinator, ServiceSettings};
use togl_coordinator::store::address::StoreAddress;
use togl_coordinator::store::{ResultKind, ResultQuery};
use togl_proto::{client, wire};
use tokio::sync::oneshot;

/// One fold of a few short epochs, each a single batch.
const SWEEP: &str = "\
version: 1
name: moving
base: {dataset: necklaces, togl: true, hidden_dim: 16, depth: 2, dropout_p: 0.1, batch_size: 1000, max_epochs: 16, lr_min: 0.0}
splits: [3]
";

/// A coordinator with the sweep, and machines that share nothing.
struct World {
    folder: tempfile::TempDir,
    address: String,
    worker_token: String,
    operator_token: String,
    stop: oneshot::Sender<()>,
    ended: tokio::task::JoinHandle<()>,
}

impl World {
    #[expect(clippy::disallowed_methods, reason = "a test may spawn")]
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (store, tokens) = (folder.path().join("store.sqlite"), folder.path().join("tokens.json"));
        let settings = ServiceSettings::new(&store, &tokens, ([127, 0, 0, 1], 0).into());
        let coordinator = Coordinator::start_with(settings).await.unwrap();
        let (address, tokens) = (coordinator.address().to_string(), coordinator.tokens().clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let run = async move { coordinator.run(async move { drop(stopped.await) }).await.unwrap() };
        let ended = tokio::spawn(run);
        let mut people = client::sweeps(&address, &tokens.operator).await.unwrap();
        let submission = wire::SubmitRequest { yaml: SWEEP.to_owned(), ..Default::default() };
        people.submit(submission).await.unwrap();
        let (worker_token, operator_token) = (tokens.worker, tokens.operator);
        Self { folder, address, worker_token, operator_token, stop, ended }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A worker on a machine; data sets are the same everywhere and need not be made twice.
    fn worker(&self, machine: &str, options: &[&str]) -> Child {
        self.start(machine, options, None)
    }

    /// The same, which ends itself at a point of `worker/agent/src/crash.rs`.
    fn start(&self, machine: &str, options: &[&str], crash: Option<&str>) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_togl-worker"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TOGL_")) {
            command.env_remove(name);
        }
        let log = fs::File::create(self.path(machine).with_extension("log")).unwrap();
        command.args(["-v", "join", &self.address, "--slots", "1", "--device", "cpu", "--offline"]);
        command.args(options).arg("--state").arg(self.path(machine));
        command.env("TOGL_TOKEN", &self.worker_token).env("XDG_CACHE_HOME", self.path("cache"));
        command.envs(crash.map(|point| ("TOGL_CRASH", point)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
    }

    fn log(&self, machine: &str) -> String {
        fs::read_to_string(self.path(machine).with_extension("log")).unwrap_or_default()
    }

    /// How far the checkpoint is that the coordinator holds, which the name of its file says; 0 without one.
    fn held(&self) -> u32 {
        let entries = fs::read_dir(self.path("held-checkpoints")).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let whole = names.filter(|name| name.ends_with(".checkpoint"));
        whole.map(|name| name.split('-').nth(3).unwrap().parse().unwrap()).max().unwrap_or(0)
    }

    /// Looks again and again until something is so; the worker must live through it.
    async fn until(&self, machine: &str, worker: &mut Child, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..24_000 {
            if is_so(self) {
                return;
            }
            if let Some(status) = worker.try_wait().unwrap() {
                panic!("{machine} ended with {status}: {}", self.log(machine));
            }
            tokio::time::sleep(Duration::from_millis(5)).await; // nothing depends on how long
        }
        panic!("waited in vain: {}", self.log(machine));
    }

    /// Lets a machine end the fold. Says after which epoch it began.
    async fn end_on(self, machine: &str) -> (u32, Value) {
        let mut worker = self.worker(machine, &[]);
        let mut people = client::sweeps(&self.address, &self.operator_token).await.unwrap();
        loop {
            let asked = wire::StatusRequest { sweep: "moving".to_owned() };
            let summary = people.status(asked).await.unwrap().into_inner().summary.unwrap();
            assert_eq!(summary.failed, 0, "{}", self.log(machine));
            if summary.finished == 1 {
                break;
            }
            if let Some(status) = worker.try_wait().unwrap() {
                panic!("{machine} ended with {status}: {}", self.log(machine));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.until(machine, &mut worker, |world| world.held() == 0).await; // its result is safe
        terminate(&worker);
        assert!(worker.wait().unwrap().success());
        let log = self.log(machine);
        let began = log.lines().find_map(|line| line.split_once("goes on after epoch "));
        let began = began.map_or(0, |(_, rest)| rest.split(',').next().unwrap().parse().unwrap());
        drop(self.stop);
        self.ended.await.unwrap();
        (began, result(&self.folder.path().join("store.sqlite")))
    }
}

fn terminate(worker: &Child) {
    // SAFETY: plain numbers; the child has not been waited for, so its id is still its own.
    assert_eq!(unsafe { libc::kill(worker.id() as libc::pid_t, libc::SIGTERM) }, 0);
}

/// The numbers of the one fold, which has one result and nothing beside it.
fn result(store: &Path) -> Value {
    let store = StoreAddress::Sqlite(store.to_owned()).open().unwrap();
    let reader = store.reader().unwrap();
    let rows = |kind| {
        let query = ResultQuery { kind, ..ResultQuery::accepted("moving".parse().unwrap()) };
        reader.results(&query).unwrap().rows
    };
    assert_eq!(rows(ResultKind::Replicate).len() + rows(ResultKind::Conflict).len(), 0);
    let accepted = rows(ResultKind::Accepted);
    assert_eq!(accepted.len(), 1);
    let mut numbers = serde_json::to_value(&accepted[0].result).unwrap();
    for varying in ["seconds", "finished_at", "peak_memory", "provenance"] {
        assert!(numbers.as_object_mut().unwrap().remove(varying).is_some(), "{varying} is missing");
    }
    numbers
}

async fn undisturbed() -> Value {
    let (began, numbers) = World::new().await.end_on("calm").await;
    assert_eq!(began, 0);
    numbers
}

const ALWAYS: [&str; 4] = ["--checkpoint-seconds", "0", "--upload-seconds", "0"];
const NEVER: [&str; 4] = ["--checkpoint-seconds", "3600", "--upload-seconds", "3600"];

#[tokio::test(flavor = "multi_thread")]
async fn a_fold_that_is_killed_on_one_machine_ends_on_another_with_the_same_numbers() {
    let world = World::new().await;
    let mut first = world.worker("first", &ALWAYS);
    world.until("first", &mut first, |world| world.held() >= 3).await;
    first.kill().unwrap(); // SIGKILL
    first.wait().unwrap();
    let held = world.held();
    fs::remove_dir_all(world.path("first")).unwrap(); // the machine never comes back
    let (began, numbers) = world.end_on("second").await;
    assert!((3..=16).contains(&held) && began >= held, "held {held}, began after {began}");
    assert_eq!(numbers, undisturbed().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_told_to_leave_brings_its_fold_first_and_no_epoch_is_trained_twice() {
    let world = World::new().await;
    let mut first = world.worker("first", &NEVER);
    world.until("first", &mut first, |world| world.log("first").contains("epoch 4 of 16")).await;
    assert_eq!(world.held(), 0, "not before it is told to leave");
    terminate(&first);
    assert!(first.wait().unwrap().success(), "{}", world.log("first"));
    let held = world.held();
    let log = world.log("first");
    assert!(held >= 4, "nothing was brought: {log}");
    let stopped = log.lines().any(|line| line.contains(&format!("stopped after {held} epoch")));
    assert!(stopped || log.contains("test accuracy"), "the last epoch is the one that was brought: {log}");
    let (began, numbers) = world.end_on("second").await;
    assert_eq!(began, held, "not one epoch is trained again");
    assert_eq!(numbers, undisturbed().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_the_disk_of_the_coordinator_changed_costs_time_and_no_result() {
    let world = World::new().await;
    let mut first = world.worker("first", &ALWAYS);
    world.until("first", &mut first, |world| world.held() >= 2).await;
    first.kill().unwrap();
    first.wait().unwrap();
    let entries = fs::read_dir(world.path("held-checkpoints")).unwrap();
    for path in entries.map(|entry| entry.unwrap().path()) {
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
    let log = world.path("second").with_extension("log");
    let mut second = world.worker("second", &NEVER);
    world
        .until("second", &mut second, |_| {
            fs::read_to_string(&log).is_ok_and(|text| text.contains("is not fetched: it came torn"))
        })
        .await;
    second.kill().unwrap();
    second.wait().unwrap();
    let (began, numbers) = world.end_on("second").await;
    assert_eq!((began, numbers), (0, undisturbed().await));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_host_left_that_never_returns_is_delivered_by_hand_and_only_so() {
    let world = World::new().await;
    let mut first = world.start("first", &[], Some("report:1"));
    let ended = tokio::task::spawn_blocking(move || first.wait().unwrap()).await.unwrap();
    assert!(!ended.success());
    let left = world.path("first").join("worker");
    let own = fs::read_to_string(left.join("host")).unwrap();
    fs::write(left.join("host"), "another-host\n").unwrap();
    // The next worker on this home is of another host and leaves it alone, or there would be two results of one attempt.
    let mut second = world.start("first", &[], None);
    world
        .until("first", &mut second, |world| {
            fs::read_to_string(world.path("first/worker-2/host")).is_ok_and(|host| host == own)
        })
        .await;
    terminate(&second);
    second.wait().unwrap();

    let deliver = |folder: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_togl-worker"));
        command.arg("deliver").arg(folder).arg(&world.address).env("TOGL_TOKEN", &world.worker_token);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = tokio::task::block_in_place(|| deliver(&left));
    assert!(code == Some(0) && said.contains("delivered 1 of 1 results"), "{code:?}: {said}");
    let (code, said) = tokio::task::block_in_place(|| deliver(&left));
    assert!(code == Some(0) && said.contains("delivered 0 of 0 results"), "{code:?}: {said}");
    let (code, said) = tokio::task::block_in_place(|| deliver(&world.path("nowhere")));
    assert!(
        code == Some(2) && said.contains("is not the folder of a worker\n\n  hint: name"),
        "{code:?}: {said}"
    );
    drop(world.stop);
    world.ended.await.unwrap();
    assert_eq!(result(&world.folder.path().join("store.sqlite")), undisturbed().await);
}
