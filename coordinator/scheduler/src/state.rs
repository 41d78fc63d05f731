//! The state: folds, sweeps, workers, queues and timers, and the few functions that keep them in step. A fold
//! changes its state only through [`Scheduler::set_state`], which moves it between queues, counts, timers and
//! its worker's leases, so that no caller can forget one. Decides nothing about who gets what.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;
use togl_sweeps::datasets::Scoring;
use togl_sweeps::{Attempt, Capability, FoldKey, Scale, SweepName, TrialConfig, TrialId, WorkerId};

use crate::data::DataBooks;
use crate::demand::Waiting;
use crate::event::WorkerInfo;
use crate::fit::{Fitting, Slot};
use crate::fold::{Fold, Folds, State, Wait};
use crate::follow::Touched;
use crate::host::Hosts;
use crate::limits::{Limits, Timestamp};
use crate::place::{DataAt, FoldAt, HostAt, SweepAt, WorkerAt};
use crate::queue::{Queues, Sweep};
use crate::race::is_ended;
use crate::standing::Standing;
use crate::submit::Arriving;
use crate::views::Counts;
use crate::words::{Digest, SweepState};

/// All state. See the crate's documentation for how it is used.
#[derive(Debug)]
pub struct Scheduler {
    pub(crate) limits: Limits,
    pub(crate) folds: Folds,
    /// Places by key; the keys themselves are in `folds` only.
    pub(crate) by_key: HashTable<FoldAt>,
    pub(crate) hasher: RandomState,
    pub(crate) trials: HashMap<TrialId, Trial>,
    /// Results of further attempts; few folds have any.
    pub(crate) replicates: BTreeMap<(FoldAt, Attempt), Digest>,
    /// Attempts that contradicted themselves, so that this is stored once. In memory only.
    pub(crate) conflicts: BTreeSet<(FoldAt, Attempt)>,
    pub(crate) sweeps: Vec<Sweep>,
    pub(crate) by_name: BTreeMap<SweepName, SweepAt>,
    /// Active sweeps with something to lease, the next one to be served first.
    pub(crate) ready: BTreeSet<Turn>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) by_worker: HashMap<WorkerId, WorkerAt>,
    /// Places of workers that left without ever having had a lease.
    pub(crate) vacant: Vec<WorkerAt>,
    pub(crate) connected: usize,
    pub(crate) hosts: Hosts,
    pub(crate) data: DataBooks,
    pub(crate) fitting: Fitting,
    /// Until then workers that the coordinator knew before it was restarted, or stood still, may come back.
    pub(crate) reunion: Timestamp,
    /// When it heard of the time last.
    pub(crate) awake: Timestamp,
    pub(crate) timers: BTreeSet<(Timestamp, Timer)>,
    /// Counts servings, for taking turns.
    pub(crate) servings: u64,
    pub(crate) sessions: u64,
    pub(crate) revision: u64,
    pub(crate) supply: u64,
    pub(crate) steps: u64,
    /// Pending folds by trial and sweeps, for whoever starts workers.
    pub(crate) waiting: Waiting,
    /// Folds by state, whoever has them.
    pub(crate) totals: Counts,
    /// The latest changes, for those who follow.
    pub(crate) touched: Touched,
    /// The large sweep that is being submitted.
    pub(crate) arriving: Option<Arriving>,
    /// Groups of trials of racing sweeps that are to be looked at before the event is over.
    pub(crate) due: BTreeSet<(SweepAt, usize)>,
}

/// The order in which sweeps are served: priority, then whoever runs the least, then whoever waited longest.
pub(crate) type Turn = (Reverse<i32>, u64, u64, SweepAt);

/// What happens when its time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A lease was not renewed.
    Lease(FoldAt),
    /// A fold has waited long enough for another worker.
    Held(FoldAt),
    /// A worker was silent, or did not come back.
    Worker(WorkerAt),
    /// A quarantine is over.
    Host(HostAt),
    /// A draining worker that went silent is forgotten.
    Drain(WorkerAt),
}

/// A trial: its settings, and what was learnt about it.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) canonical: Arc<str>,
    pub(crate) data: Option<DataAt>,
    pub(crate) numerics: Option<u32>,
    /// What the accuracies of its data set are.
    pub(crate) metric: Option<Scoring>,
    /// What its values are, unless they are shares.
    pub(crate) score: Option<Box<Scale>>,
    /// Bytes of memory that it needs at least; 0 if it never ran out.
    pub(crate) floor: u64,
    /// Which versions of the worker program cannot read it, one bit each.
    pub(crate) unread: u64,
    /// Whether a worker can go on where another one had to stop.
    pub(crate) resumable: bool,
    /// What a worker must offer to train it.
    pub(crate) needs: Option<Capability>,
}

#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) id: WorkerId,
    /// The host it named first.
    pub(crate) host: Arc<str>,
    pub(crate) leases: BTreeSet<FoldAt>,
    /// Whether an attempt names it, so that its place must stay.
    pub(crate) remembered: bool,
    pub(crate) draining: Draining,
    /// Whether it reported something that this coordinator is too old to read: it gets nothing before that is upgraded.
    pub(crate) needs_upgrade: bool,
    /// Since when it is here.
    pub(crate) since: Timestamp,
    /// Whether it brought a result since.
    pub(crate) fruitful: bool,
    /// Whether it lost a fold, or gave one back, since.
    pub(crate) unfinished: bool,
    pub(crate) presence: Option<Presence>,
}

/// Whether a worker gets nothing new because somebody said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Draining {
    No,
    /// It is here.
    Here,
    /// It went silent; if it comes back before then, it is still draining.
    Gone {
        until: Timestamp,
    },
}

/// A worker that is here, or was a moment ago.
#[derive(Debug)]
pub(crate) struct Presence {
    pub(crate) info: WorkerInfo,
    pub(crate) slots: Vec<Slot>,
    /// Numbers of the slots that no lease is on.
    pub(crate) free: BTreeSet<u32>,
    /// Its version of the worker program, as a bit.
    pub(crate) version: u64,
    pub(crate) session: u64,
    pub(crate) closed: bool,
    pub(crate) deadline: Timestamp,
    /// When it will have to leave, if it knows.
    pub(crate) until: Option<Timestamp>,
}

impl Scheduler {
    pub(crate) fn empty(limits: Limits) -> Self {
        Self {
            limits,
            folds: Folds::default(),
            by_key: HashTable::new(),
            hasher: RandomState::new(),
            trials: HashMap::new(),
            replicates: BTreeMap::new(),
            conflicts: BTreeSet::new(),
            sweeps: Vec::new(),
            by_name: BTreeMap::new(),
            ready: BTreeSet::new(),
            workers: Vec::new(),
            by_worker: HashMap::new(),
            vacant: Vec::new(),
            connected: 0,
            hosts: Hosts::default(),
            data: DataBooks::default(),
            fitting: Fitting::default(),
            reunion: Timestamp::default(),
            awake: Timestamp::default(),
            timers: BTreeSet::new(),
            servings: 0,
            sessions: 0,
            revision: 0,
            supply: 0,
            steps: 0,
            waiting: Waiting::default(),
            totals: Counts::default(),
            touched: Touched::default(),
            arriving: None,
            due: BTreeSet::new(),
        }
    }

    /// When [`Event::Tick`](crate::Event::Tick) is due next. Whoever comes much later stood still.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let pulse = self.awake.plus(self.limits.pulse);
        self.timers.first().map(|(deadline, _)| pulse.min(*deadline))
    }

    /// Grows with every change that somebody who watches could see, stored or not.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Grows whenever there may be something new to lease; who asked in vain should ask again.
    pub fn supply(&self) -> u64 {
        self.supply
    }

    /// Places that were looked at to decide about leases, since the start. Each costs the depth of a tree.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// How often a fold was looked at, for whatever reason, since the start.
    pub fn looked_at(&self) -> u64 {
        self.folds.looked_at()
    }

    /// The bounds it works within.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn place_of(&self, key: &FoldKey) -> Option<FoldAt> {
        let same = |at: &FoldAt| self.folds[at.at()].key == *key;
        self.by_key.find(self.hasher.hash_one(key), same).copied()
    }

    /// Adds a pending fold that is not there yet.
    pub(crate) fn add_fold(&mut self, key: FoldKey) -> FoldAt {
        let at = FoldAt::next(self.folds.len());
        self.folds.push(Fold::new(key));
        self.totals.pending += 1;
        let (hasher, folds) = (&self.hasher, &self.folds);
        let hash = |at: &FoldAt| hasher.hash_one(folds[at.at()].key);
        self.by_key.insert_unique(hasher.hash_one(key), at, hash);
        at
    }

    /// Makes room for that many more folds at once.
    pub(crate) fn reserve(&mut self, folds: usize) {
        self.folds.reserve(folds);
        let (hasher, known) = (&self.hasher, &self.folds);
        self.by_key.reserve(folds, |at| hasher.hash_one(known[at.at()].key));
    }

    pub(crate) fn add_trial(&mut self, trial: TrialId, canonical: Arc<str>) {
        // A trial may be of another version: then what it says is taken as far as it is known.
        let (config, numerics) = TrialConfig::of_any_version(&canonical).unwrap_or_default();
        let named = !config.dataset.is_empty();
        let data = named.then(|| self.data.enrol(&config.data()));
        let metric = named.then(|| Scoring::of(&config.dataset));
        let numerics = numerics.and_then(|number| u32::try_from(number).ok());
        let resumable = !config.model.is_kernel();
        let needs = config.needs();
        let score = config.program.and_then(|program| program.code.score.clone()).map(Box::new);
        let entry = Trial { canonical, data, numerics, metric, score, floor: 0, unread: 0, resumable, needs };
        self.trials.insert(trial, entry);
    }

    pub(crate) fn sweeps_of<'a>(&'a self, fold: &'a Fold) -> impl Iterator<Item = &'a Sweep> {
        fold.sweeps.iter().map(|(sweep, _)| &self.sweeps[sweep.at()])
    }

    /// Whether any sweep that is neither cancelled nor archived has this fold and has not stopped its trial.
    pub(crate) fn is_wanted(&self, fold: &Fold) -> bool {
        self.sweeps_of(fold).any(|sweep| sweep.wants_trial(fold.key.trial))
    }

    /// Moves a fold to another state, in all books.
    pub(crate) fn set_state(&mut self, at: FoldAt, state: State) {
        self.supply += u64::from(matches!(state, State::Pending(_)));
        self.revision += 1;
        self.touched.note(at);
        self.move_to(at, state);
    }

    /// Puts a pending fold aside, or lets it wait for something else. Nobody can see the difference.
    pub(crate) fn set_wait(&mut self, at: FoldAt, wait: Wait) {
        self.move_to(at, State::Pending(wait));
    }

    fn move_to(&mut self, at: FoldAt, state: State) {
        let was_ended = is_ended(&self.folds[at.at()].state);
        self.take_out(at);
        let before = self.totals.of(&self.folds[at.at()].state);
        *before = before.saturating_sub(1);
        *self.totals.of(&state) += 1;
        self.folds[at.at()].state = state;
        self.put_in(at);
        self.note_for_races(at, was_ended);
    }

    fn take_out(&mut self, at: FoldAt) {
        let fold = &self.folds[at.at()];
        match fold.state {
            State::Leased { worker, slot, deadline, .. } => {
                self.timers.remove(&(deadline, Timer::Lease(at)));
                self.workers[worker.at()].give_back(at, slot);
            }
            State::Pending(Wait::Another { until, .. }) => {
                _ = self.timers.remove(&(until, Timer::Held(at)));
            }
            _ => {}
        }
        self.waiting.leave(fold);
        for (sweep, position) in &fold.sweeps {
            self.sweeps[sweep.at()].leave(*position, fold);
            list(&mut self.ready, &mut self.sweeps[sweep.at()], *sweep);
        }
    }

    fn put_in(&mut self, at: FoldAt) {
        let fold = &self.folds[at.at()];
        match fold.state {
            State::Leased { worker, slot, deadline, .. } => {
                self.timers.insert((deadline, Timer::Lease(at)));
                self.workers[worker.at()].take(at, slot);
            }
            State::Pending(Wait::Another { until, .. }) => _ = self.timers.insert((until, Timer::Held(at))),
            _ => {}
        }
        self.waiting.enter(fold);
        for (sweep, position) in &fold.sweeps {
            self.sweeps[sweep.at()].enter(*position, fold);
            list(&mut self.ready, &mut self.sweeps[sweep.at()], *sweep);
        }
    }

    /// Gives `sweep` exactly these folds.
    pub(crate) fn link(&mut self, sweep_at: SweepAt, folds: Vec<FoldAt>) {
        let old = std::mem::take(&mut self.sweeps[sweep_at.at()].folds);
        let sweep = &mut self.sweeps[sweep_at.at()];
        for at in old {
            let fold = &mut self.folds[at.at()];
            self.waiting.leave(fold);
            fold.sweeps.retain(|(sweep, _)| *sweep != sweep_at);
            self.waiting.enter(fold);
        }
        (sweep.standing, sweep.queues) = (Standing::default(), Queues::default());
        sweep.stopped.clear();
        for (position, at) in (0..).zip(&folds) {
            let fold = &mut self.folds[at.at()];
            self.waiting.leave(fold);
            fold.sweeps.push((sweep_at, position));
            self.waiting.enter(fold);
            sweep.admit(position, fold);
        }
        folds.first().into_iter().for_each(|first| self.touched.note(*first)); // whoever follows has to start over
        sweep.gathered = self.touched.number;
        sweep.folds = folds;
        self.begin_race(sweep_at);
        self.relist(sweep_at);
    }

    /// To be called after anything that decides whether and when a sweep is served has changed.
    pub(crate) fn relist(&mut self, sweep: SweepAt) {
        list(&mut self.ready, &mut self.sweeps[sweep.at()], sweep);
        self.revision += 1;
        self.supply += 1;
    }
}

impl Worker {
    pub(crate) fn is_draining(&self) -> bool {
        self.draining != Draining::No
    }

    fn take(&mut self, fold: FoldAt, slot: u32) {
        self.leases.insert(fold);
        if let Some(presence) = &mut self.presence {
            presence.free.remove(&slot);
        }
    }

    fn give_back(&mut self, fold: FoldAt, slot: u32) {
        self.leases.remove(&fold);
        if let Some(presence) = &mut self.presence
            && (slot as usize) < presence.slots.len()
        {
            presence.free.insert(slot);
        }
    }
}

/// Puts a sweep into the serving order, at its place, if it is active and has something to lease.
fn list(ready: &mut BTreeSet<Turn>, sweep: &mut Sweep, at: SweepAt) {
    let serves = sweep.state == SweepState::Active && !sweep.queues.is_empty();
    let turn =
        serves.then_some((Reverse(sweep.priority), sweep.standing.counts.running, sweep.last_served, at));
    if turn != sweep.listed {
        if let Some(old) = sweep.listed {
            ready.remove(&old);
        }
        if let Some(new) = turn {
            ready.insert(new);
        }
        sweep.listed = turn;
    }
}
