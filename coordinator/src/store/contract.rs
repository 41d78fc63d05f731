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

use super::address::StoreAddress;
use super::history::Happened;
use super::memory::MemoryStore;
use super::postgres_server::Server;
use super::sqlite::SqliteStore;
use super::{LOG_LIMIT, LogPiece, ResultKind, ResultQuery, Store, StoreError};

/// A place for a store that can be opened again and again.
trait Backend {
    fn open(&self) -> Box<dyn Store>;

    /// Why a second coordinator is not let in; none where nothing can be shared.
    fn second(&self) -> Option<StoreError>;
}

/// Makes places, each of its own.
type Make<'a> = &'a dyn Fn() -> Box<dyn Backend>;

struct Memory(MemoryStore);

impl Backend for Memory {
    fn open(&self) -> Box<dyn Store> {
        Box::new(self.0.clone())
    }

    fn second(&self) -> Option<StoreError> {
        None
    }
}

fn memory() -> Box<dyn Backend> {
    Box::new(Memory(MemoryStore::default()))
}

/// A place that an address names.
struct Place {
    address: StoreAddress,
    _folder: Option<TempDir>,
}

impl Backend for Place {
    fn open(&self) -> Box<dyn Store> {
        self.address.open().unwrap()
    }

    fn second(&self) -> Option<StoreError> {
        Some(self.address.open().map(|_| ()).unwrap_err())
    }
}

fn sqlite() -> Box<dyn Backend> {
    let folder = TempDir::new().unwrap();
    let address = StoreAddress::Sqlite(folder.path().join("store.sqlite"));
    Box::new(Place { address, _folder: Some(folder) })
}

/// Runs each contract on each back end; those on PostgreSQL share one server, which takes a second to make.
macro_rules! contracts {
    ($($name:ident),+ $(,)?) => {
        mod on_memory { $(#[test] fn $name() { super::$name(&super::memory); })+ }
        mod on_sqlite { $(#[test] fn $name() { super::$name(&super::sqlite); })+ }

        #[test]
        fn all_hold_on_postgres() {
            let Some(server) = Server::quick() else { return };
            let make = || -> Box<dyn Backend> {
                Box::new(Place { address: StoreAddress::Postgres(Box::new(server.database())), _folder: None })
            };
            let contracts: &[(&str, fn(Make<'_>))] = &[$((stringify!($name), $name)),+];
            for (name, contract) in contracts {
                eprintln!("{name}");
                contract(&make);
            }
        }
    };
}

contracts!(
    a_new_store_is_empty,
    what_was_committed_is_loaded_again,
    facts_of_any_history_in_batches_of_any_size_are_loaded_again,
    big_batches_are_one_transaction,
    any_text_comes_back_as_it_was,
    numbers_that_cannot_be_read_again_are_refused_with_all_that_came_with_them,
    the_store_keeps_its_incarnation_and_no_two_are_alike,
    a_second_coordinator_is_refused_and_told_of_the_first,
    results_come_in_the_order_of_the_sweep_and_in_pages,
    replicates_and_conflicts_are_kept_apart,
    results_of_a_sweep_that_is_not_there_are_an_error,
    edited_sweeps_lose_folds_but_no_results,
    steered_sweeps_memory_floors_and_disputes_are_loaded_again,
    logs_are_kept_up_to_a_bound_and_only_for_issued_attempts,
    a_reader_sees_what_was_committed_after_it_was_made,
    readers_see_whole_transactions_while_others_are_written,
    a_fold_has_a_history_that_only_grows,
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

fn a_new_store_is_empty(make: Make<'_>) {
    assert_eq!(make().open().load().unwrap(), Snapshot::default());
}

fn what_was_committed_is_loaded_again(make: Make<'_>) {
    let backend = make();
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

fn facts_of_any_history_in_batches_of_any_size_are_loaded_again(make: Make<'_>) {
    for seed in 1..=4 {
        eprintln!("seed {seed}");
        let backend = make();
        let mut store = backend.open();
        let mut history = History::new(seed);
        for _ in 0..40 {
            let changes = history.some_facts();
            store.commit(&changes).unwrap();
            assert_eq!(store.load().unwrap(), history.scheduler.snapshot(), "seed {seed}");
        }
        store.close().unwrap();
        assert_eq!(backend.open().load().unwrap(), history.scheduler.snapshot(), "seed {seed}");
    }
}

fn big_batches_are_one_transaction(make: Make<'_>) {
    let backend = make();
    let mut store = backend.open();
    let mut scheduler = Scheduler::restore(Limits::default(), store.load().unwrap(), Timestamp(0));
    let mut tell = |event| scheduler.handle(Timestamp(0), event).unwrap();
    let folds = 6_000;
    let mut changes = tell(submission("s", 0..folds)).changes;
    store.commit(&changes).unwrap();
    changes.clear();
    for n in 0..folds / 1_000 {
        let name = format!("w{n}");
        changes.extend(tell(join(&name, 1_000)).changes);
        let asked = tell(Event::LeasesAsked { worker: worker(&name), count: 1_000 });
        changes.extend(asked.changes);
        let Reply::Leases(leases) = asked.reply else { panic!("leases") };
        for lease in leases {
            changes.extend(tell(report(&name, &lease, example(0.5))).changes);
        }
    }
    store.commit(&changes).unwrap();
    let snapshot = scheduler.snapshot();
    assert_eq!(store.load().unwrap(), snapshot);
    let reader = store.reader().unwrap();
    let query = ResultQuery { limit: u64::MAX, ..ResultQuery::accepted(sweep("s")) };
    assert_eq!(reader.results(&query).unwrap().rows.len(), folds as usize);
}

fn any_text_comes_back_as_it_was(make: Make<'_>) {
    let texts =
        ["", "plain", "日本語 ünï", "a\0b", "\u{10ffff}", "'; DROP TABLE fold; --", "\\x00 {\"a\"} \r\n\t"];
    let backend = make();
    let mut script = Script::on(backend.open());
    script.tell(submission("s", 0..8));
    for (n, text) in texts.iter().enumerate() {
        let name = format!("w{n}");
        let info =
            WorkerInfo { host: text.to_string(), slots: 1, numerics: NUMERICS, ..WorkerInfo::default() };
        script.tell(Event::WorkerJoined { worker: worker(&name), info, running: vec![] });
        let lease = script.lease(&name, 1).remove(0);
        let (fold, attempt) = (lease.fold, lease.attempt);
        let failure = Failure::new(FailureClass::Config, *text);
        script.tell(Event::FailureReported { worker: worker(&name), fold, attempt, failure });
        script.store.append_log(&[LogPiece { fold, attempt, text: text.to_string() }]).unwrap();
        let log = script.store.reader().unwrap().log(&fold).unwrap();
        assert_eq!(log, [LogPiece { fold, attempt, text: text.to_string() }]);
    }
    assert_eq!(script.store.load().unwrap(), script.scheduler.snapshot());
}

fn numbers_that_cannot_be_read_again_are_refused_with_all_that_came_with_them(make: Make<'_>) {
    let backend = make();
    let mut script = Script::with_results(backend.open(), 2);
    let before = script.store.load().unwrap();
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut result = Box::new(example(0.5));
        result.history[0].train.loss = number;
        let (fold, attempt, worker) = (fold(1), Attempt(1), worker("w"));
        let digest = togl_scheduler::Digest::of(&result);
        let pause = Change::SweepStateSet {
            sweep: sweep("s"),
            state: togl_scheduler::SweepState::Paused,
            note: None,
        };
        let finish = Change::FoldFinished { fold, attempt, worker, digest, result };
        let error = script.store.commit(&[pause, finish]).unwrap_err();
        assert!(error.to_string().contains("impossible result"), "{error}");
        assert_eq!(script.store.load().unwrap(), before);
    }
}

fn a_second_coordinator_is_refused_and_told_of_the_first(make: Make<'_>) {
    let backend = make();
    let first = backend.open();
    if let Some(error) = backend.second() {
        let message = error.to_string();
        assert!(message.contains("another coordinator ("), "{message}");
        assert!(message.contains(&std::process::id().to_string()), "{message}");
    }
    first.reader().expect("reading is possible meanwhile");
    first.close().unwrap();
    backend.open();
}

fn readers_see_whole_transactions_while_others_are_written(make: Make<'_>) {
    let backend = make();
    let mut script = Script::on(backend.open());
    script.tell(submission("s", 0..40));
    script.tell(join("w", 40));
    let leases = script.lease("w", 40);
    let reader = script.store.reader().unwrap();
    let ready = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        let read = std::thread::Builder::new().spawn_scoped(scope, {
            let ready = &ready;
            move || {
                ready.wait();
                let mut seen = 0;
                while seen < 40 {
                    let rows = reader.results(&ResultQuery::accepted(sweep("s"))).unwrap().rows.len();
                    assert!(rows >= seen && rows % 2 == 0, "{rows} after {seen}: half a transaction");
                    seen = rows;
                }
            }
        });
        ready.wait();
        for pair in leases.chunks(2) {
            let tell = |lease: &Lease| report("w", lease, example(0.5));
            let changes = pair
                .iter()
                .flat_map(|lease| script.scheduler.handle(script.now, tell(lease)).unwrap().changes);
            let changes: Vec<Change> = changes.collect();
            script.store.commit(&changes).unwrap();
        }
        read.unwrap().join().unwrap();
    });
}

/// A random but repeatable life of a scheduler, told in facts.
pub(crate) struct History {
    pub(crate) scheduler: Scheduler,
    now: Timestamp,
    random: u64,
    leases: Vec<(String, Lease)>,
}

impl History {
    pub(crate) fn new(seed: u64) -> Self {
        let scheduler = Scheduler::restore(Limits::default(), Snapshot::default(), Timestamp(0));
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut history = Self { scheduler, now: Timestamp(0), random, leases: vec![] };
        history.draw(7);
        history
    }

    pub(crate) fn draw(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    /// What one to forty events led to.
    pub(crate) fn some_facts(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        for _ in 0..=self.draw(60) {
            let event = self.event();
            if let Ok(outcome) = self.scheduler.handle(self.now, event) {
                changes.extend(outcome.changes);
            }
        }
        changes
    }

    fn event(&mut self) -> Event {
        let name = format!("w{}", self.draw(4));
        let sweep = sweep(&format!("s{}", self.draw(3)));
        match self.draw(21) {
            0 => {
                let from = self.draw(20) as u32;
                submission(sweep.as_str(), from..from + 1 + self.draw(20) as u32)
            }
            1 => Event::Cancel { sweep },
            2 => Event::Pause { sweep },
            3 => Event::Resume { sweep },
            4 => Event::Retry { sweep },
            5 => Event::WorkerLeft { worker: worker(&name) },
            6 => {
                self.now = self.now.plus(self.draw(20_000));
                Event::Tick
            }
            7..=9 => {
                let mine = self.leases.iter().filter(|(who, _)| *who == name);
                let running = mine.map(|(_, lease)| (lease.fold, lease.attempt)).collect();
                let info = WorkerInfo {
                    host: "h".to_owned(),
                    slots: 5,
                    numerics: NUMERICS,
                    ..WorkerInfo::default()
                };
                Event::WorkerJoined { worker: worker(&name), info, running }
            }
            10..=12 => self.lease(&name),
            18 => Event::Prioritise { sweep, priority: self.draw(5) as i32 },
            19 => Event::Archive { sweep },
            20 => {
                let digest = if self.draw(3) == 0 { "other" } else { "data" };
                Event::SettleData { data: "cycles".to_owned(), digest: digest.to_owned() }
            }
            choice => self.report(choice),
        }
    }

    /// Asks for leases beforehand, so that their answers are known; the facts come with the next event.
    fn lease(&mut self, name: &str) -> Event {
        let count = 1 + self.draw(3) as u32;
        let event = Event::LeasesAsked { worker: worker(name), count };
        let mut trial = Scheduler::restore(Limits::default(), self.scheduler.snapshot(), self.now);
        let info = WorkerInfo { host: "h".to_owned(), slots: 5, numerics: NUMERICS, ..WorkerInfo::default() };
        let _ = trial.handle(self.now, Event::WorkerJoined { worker: worker(name), info, running: vec![] });
        if let Ok(outcome) = trial.handle(self.now, event.clone())
            && let Reply::Leases(leases) = outcome.reply
        {
            self.leases.extend(leases.into_iter().map(|lease| (name.to_owned(), lease)));
        }
        event
    }

    fn report(&mut self, choice: u64) -> Event {
        if self.leases.is_empty() {
            return Event::Tick;
        }
        let at = self.draw(self.leases.len() as u64) as usize;
        let (name, lease) = self.leases[at].clone();
        let (fold, attempt) = (lease.fold, lease.attempt);
        if choice < 16 {
            let mut result = example(self.draw(4) as f64 / 4.0);
            if self.draw(9) == 0 {
                result.data_digest = "other".to_owned();
            }
            return report(&name, &lease, result);
        }
        let classes = FailureClass::ALL;
        let class = classes[self.draw(classes.len() as u64) as usize];
        let failure = Failure::new(class, format!("message {}", self.draw(100)));
        Event::FailureReported { worker: worker(&name), fold, attempt, failure }
    }
}

fn the_store_keeps_its_incarnation_and_no_two_are_alike(make: Make<'_>) {
    let (one, two) = (make(), make());
    let incarnation = one.open().incarnation();
    assert_eq!(one.open().incarnation(), incarnation);
    assert_ne!(two.open().incarnation(), incarnation);
}

fn results_come_in_the_order_of_the_sweep_and_in_pages(make: Make<'_>) {
    let backend = make();
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

fn replicates_and_conflicts_are_kept_apart(make: Make<'_>) {
    let backend = make();
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

fn results_of_a_sweep_that_is_not_there_are_an_error(make: Make<'_>) {
    let backend = make();
    let reader = backend.open().reader().unwrap();
    let error = reader.results(&ResultQuery::accepted(sweep("nowhere"))).unwrap_err();
    assert!(matches!(error, StoreError::UnknownSweep(_)), "{error}");
}

fn edited_sweeps_lose_folds_but_no_results(make: Make<'_>) {
    let backend = make();
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
fn steered_sweeps_memory_floors_and_disputes_are_loaded_again(make: Make<'_>) {
    let backend = make();
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

fn logs_are_kept_up_to_a_bound_and_only_for_issued_attempts(make: Make<'_>) {
    let backend = make();
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

fn a_reader_sees_what_was_committed_after_it_was_made(make: Make<'_>) {
    let backend = make();
    let store = backend.open();
    let reader = store.reader().unwrap();
    assert_eq!(reader.sweeps().unwrap(), []);
    let script = Script::with_results(store, 2);
    assert_eq!(reader.sweeps().unwrap().len(), 1);
    assert_eq!(reader.results(&ResultQuery::accepted(sweep("s"))).unwrap().rows.len(), 1);
    drop(script);
}

fn a_fold_has_a_history_that_only_grows(make: Make<'_>) {
    let backend = make();
    let mut script = Script::with_results(backend.open(), 2);
    let words = |store: &dyn Store, n| -> Vec<(String, Option<u32>, Option<String>)> {
        let happened = store.reader().unwrap().history(&fold(n)).unwrap();
        assert!(happened.is_sorted_by_key(|happened| happened.at) && happened.iter().all(|h| h.at > 0));
        let worker = |h: &Happened| h.worker.as_ref().map(ToString::to_string);
        happened.iter().map(|h| (h.event.clone(), h.attempt.map(|a| a.0), worker(h))).collect()
    };
    let seen = words(script.store.as_ref(), 0);
    let events: Vec<&str> = seen.iter().map(|(event, ..)| event.as_str()).collect();
    assert_eq!(events, ["submitted", "leased", "accepted"]);
    assert_eq!((seen[0].1, &seen[0].2), (None, &None));
    assert!(seen[1].1 == Some(1) && seen[1].2.is_some(), "{seen:?}");
    assert_eq!(words(script.store.as_ref(), 9), [], "no such fold");
    script
        .store
        .commit(&[Change::ConflictLogged {
            fold: fold(0),
            attempt: Attempt(1),
            worker: seen[1].2.as_ref().unwrap().parse().unwrap(),
            digest: togl_scheduler::Digest(1),
            result: Box::new(example(0.125)),
        }])
        .unwrap();
    let grown = words(script.store.as_ref(), 0);
    assert_eq!((&grown[..3], grown[3].0.as_str()), (&seen[..], "conflict"));
    script.store.close().unwrap();
    assert_eq!(words(backend.open().as_ref(), 0), grown, "also after it was opened again");
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
