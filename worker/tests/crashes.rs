//! The real worker ends itself at every point of spooling and reporting, is started again, and what a real coordinator
//! then holds is compared with an undisturbed run: no result lost, none doubled, nothing left behind. The points are
//! those of `worker/agent/src/crash.rs`. A process that ends keeps what the system has in memory: what a power cut
//! takes is not tried here.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use togl_coordinator::service::{Coordinator, ServiceSettings};
use togl_coordinator::store::address::StoreAddress;
use togl_coordinator::store::{ResultKind, ResultQuery};
use togl_proto::{client, wire};
use tokio::sync::oneshot;

const SWEEP: &str = "\
version: 1
name: crashes
base: {dataset: necklaces, hidden_dim: 4, depth: 1, max_epochs: 2}
splits: [42, 43]
";

/// A coordinator with one sweep, and the folder that all processes of a worker share.
struct Place {
    folder: tempfile::TempDir,
    address: String,
    worker_token: String,
    operator_token: String,
    stop: oneshot::Sender<()>,
    ended: tokio::task::JoinHandle<()>,
}

impl Place {
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

    fn worker(&self, crash: Option<&str>) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_togl-worker"));
        // What the person who runs the tests has set must not matter.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TOGL_")) {
            command.env_remove(name);
        }
        let log = fs::File::options().create(true).append(true).open(self.path("log")).unwrap();
        command.args(["join", &self.address, "--slots", "1", "--device", "cpu", "--offline"]);
        command.args(["--checkpoint-seconds", "0", "--state"]).arg(self.path("state"));
        command.env("TOGL_TOKEN", &self.worker_token).env("XDG_CACHE_HOME", self.path("cache"));
        command.envs(crash.map(|point| ("TOGL_CRASH", point)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.spawn().unwrap()
    }

    /// Waits until everything is trained and acknowledged; the worker must live through it.
    async fn until_done(&self, worker: &mut Child) {
        let mut people = client::sweeps(&self.address, &self.operator_token).await.unwrap();
        for _ in 0..12_000 {
            if let Some(status) = worker.try_wait().unwrap() {
                panic!("the worker ended with {status}: {}", self.log());
            }
            let asked = wire::StatusRequest { sweep: "crashes".to_owned() };
            let summary = people.status(asked).await.unwrap().into_inner().summary.unwrap();
            assert_eq!(summary.failed, 0, "{}", self.log());
            if summary.pending + summary.running == 0 && self.left_in("state/worker/spool").is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await; // looks again; nothing depends on how long
        }
        panic!("waited in vain: {}", self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Files in a folder, but the lock and what was put aside.
    fn left_in(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "lock" && name != "rejected").collect()
    }

    /// Ends the coordinator and gives what it holds.
    async fn end(self) -> (Held, tempfile::TempDir) {
        drop(self.stop);
        self.ended.await.unwrap();
        (held(&self.folder.path().join("store.sqlite")), self.folder)
    }
}

/// The numbers of each fold that count, and how many results there are beside them.
#[derive(Debug, PartialEq)]
struct Held {
    accepted: BTreeMap<String, Value>,
    beside: usize,
}

fn held(store: &Path) -> Held {
    let store = StoreAddress::Sqlite(store.to_owned()).open().unwrap();
    let reader = store.reader().unwrap();
    let rows = |kind| {
        let query = ResultQuery { kind, ..ResultQuery::accepted("crashes".parse().unwrap()) };
        reader.results(&query).unwrap().rows
    };
    let accepted = rows(ResultKind::Accepted).into_iter().map(|row| {
        let mut numbers = serde_json::to_value(&row.result).unwrap();
        for varying in ["seconds", "finished_at", "peak_memory", "provenance"] {
            assert!(numbers.as_object_mut().unwrap().remove(varying).is_some(), "{varying} is missing");
        }
        (row.fold.to_string(), numbers)
    });
    Held {
        accepted: accepted.collect(),
        beside: rows(ResultKind::Replicate).len() + rows(ResultKind::Conflict).len(),
    }
}

fn leave(mut worker: Child) -> ExitStatus {
    // SAFETY: plain numbers; the child has not been waited for, so its id is still its own.
    assert_eq!(unsafe { libc::kill(worker.id() as libc::pid_t, libc::SIGTERM) }, 0);
    worker.wait().unwrap()
}

/// What the coordinator holds in the end; the worker ends once at `crash`.
async fn end_state(crash: Option<&str>) -> Held {
    let place = Place::new().await;
    if crash.is_some() {
        let mut first = place.worker(crash);
        let ended = tokio::task::spawn_blocking(move || first.wait().unwrap()).await.unwrap();
        assert_eq!(ended.signal(), Some(libc::SIGABRT), "{crash:?} was not reached: {}", place.log());
    }
    let mut second = place.worker(None);
    place.until_done(&mut second).await;
    assert!(leave(second).success(), "{crash:?}: {}", place.log());
    for folder in ["state/worker/spool", "state/worker/spool/rejected", "state/checkpoints"] {
        assert_eq!(place.left_in(folder), Vec::<String>::new(), "{crash:?}: {folder}");
    }
    place.end().await.0
}

async fn survives(points: &[&str]) {
    let undisturbed = end_state(None).await;
    assert_eq!((undisturbed.accepted.len(), undisturbed.beside), (2, 0));
    for point in points {
        assert_eq!(end_state(Some(point)).await, undisturbed, "{point}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_ends_at_any_point_of_writing_its_spool_loses_and_doubles_nothing() {
    survives(&["write:1", "half-written:1", "written:2", "synced:1", "renamed:1", "kept:2"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_ends_at_any_point_of_a_report_loses_and_doubles_nothing() {
    survives(&["report:1", "reported:1", "reported:2", "acknowledged:1", "acknowledged:2", "removed:1"])
        .await;
}
