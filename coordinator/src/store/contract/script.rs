//! What the contracts are told with: small events by name, a scheduler whose every fact goes into a store, and
//! stores that hold something. Checks only that the store agrees after each fact.

use std::path::Path;
use std::sync::Arc;

use togl_scheduler::{
    Change, Event, FoldChange, Lease, Limits, Part, Reply, Scheduler, Snapshot, Submission, Timestamp,
    WorkerInfo,
};
use togl_sweeps::result::example;
use togl_sweeps::trial::NUMERICS;
use togl_sweeps::{Failure, FailureClass, FoldKey, FoldResult, SweepName, SweepSpec, TrialId, WorkerId};

use crate::store::Store;
use crate::store::sqlite::SqliteStore;

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
        limits: togl_sweeps::spec::SweepLimits { fold_seconds: Some(9), ..Default::default() },
        resources: togl_sweeps::spec::Resources { memory: Some(1 << 33), ..Default::default() },
        race: None,
        data_digests: vec![("cycles".to_owned(), "data".to_owned())],
        trials: vec![(TrialId::from_bytes([7; 16]), "{\"canonical\":1,\"dataset\":\"cycles\"}".to_owned())],
        folds,
        gathered: 0,
    }))
}

/// What the text of a sweep file makes of it.
pub(crate) fn written(yaml: &str) -> Event {
    let spec = SweepSpec::parse(yaml).unwrap();
    let Event::Submit(plain) = submission("s", [0]) else { panic!("a submission") };
    Event::Submit(Box::new(Submission {
        name: spec.name.clone(),
        yaml: yaml.to_owned(),
        race: spec.race().map(Arc::new),
        trials: spec.trials.iter().map(|trial| (trial.id, trial.config.canonical())).collect(),
        folds: spec.folds(),
        data_digests: Vec::new(),
        resources: spec.resources,
        ..*plain
    }))
}

pub(crate) fn join(name: &str, slots: u32) -> Event {
    let info = WorkerInfo { host: "host".to_owned(), slots, numerics: NUMERICS, ..WorkerInfo::default() };
    Event::WorkerJoined { worker: worker(name), info, running: vec![] }
}

pub(crate) fn report(name: &str, lease: &Lease, result: FoldResult) -> Event {
    let (fold, attempt) = (lease.fold, lease.attempt);
    let result = Box::new(result.check().unwrap());
    Event::ResultReported { worker: worker(name), fold, attempt, result }
}

/// Limits of a coordinator that never stands still, however far its clock is moved.
pub(crate) fn awake() -> Limits {
    Limits { standstill: u64::MAX, ..Limits::default() }
}

/// A scheduler whose every fact goes into a store.
pub(crate) struct Script {
    pub(crate) scheduler: Scheduler,
    pub(crate) store: Box<dyn Store>,
    pub(crate) now: Timestamp,
}

impl Script {
    pub(crate) fn on(store: Box<dyn Store>) -> Self {
        let now = Timestamp(0);
        let scheduler = Scheduler::restore(awake(), store.load().unwrap(), now);
        Self { scheduler, store, now }
    }

    pub(crate) fn tell(&mut self, event: Event) -> Reply {
        let outcome = self.scheduler.handle(self.now, event).unwrap();
        self.store.commit(&outcome.changes).unwrap();
        assert_eq!(self.store.load().unwrap(), self.scheduler.snapshot());
        outcome.reply
    }

    /// The next folds of a large sweep.
    pub(crate) fn gather(&mut self, name: &str, from: u64, folds: impl IntoIterator<Item = u32>) {
        let Event::Submit(sent) = submission(name, folds) else { panic!("a submission") };
        let Submission { name: sweep, trials, folds, .. } = *sent;
        self.tell(Event::Gather(Box::new(Part { sweep, from, all: 5, trials, folds })));
    }

    pub(crate) fn lease(&mut self, name: &str, count: u32) -> Vec<Lease> {
        match self.tell(Event::LeasesAsked { worker: worker(name), count }) {
            Reply::Leases(leases) => leases,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn fail(&mut self, name: &str, lease: &Lease, class: FailureClass) {
        let failure = Failure::new(class, "it's \"broken\"; naïve");
        let (fold, attempt) = (lease.fold, lease.attempt);
        self.tell(Event::FailureReported { worker: worker(name), fold, attempt, failure });
    }

    /// Every fold leased in order to `w`, the even ones reported.
    pub(crate) fn with_results(store: Box<dyn Store>, folds: u32) -> Self {
        let mut script = Self::on(store);
        script.tell(submission("s", 0..folds));
        script.tell(join("w", folds));
        for lease in script.lease("w", folds).iter().step_by(2) {
            script.tell(report("w", lease, example(f64::from(lease.fold.split) / 100.0)));
        }
        script
    }
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
    Change::Fold(fold(12_345), FoldChange::Retried)
}
