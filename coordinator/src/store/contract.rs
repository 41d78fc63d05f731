//! What every back end must do, as tests that run on each. A back end says how it is made and opened again;
//! the facts come from a real scheduler, so that stores are measured with what they will be given.

use std::path::Path;

use tempfile::TempDir;
use togl_scheduler::{
    Change, Event, Lease, Limits, Reply, Scheduler, Snapshot, Submission, Timestamp, WorkerInfo,
};
use togl_sweeps::result::example;
use togl_sweeps::trial::NUMERICS;
use togl_sweeps::{Attempt, Failure, FailureClass, FoldKey, FoldResult, SweepName, TrialId, WorkerId};

use super::memory::MemoryStore;
use super::sqlite::SqliteStore;
use super::{LOG_LIMIT, LogPiece, ResultKind, ResultQuery, Store, StoreError};

/// A place for a store that can be opened again and again.
trait Backend {
    fn new() -> Self;
    fn open(&self) -> Box<dyn Store>;
}

struct Memory(MemoryStore);

impl Backend for Memory {
    fn new() -> Self {
        Self(MemoryStore::default())
    }

    fn open(&self) -> Box<dyn Store> {
        Box::new(self.0.clone())
    }
}

struct Sqlite(TempDir);

impl Backend for Sqlite {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn open(&self) -> Box<dyn Store> {
        Box::new(SqliteStore::open(&self.0.path().join("store.sqlite")).unwrap())
    }
}

/// Runs each contract on each back end.
macro_rules! contracts {
    ($($name:ident),+ $(,)?) => {
        mod on_memory { $(#[test] fn $name() { super::$name::<super::Memory>(); })+ }
        mod on_sqlite { $(#[test] fn $name() { super::$name::<super::Sqlite>(); })+ }
    };
}

contracts!(
    a_new_store_is_empty,
    what_was_committed_is_loaded_again,
    the_store_keeps_its_incarnation_and_no_two_are_alike,
    results_come_in_the_order_of_the_sweep_and_in_pages,
    replicates_and_conflicts_are_kept_apart,
    results_of_a_sweep_that_is_not_there_are_an_error,
    edited_sweeps_lose_folds_but_no_results,
    steered_sweeps_memory_floors_and_disputes_are_loaded_again,
    logs_are_kept_up_to_a_bound_and_only_for_issued_attempts,
    a_reader_sees_what_was_committed_after_it_was_made,
);

pub(crate) fn sweep(name: &str) -> SweepName {
    name.parse().unwrap()
}

pub(crate) fn worker(name: &str) -> WorkerId {
    name.parse().unwrap()
}

/// Fold `n` of one trial; its seed needs all 64 bits.
pub(crate) fn fold(n: u32) -> FoldKey {
    FoldKey { trial: TrialId::from_bytes([7; 16]), split: n, seed: u64::MAX - u64::from(n % 2) }
}

pub(crate) fn submission(name: &str, folds: impl IntoIterator<Item = u32>) -> Event {
    let folds: Vec<FoldKey> = folds.into_iter().map(fold).collect();
    Event::Submit(Box::new(Submission {
        name: sweep(name),
        yaml: format!("name: {name} # ünïcode\nfolds: {folds:?}\n"),
        priority: -3,
        limits: togl_sweeps::spec::Limits { fold_seconds: Some(9), ..Default::default() },
        resources: togl_sweeps::spec::Resources { memory: Some(1 << 33), ..Default::default() },
        data_digests: vec![("cycles".to_owned(), "data".to_owned())],
        trials: vec![(TrialId::from_bytes([7; 16]), "{\"canonical\":1,\"dataset\":\"cycles\"}".to_owned())],
        folds,
    }))
}

pub(crate) fn join(name: &str, slots: u32) -> Event {
    let info = WorkerInfo { host: "host".to_owned(), slots, numerics: NUMERICS, ..WorkerInfo::default() };
    Event::WorkerJoined { worker: worker(name), info, running: vec![] }
}

pub(crate) fn report(name: &str, lease: &Lease, result: FoldResult) -> Event {
    let (fold, attempt) = (lease.fold, lease.attempt);
    Event::ResultReported { worker: worker(name), fold, attempt, result: Box::new(result) }
}

/// A scheduler whose every fact goes into a store.
struct Script {
    scheduler: Scheduler,
    store: Box<dyn Store>,
    now: Timestamp,
}

impl Script {
    fn on(store: Box<dyn Store>) -> Self {
        let now = Timestamp(0);
        let scheduler = Scheduler::restore(Limits::default(), store.load().unwrap(), now);
        Self { scheduler, store, now }
    }

    fn tell(&mut self, event: Event) -> Reply {
        let outcome = self.scheduler.handle(self.now, event).unwrap();
        self.store.commit(&outcome.changes).unwrap();
        assert_eq!(self.store.load().unwrap(), self.scheduler.snapshot());
        outcome.reply
    }

    fn lease(&mut self, name: &str, count: u32) -> Vec<Lease> {
        match self.tell(Event::LeasesAsked { worker: worker(name), count }) {
            Reply::Leases(leases) => leases,
            other => panic!("{other:?}"),
        }
    }

    fn fail(&mut self, name: &str, lease: &Lease, class: FailureClass) {
        let failure = Failure::new(class, "it's \"broken\"; naïve");
        let (fold, attempt) = (lease.fold, lease.attempt);
        self.tell(Event::FailureReported { worker: worker(name), fold, attempt, failure });
    }

    /// Every fold leased in order to `w`, the even ones reported.
    fn with_results(store: Box<dyn Store>, folds: u32) -> Self {
        let mut script = Self::on(store);
        script.tell(submission("s", 0..folds));
        script.tell(join("w", folds));
        for lease in script.lease("w", folds).iter().step_by(2) {
            script.tell(report("w", lease, example(f64::from(lease.fold.split) / 100.0)));
        }
        script
    }
}

fn a_new_store_is_empty<B: Backend>() {
    assert_eq!(B::new().open().load().unwrap(), Snapshot::default());
}

fn what_was_committed_is_loaded_again<B: Backend>() {
    let backend = B::new();
    let mut script = Script::on(backend.open());
    script.tell(submission("s", 0..6));
    script.tell(submission("shared", 4..8));
    script.tell(join("w", 4));
    script.tell(join("v", 2));
    let leases = script.lease("w", 4);
    script.tell(report("w", &leases[0], example(0.1)));
    script.fail("w", &leases[1], FailureClass::Config);
    script.fail("w", &leases[2], FailureClass::NotFinite);
    script.tell(Event::Cancel { sweep: sweep("shared") });
    script.tell(Event::Retry { sweep: sweep("s") });
    script.lease("v", 2);
    script.tell(Event::WorkerLeft { worker: worker("v") });
    script.now = script.now.plus(20_000);
    script.tell(Event::Tick);
    let running = leases.iter().map(|lease| (lease.fold, lease.attempt)).collect();
    let Event::WorkerJoined { worker, info, .. } = join("w", 4) else { panic!("a join") };
    script.tell(Event::WorkerJoined { worker, info, running });
    script.tell(Event::Pause { sweep: sweep("s") });
    let expected = script.scheduler.snapshot();
    script.store.close().unwrap();
    assert_eq!(backend.open().load().unwrap(), expected);
}

fn the_store_keeps_its_incarnation_and_no_two_are_alike<B: Backend>() {
    let (one, two) = (B::new(), B::new());
    let incarnation = one.open().incarnation();
    assert_eq!(one.open().incarnation(), incarnation);
    assert_ne!(two.open().incarnation(), incarnation);
}

fn results_come_in_the_order_of_the_sweep_and_in_pages<B: Backend>() {
    let backend = B::new();
    let mut script = Script::with_results(backend.open(), 10);
    script.tell(submission("reversed", (0..10).rev()));
    let reader = script.store.reader().unwrap();
    let mut query = ResultQuery { limit: 3, ..ResultQuery::accepted(sweep("reversed")) };
    let (mut rows, mut sizes) = (Vec::new(), Vec::new());
    loop {
        let page = reader.results(&query).unwrap();
        sizes.push(page.rows.len());
        rows.extend(page.rows);
        match page.next {
            Some(next) => query.from = next,
            None => break,
        }
    }
    assert_eq!(sizes, [1, 2, 1, 1]);
    let folds: Vec<u32> = rows.iter().map(|row| row.fold.split).collect();
    assert_eq!(folds, [8, 6, 4, 2, 0]);
    assert_eq!(rows[0].result, example(0.08));
    assert_eq!((rows[0].attempt, &rows[0].worker), (Attempt(1), &worker("w")));
    assert_eq!((rows[0].fold, rows[0].trial.as_str()), (fold(8), "{\"canonical\":1,\"dataset\":\"cycles\"}"));
    query.from = u64::MAX;
    assert_eq!(reader.results(&query).unwrap().rows, []);
}

fn replicates_and_conflicts_are_kept_apart<B: Backend>() {
    let backend = B::new();
    let mut script = Script::on(backend.open());
    script.tell(submission("s", 0..1));
    script.tell(join("w", 1));
    let first = script.lease("w", 1).remove(0);
    script.tell(Event::WorkerLeft { worker: worker("w") });
    script.tell(join("v", 1));
    let second = script.lease("v", 1).remove(0);
    for (name, lease, accuracy) in [
        ("v", &second, 0.5),
        ("w", &first, 0.25),
        ("w", &first, 0.75),
        ("w", &first, 0.875),
        ("v", &second, 0.125),
    ] {
        script.tell(report(name, lease, example(accuracy)));
    }
    let reader = script.store.reader().unwrap();
    let found = |kind| {
        let query = ResultQuery { kind, ..ResultQuery::accepted(sweep("s")) };
        let rows = reader.results(&query).unwrap().rows.into_iter();
        rows.map(|row| (row.attempt.0, row.result.test.accuracy)).collect::<Vec<_>>()
    };
    assert_eq!(found(ResultKind::Accepted), [(2, 0.5)]);
    assert_eq!(found(ResultKind::Replicate), [(1, 0.25)]);
    assert_eq!(found(ResultKind::Conflict), [(1, 0.75), (2, 0.125)], "the first conflict of each attempt");
}

fn results_of_a_sweep_that_is_not_there_are_an_error<B: Backend>() {
    let backend = B::new();
    let reader = backend.open().reader().unwrap();
    let error = reader.results(&ResultQuery::accepted(sweep("nowhere"))).unwrap_err();
    assert!(matches!(error, StoreError::UnknownSweep(_)), "{error}");
}

fn edited_sweeps_lose_folds_but_no_results<B: Backend>() {
    let backend = B::new();
    let mut script = Script::with_results(backend.open(), 4);
    script.tell(submission("s", [1, 2]));
    let reader = script.store.reader().unwrap();
    let of = |name| reader.results(&ResultQuery::accepted(sweep(name))).unwrap().rows.len();
    assert_eq!(of("s"), 1);
    script.tell(submission("t", [0, 2]));
    assert_eq!(of("t"), 2);
    let names: Vec<_> = reader.sweeps().unwrap().into_iter().map(|sweep| sweep.name.to_string()).collect();
    assert_eq!(names, ["s", "t"]);
}

/// Everything an operator says and a device teaches survives, and results set aside are replicates.
fn steered_sweeps_memory_floors_and_disputes_are_loaded_again<B: Backend>() {
    let backend = B::new();
    let mut script = Script::on(backend.open());
    script.tell(submission("s", 0..3));
    script.tell(submission("t", 0..1));
    script.tell(Event::Prioritise { sweep: sweep("t"), priority: 9 });
    script.tell(Event::Archive { sweep: sweep("t") });
    for (name, memory) in [("small", 1 << 33), ("large", 1 << 40)] {
        let mut info =
            WorkerInfo { host: name.to_owned(), slots: 3, numerics: NUMERICS, ..WorkerInfo::default() };
        info.memories = vec![memory; 3];
        script.tell(Event::WorkerJoined { worker: worker(name), info, running: vec![] });
    }
    let [lease, ..] = &script.lease("small", 1)[..] else { panic!("nothing to lease") };
    let failure = Failure::new(FailureClass::OutOfMemory, "too small");
    let (fold, attempt) = (lease.fold, lease.attempt);
    script.tell(Event::FailureReported { worker: worker("small"), fold, attempt, failure });
    let leases = script.lease("large", 3);
    script.tell(report("large", &leases[0], example(0.5)));
    let other = FoldResult { data_digest: "other".to_owned(), ..example(0.5) };
    script.tell(report("large", &leases[1], other));
    assert_eq!(script.scheduler.disputes().len(), 1);
    script.tell(Event::SettleData { data: "cycles".to_owned(), digest: "other".to_owned() });
    script.tell(report("large", &leases[2], FoldResult { data_digest: "other".to_owned(), ..example(0.25) }));
    let kinds = [(ResultKind::Accepted, 2), (ResultKind::Replicate, 1)];
    for (kind, rows) in kinds {
        let query = ResultQuery { kind, ..ResultQuery::accepted(sweep("s")) };
        assert_eq!(script.store.reader().unwrap().results(&query).unwrap().rows.len(), rows);
    }
}

fn logs_are_kept_up_to_a_bound_and_only_for_issued_attempts<B: Backend>() {
    let backend = B::new();
    let mut script = Script::with_results(backend.open(), 2);
    let piece =
        |n, attempt, text: &str| LogPiece { fold: fold(n), attempt: Attempt(attempt), text: text.to_owned() };
    let pieces = [piece(0, 1, "one\n"), piece(0, 2, "never issued\n"), piece(9, 1, "no such fold\n")];
    script.store.append_log(&pieces).unwrap();
    script.store.append_log(&[piece(0, 1, "two\n")]).unwrap();
    let reader = script.store.reader().unwrap();
    assert_eq!(reader.log(&fold(0)).unwrap(), [piece(0, 1, "one\ntwo\n")]);
    assert_eq!(reader.log(&fold(9)).unwrap(), []);

    let line = "ü".repeat(99) + "\n";
    for _ in 0..LOG_LIMIT / line.len() + 7 {
        script.store.append_log(&[piece(0, 1, &line)]).unwrap();
    }
    let text = reader.log(&fold(0)).unwrap().remove(0).text;
    assert!(text.len() <= LOG_LIMIT && text.len() > LOG_LIMIT - line.len(), "{}", text.len());
    assert!(text.starts_with(&line), "whole lines are dropped, oldest first");
}

fn a_reader_sees_what_was_committed_after_it_was_made<B: Backend>() {
    let backend = B::new();
    let store = backend.open();
    let reader = store.reader().unwrap();
    assert_eq!(reader.sweeps().unwrap(), []);
    let script = Script::with_results(store, 2);
    assert_eq!(reader.sweeps().unwrap().len(), 1);
    assert_eq!(reader.results(&ResultQuery::accepted(sweep("s"))).unwrap().rows.len(), 1);
    drop(script);
}

/// Puts some facts into an open store and lets `look` see it before it is closed.
pub(crate) fn fill(store: Box<dyn Store>, folds: u32, look: impl FnOnce(&dyn Store)) -> Snapshot {
    let script = Script::with_results(store, folds);
    look(script.store.as_ref());
    script.store.close().unwrap();
    script.scheduler.snapshot()
}

/// Some facts in a new SQLite file, closed again.
pub(crate) fn filled_sqlite(path: &Path, folds: u32) -> Snapshot {
    fill(Box::new(SqliteStore::open(path).unwrap()), folds, |_| {})
}

/// A fact that no store can hold: it is about a fold that was never added.
pub(crate) fn impossible_fact() -> Change {
    Change::FoldRetried { fold: fold(12_345) }
}
