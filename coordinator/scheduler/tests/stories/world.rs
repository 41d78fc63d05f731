//! A small world around the scheduler: a store that is given every change, a clock that is moved by hand, and
//! words for what happens. After each event it checks that all parts of the state agree and that the store holds what a
//! restart needs.

use std::collections::BTreeMap;

use togl_scheduler::{
    Abandon, Change, Ending, Event, FailureAnswer, FoldChange, FoldState, Joined, Lease, Limits, Reason,
    Rejection, Reply, ResultAnswer, SavedState, Scheduler, Snapshot, Submission, Submitted, SweepView,
    Timestamp, WorkerInfo,
};
use togl_sweeps::result::example;
use togl_sweeps::spec::{Resources, SweepLimits};
use togl_sweeps::trial::NUMERICS;
use togl_sweeps::{Attempt, Failure, FailureClass, FoldKey, FoldResult, SweepName, TrialId, WorkerId};

pub struct World {
    pub scheduler: Scheduler,
    pub store: Snapshot,
    pub now: Timestamp,
    /// Every change there ever was.
    pub history: Vec<Change>,
    /// Whether everything is checked after each event; off where there are too many folds for that.
    pub checks: bool,
    /// The attempt and the accuracy that each fold was acknowledged with.
    acknowledged: BTreeMap<FoldKey, (Attempt, u64)>,
    /// What ran when the coordinator was restarted last, of workers that were not heard of since.
    awaited: BTreeMap<(FoldKey, Attempt), WorkerId>,
    /// The latest session of each worker.
    sessions: BTreeMap<WorkerId, u64>,
}

/// Fold number `n`: four folds make a trial.
pub fn fold(n: u32) -> FoldKey {
    FoldKey { trial: trial(n / 4), split: n % 4, seed: 0 }
}

pub fn trial(n: u32) -> TrialId {
    TrialId::from_bytes([u8::try_from(n).unwrap(); 16])
}

pub fn worker(name: &str) -> WorkerId {
    name.parse().unwrap()
}

pub fn sweep(name: &str) -> SweepName {
    name.parse().unwrap()
}

/// A sweep with these folds, to be adjusted and submitted.
pub fn submission(name: &str, folds: impl IntoIterator<Item = u32>) -> Submission {
    let numbers: Vec<u32> = folds.into_iter().collect();
    let mut trials: Vec<u32> = numbers.iter().map(|n| n / 4).collect();
    trials.dedup();
    Submission {
        name: sweep(name),
        yaml: format!("{name} {numbers:?}"),
        priority: 0,
        limits: SweepLimits::default(),
        resources: Resources::default(),
        race: None,
        data_digests: vec![],
        trials: trials.into_iter().map(|n| (trial(n), format!("{{\"trial\":{n}}}"))).collect(),
        folds: numbers.into_iter().map(fold).collect(),
        gathered: 0,
    }
}

pub fn info(host: &str, slots: u32) -> WorkerInfo {
    WorkerInfo { host: host.to_owned(), slots, numerics: NUMERICS, ..WorkerInfo::default() }
}

impl Default for World {
    fn default() -> Self {
        Self::with_limits(Limits::default())
    }
}

impl World {
    pub fn with_limits(limits: Limits) -> Self {
        let scheduler = Scheduler::restore(limits, Snapshot::default(), Timestamp(0));
        let store = Snapshot::default();
        Self {
            scheduler,
            store,
            now: Timestamp(0),
            history: Vec::new(),
            checks: true,
            acknowledged: BTreeMap::new(),
            awaited: BTreeMap::new(),
            sessions: BTreeMap::new(),
        }
    }
}

impl World {
    /// A world with one sweep `s` of `folds` folds and one worker `w` on host `h` with `slots` slots.
    pub fn with_sweep(folds: u32, slots: u32) -> Self {
        let mut world = Self::default();
        world.submit(submission("s", 0..folds));
        world.join("w", "h", slots);
        world
    }

    pub fn try_tell(&mut self, event: Event) -> Result<Reply, Rejection> {
        let (before, is_tick) = (self.scheduler.revision(), event == Event::Tick);
        let mut joins = None;
        match &event {
            Event::WorkerJoined { worker, .. } => {
                joins = Some(worker.clone());
                self.awaited.retain(|_, holder| holder != worker);
            }
            // Its worker says itself how it ended.
            Event::FailureReported { fold, attempt, .. } => _ = self.awaited.remove(&(*fold, *attempt)),
            _ => {}
        }
        let outcome = match self.scheduler.handle(self.now, event) {
            // Nothing came of it: most ticks only say that the coordinator is awake.
            Ok(outcome) if outcome.changes.is_empty() && self.scheduler.revision() == before && is_tick => {
                return Ok(outcome.reply);
            }
            Err(rejection) => {
                assert_eq!(self.scheduler.revision(), before, "a rejection changes nothing");
                self.check();
                return Err(rejection);
            }
            Ok(outcome) => outcome,
        };
        for change in &outcome.changes {
            self.check_patience(change);
            self.store.apply(change);
        }
        self.history.extend(outcome.changes);
        if let (Some(worker), Reply::Joined(joined)) = (joins, &outcome.reply) {
            self.sessions.insert(worker, joined.session);
        }
        self.check();
        Ok(outcome.reply)
    }

    /// A worker that outlived the coordinator has a whole term to come back before its folds go to others, unless it says
    /// that it gives one up.
    fn check_patience(&self, change: &Change) {
        if let Change::Fold(fold, FoldChange::Ended { attempt, ending, .. }) = change
            && *ending == Ending::Failed(FailureClass::WorkerLost)
            && let Some(holder) = self.awaited.get(&(*fold, *attempt))
        {
            let (now, term) = (self.now.0, self.scheduler.limits().lease_term);
            assert!(now >= term, "{holder} had {now} of {term} ms to come back with {}", fold.short());
        }
    }

    pub fn tell(&mut self, event: Event) -> Reply {
        self.try_tell(event).unwrap()
    }

    fn check(&self) {
        if !self.checks {
            return;
        }
        self.scheduler.check_invariants().unwrap();
        assert_eq!(self.scheduler.snapshot(), self.store, "the store must hold what a restart needs");
        self.check_demand();
        for (key, (attempt, _)) in &self.acknowledged {
            let state = self.scheduler.fold(key).unwrap().state;
            assert!(matches!(state, FoldState::Finished { attempt: kept, .. } if kept == *attempt));
        }
    }

    /// What one finds by asking fold by fold why it does not run.
    fn check_demand(&self) {
        let demand = self.scheduler.demand(self.now);
        let (mut startable, mut unclear) = (0, 0);
        for key in self.store.folds.keys() {
            match self.scheduler.explain(self.now, key).unwrap().reason {
                Reason::Finished { .. } | Reason::Failed(_) | Reason::Running { .. } => {}
                Reason::NotWanted
                | Reason::Stopped { .. }
                | Reason::WaitsForRung { .. }
                | Reason::Paused { .. }
                | Reason::Disputed { .. } => {}
                // Whoever cannot read it may not be everybody.
                _ if self.is_unread(key) => unclear += 1,
                _ => startable += 1,
            }
        }
        let folds: u64 = demand.shapes.iter().map(|shape| shape.folds).sum();
        assert!(
            (startable..=startable + unclear).contains(&folds),
            "{startable} to {unclear} more: {demand:?}"
        );
        assert!(demand.shapes.iter().all(|shape| shape.folds > 0 && shape.free_slots <= shape.folds));
        let free: u64 = demand.shapes.iter().map(|shape| shape.free_slots).sum();
        assert!(free <= demand.free_slots, "a slot counts twice: {demand:?}");
    }

    /// Whether a worker said that it cannot read the trial of this fold.
    fn is_unread(&self, key: &FoldKey) -> bool {
        let unreadable = Some(Ending::Failed(FailureClass::Unreadable));
        let of_trial = self.store.folds.iter().filter(|(fold, _)| fold.trial == key.trial);
        of_trial.flat_map(|(_, saved)| &saved.attempts).any(|attempt| attempt.ending == unreadable)
    }

    pub fn submit(&mut self, submission: Submission) -> Submitted {
        match self.tell(Event::Submit(Box::new(submission))) {
            Reply::Submitted(submitted) => submitted,
            other => panic!("{other:?}"),
        }
    }

    pub fn cancel(&mut self, name: &str) -> Reply {
        self.tell(Event::Cancel { sweep: sweep(name) })
    }

    pub fn join(&mut self, name: &str, host: &str, slots: u32) -> Joined {
        self.join_with(name, host, slots, &[])
    }

    /// A worker that says what its slots are: device and memory in bytes.
    pub fn join_devices(&mut self, name: &str, host: &str, slots: &[(&str, u64)]) -> Joined {
        let mut info = info(host, u32::try_from(slots.len()).unwrap());
        (info.devices, info.memories) =
            slots.iter().map(|(kind, memory)| ((*kind).to_owned(), *memory)).unzip();
        match self.tell(Event::WorkerJoined { worker: worker(name), info, running: vec![] }) {
            Reply::Joined(joined) => joined,
            other => panic!("{other:?}"),
        }
    }

    pub fn join_with(&mut self, name: &str, host: &str, slots: u32, leases: &[&Lease]) -> Joined {
        let running = in_hand(leases);
        match self.tell(Event::WorkerJoined { worker: worker(name), info: info(host, slots), running }) {
            Reply::Joined(joined) => joined,
            other => panic!("{other:?}"),
        }
    }

    /// The latest session of a worker; 0 if it never had one.
    pub fn session(&self, name: &str) -> u64 {
        self.sessions.get(&worker(name)).copied().unwrap_or(0)
    }

    /// A worker says goodbye to its latest session.
    pub fn leave(&mut self, name: &str) {
        self.tell(Event::WorkerLeft { worker: worker(name), session: self.session(name) });
    }

    pub fn leases(&mut self, name: &str, count: u32) -> Vec<Lease> {
        match self.tell(Event::LeasesAsked { worker: worker(name), count }) {
            Reply::Leases(leases) => leases,
            Reply::Leave => vec![],
            other => panic!("{other:?}"),
        }
    }

    pub fn lease(&mut self, name: &str) -> Lease {
        self.leases(name, 1).pop().expect("something to lease")
    }

    pub fn renew(&mut self, name: &str, leases: &[&Lease]) -> Vec<Result<(), Abandon>> {
        match self.tell(Event::Renewed { worker: worker(name), running: in_hand(leases) }) {
            Reply::Orders(orders) => orders.into_iter().map(|order| order.verdict).collect(),
            other => panic!("{other:?}"),
        }
    }

    pub fn report(&mut self, name: &str, lease: &Lease, accuracy: f64) -> ResultAnswer {
        self.report_result(name, lease.fold, lease.attempt, example(accuracy))
    }

    pub fn report_result(
        &mut self,
        name: &str,
        fold: FoldKey,
        attempt: Attempt,
        result: FoldResult,
    ) -> ResultAnswer {
        let accuracy = result.test.accuracy.to_bits();
        let result = Box::new(result.check().unwrap());
        let event = Event::ResultReported { worker: worker(name), fold, attempt, result };
        let Reply::Result(answer) = self.tell(event) else { panic!("not an answer to a result") };
        if answer == ResultAnswer::Accepted {
            let before = self.acknowledged.insert(fold, (attempt, accuracy));
            assert_eq!(before, None, "a second result was accepted for {fold}");
        }
        if answer == ResultAnswer::Same {
            let kept = self.acknowledged.get(&fold);
            assert!(kept.is_none_or(|(kept, with)| *kept != attempt || *with == accuracy)); // none: set aside
        }
        answer
    }

    pub fn fail(&mut self, name: &str, lease: &Lease, class: FailureClass) -> FailureAnswer {
        let failure = Failure::new(class, format!("a {class} on purpose"));
        let (fold, attempt) = (lease.fold, lease.attempt);
        match self.tell(Event::FailureReported { worker: worker(name), fold, attempt, failure }) {
            Reply::Failure(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    /// The operator settles a dispute; says how many folds are to be trained again.
    pub fn settle(&mut self, data: &str, digest: &str) -> u64 {
        let (data, digest) = (data.to_owned(), digest.to_owned());
        let before = std::mem::take(&mut self.acknowledged); // what is set aside is finished no more
        let Reply::Settled { reopened } = self.tell(Event::SettleData { data, digest }) else { panic!() };
        let finished = |key: &FoldKey| matches!(self.state(*key), FoldState::Finished { .. });
        self.acknowledged = before.into_iter().filter(|(key, _)| finished(key)).collect();
        reopened
    }

    /// Lets time pass, with a tick whenever one is due.
    pub fn pass(&mut self, milliseconds: u64) {
        let end = self.now.plus(milliseconds);
        while let Some(deadline) = self.scheduler.next_deadline().filter(|deadline| *deadline <= end) {
            self.now = self.now.max(deadline);
            self.tell(Event::Tick);
        }
        self.now = end;
    }

    /// The coordinator stands still: time passes, and it hears of nothing.
    pub fn stand_still(&mut self, milliseconds: u64) {
        self.now = self.now.plus(milliseconds);
    }

    /// The coordinator dies and starts again from its store; its clock starts anew.
    pub fn restart(&mut self) {
        self.now = Timestamp(0);
        let limits = self.scheduler.limits().clone();
        let running = self.store.folds.iter().filter(|(_, saved)| saved.state == SavedState::Leased);
        let last = running.filter_map(|(fold, saved)| Some((fold, saved, saved.attempts.last()?)));
        self.awaited = last
            .map(|(fold, saved, last)| ((*fold, Attempt(saved.attempts.len() as u32)), last.worker.clone()))
            .collect();
        self.scheduler = Scheduler::restore(limits, self.store.clone(), self.now);
        self.check();
    }

    pub fn state(&self, key: FoldKey) -> FoldState {
        self.scheduler.fold(&key).unwrap().state
    }

    pub fn failure(&self, key: FoldKey) -> Failure {
        match self.state(key) {
            FoldState::Failed(failure) => failure,
            other => panic!("{other:?}"),
        }
    }

    pub fn view(&self, name: &str) -> SweepView {
        self.scheduler.sweep(&sweep(name)).unwrap()
    }
}

fn in_hand(leases: &[&Lease]) -> Vec<(FoldKey, Attempt)> {
    leases.iter().map(|lease| (lease.fold, lease.attempt)).collect()
}
