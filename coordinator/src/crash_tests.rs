//! The process is ended at every point of a commit, an acknowledgement or a rename, started again until the sweep is
//! done, and what it leaves is compared: one accepted result a fold, each with the right numbers, and nothing that was
//! acknowledged is gone. The process is this test program itself, started again with one test and an environment.
//! `copies` does the same to backups, restores, migrations and upgrades, `state` to tokens and certificates.

#[path = "crash_tests/copies.rs"]
mod copies;
#[path = "crash_tests/state.rs"]
mod state;

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use tempfile::TempDir;
use togl_scheduler::{Event, Limits, Reply, ResultAnswer, SavedState};
use togl_sweeps::result::example;
use togl_sweeps::{Attempt, FoldKey};

use crate::clock::SystemClock;
use crate::driver::{self, Handle};
use crate::store::address::StoreAddress;
use crate::store::contract::{join, submission, sweep, worker};
use crate::store::postgres_server::Server;
use crate::store::{ResultKind, ResultQuery};

const FOLDS: u32 = 12;

/// The process that may be ended: a coordinator and a worker that spools what it has finished.
#[test]
fn child() {
    let Ok(job) = std::env::var("TOGL_CRASH_JOB") else { return };
    let store: StoreAddress = std::env::var("TOGL_CRASH_STORE").unwrap().parse().unwrap();
    let notes = std::env::var("TOGL_CRASH_NOTES").unwrap();
    let notes = Path::new(&notes);
    match job.as_str() {
        "sweep" => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(work(&store, notes));
        }
        "state" => state::make(notes),
        job => copies::copy(job, &store, notes),
    }
    fs::write(notes.join("done"), "").unwrap();
}

async fn work(store: &StoreAddress, notes: &Path) {
    let clock = Arc::new(SystemClock::new());
    let (handle, running) = driver::start(store.open().unwrap(), clock, Limits::default()).unwrap();
    handle.call(submission("s", 0..FOLDS)).await.unwrap();
    handle.call(join("w", 4)).await.unwrap();
    for (fold, attempt) in spooled(notes) {
        tell(&handle, notes, fold, attempt).await;
    }
    loop {
        let asked = handle.call(Event::LeasesAsked { worker: worker("w"), count: 3 }).await.unwrap();
        let Reply::Leases(leases) = asked else { panic!("leases") };
        if leases.is_empty() {
            break;
        }
        for lease in &leases {
            note(notes, "spool", lease.fold, lease.attempt);
        }
        for (number, lease) in leases.iter().enumerate() {
            let text = format!("epoch of {}\n", lease.fold);
            handle.append_log(worker("w"), lease.fold, lease.attempt, text).await.unwrap();
            if number == 0 {
                handle.call_all(Vec::new()).await.unwrap(); // a round of its own; the others go with the reports
            }
        }
        let told = leases.iter().map(|lease| tell(&handle, notes, lease.fold, lease.attempt));
        futures::future::join_all(told).await;
    }
    handle.stop().await;
    running.ended().await.unwrap();
}

/// Reports the result of a fold, which is always the same, and notes that it was acknowledged.
async fn tell(handle: &Handle, notes: &Path, fold: FoldKey, attempt: Attempt) {
    let result = Box::new(example(f64::from(fold.split) / 16.0).check().unwrap());
    let reported = Event::ResultReported { worker: worker("w"), fold, attempt, result };
    match handle.call(reported).await.unwrap() {
        Reply::Result(ResultAnswer::Refused(_)) => panic!("a result of an issued attempt was refused"),
        Reply::Result(_) => note(notes, "acknowledged", fold, attempt),
        other => panic!("{other:?}"),
    }
}

fn note(notes: &Path, name: &str, fold: FoldKey, attempt: Attempt) {
    let mut file = OpenOptions::new().create(true).append(true).open(notes.join(name)).unwrap();
    file.write_all(format!("{fold} {attempt}\n").as_bytes()).unwrap();
}

/// Folds and attempts of a file of notes.
fn noted(notes: &Path, name: &str) -> BTreeSet<(String, u32)> {
    let text = fs::read_to_string(notes.join(name)).unwrap_or_default();
    let line = |line: &str| {
        let (fold, attempt) = line.split_once(' ').unwrap();
        (fold.to_owned(), attempt.parse().unwrap())
    };
    text.lines().map(line).collect()
}

/// What was finished and not acknowledged.
fn spooled(notes: &Path) -> Vec<(FoldKey, Attempt)> {
    let done = noted(notes, "acknowledged");
    let waiting = noted(notes, "spool").into_iter().filter(|entry| !done.contains(entry));
    waiting.map(|(fold, attempt)| (fold.parse().unwrap(), Attempt(attempt))).collect()
}

/// Runs the child; `crash` names where it ends.
fn run(job: &str, store: &str, notes: &Path, crash: Option<&str>) -> ExitStatus {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "crash::tests::child", "--nocapture", "--test-threads=1"]);
    command.env("TOGL_CRASH_JOB", job).env("TOGL_CRASH_STORE", store).env("TOGL_CRASH_NOTES", notes);
    match crash {
        Some(crash) => command.env("TOGL_CRASH", crash),
        None => command.env_remove("TOGL_CRASH"),
    };
    let output = command.output().unwrap();
    let ended = output.status.success() || crash.is_some();
    assert!(ended, "{}", String::from_utf8_lossy(&output.stderr));
    output.status
}

/// Ends a sweep at `point`, lets it finish, and checks what is left. Whether the point was reached.
fn survives(store: &str, point: &str) -> bool {
    let notes = TempDir::new().unwrap();
    let crashed = !run("sweep", store, notes.path(), Some(point)).success();
    if crashed {
        run("sweep", store, notes.path(), None);
    }
    assert!(notes.path().join("done").exists());
    check(&store.parse().unwrap(), notes.path(), point);
    crashed
}

fn check(address: &StoreAddress, notes: &Path, point: &str) {
    let store = address.open().unwrap();
    let snapshot = store.load().unwrap();
    assert_eq!(snapshot.folds.len(), FOLDS as usize, "{point}");
    let reader = store.reader().unwrap();
    let rows = |kind| {
        let query = ResultQuery { kind, ..ResultQuery::accepted(sweep("s")) };
        reader.results(&query).unwrap().rows
    };
    let accepted = rows(ResultKind::Accepted);
    let folds: BTreeSet<_> = accepted.iter().map(|row| row.fold).collect();
    assert_eq!((accepted.len(), folds.len()), (FOLDS as usize, FOLDS as usize), "{point}: one a fold");
    for row in &accepted {
        assert_eq!(row.result, example(f64::from(row.fold.split) / 16.0), "{point}");
        let state = &snapshot.folds[&row.fold].state;
        assert!(matches!(state, SavedState::Finished { attempt, .. } if *attempt == row.attempt), "{point}");
    }
    let kept: BTreeSet<(String, u32)> = accepted
        .into_iter()
        .chain(rows(ResultKind::Replicate))
        .map(|row| (row.fold.to_string(), row.attempt.0))
        .collect();
    let lost: Vec<_> = noted(notes, "acknowledged").difference(&kept).cloned().collect();
    assert!(lost.is_empty(), "{point}: acknowledged and lost: {lost:?}");
    assert!(rows(ResultKind::Conflict).is_empty(), "{point}");
}

const POINTS: [&str; 6] = ["commit", "commit-written", "committed", "counted", "ack", "acked"];

#[test]
fn a_coordinator_that_ends_at_any_point_loses_and_doubles_nothing_in_sqlite() {
    let mut reached = 0;
    let later = POINTS.iter().flat_map(|point| [1, 2, 4, 7].map(|count| format!("{point}:{count}")));
    let first = ["rename:1", "renamed:1", "step-written:1", "step-taken:3", "log-written:1", "log-kept:2"]
        .map(str::to_owned);
    for point in later.chain(first) {
        let folder = TempDir::new().unwrap();
        let store = format!("sqlite:{}", folder.path().join("store").display());
        reached += usize::from(survives(&store, &point));
    }
    assert_eq!(reached, 30, "every point was reached");
}

#[test]
fn a_coordinator_that_ends_at_any_point_loses_and_doubles_nothing_in_postgres() {
    let Some(server) = Server::start() else { return };
    let mut reached = 0;
    let points = [
        "step-written:1",
        "step-taken:1",
        "commit:4",
        "commit-written:1",
        "commit-written:5",
        "committed:1",
        "committed:5",
        "ack:2",
        "ack:5",
        "acked:3",
    ];
    for point in points {
        reached += usize::from(survives(&server.text(&server.database()), point));
    }
    assert_eq!(reached, points.len(), "every point was reached");
}
