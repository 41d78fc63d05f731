//! The books: folds, sweeps, workers, queues and timers, and the few functions that keep them in step. A fold
//! changes its state only through [`Scheduler::set_state`], which moves it between queues, counts, timers and
//! its worker's leases, so that no caller can forget one. Decides nothing about who gets what.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use togl_sweeps::spec::Limits as SweepLimits;
use togl_sweeps::{Attempt, Failure, FoldKey, SweepName, TrialId, WorkerId};

use crate::change::{Digest, Ending, SweepState};
use crate::event::WorkerInfo;
use crate::limits::{Limits, Timestamp};
use crate::views::Counts;

/// Defines a number that stands for an entry of one of the tables below.
macro_rules! place {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(pub(crate) u32);

        impl $name {
            /// The place as an index into its table.
            pub(crate) fn at(self) -> usize {
                self.0 as usize
            }

            /// The place of the next entry of a table that has `len`.
            pub(crate) fn next(len: usize) -> Self {
                Self(u32::try_from(len).unwrap_or(u32::MAX)) // tables are bounded far below by `Limits`
            }
        }
    };
}

place!(
    /// A fold's place.
    FoldAt
);
place!(
    /// A sweep's place.
    SweepAt
);
place!(
    /// A worker's place.
    WorkerAt
);

/// All state. See the crate's documentation for how it is used.
#[derive(Debug)]
pub struct Scheduler {
    pub(crate) limits: Limits,
    pub(crate) folds: Vec<Fold>,
    pub(crate) by_key: HashMap<FoldKey, FoldAt>,
    pub(crate) trials: HashMap<TrialId, Arc<str>>,
    pub(crate) sweeps: Vec<Sweep>,
    pub(crate) by_name: BTreeMap<SweepName, SweepAt>,
    /// Active sweeps with something to lease, the next one to be served first.
    pub(crate) ready: BTreeSet<Turn>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) by_worker: HashMap<WorkerId, WorkerAt>,
    /// Places of workers that left without ever having had a lease.
    pub(crate) vacant: Vec<WorkerAt>,
    pub(crate) connected: usize,
    pub(crate) timers: BTreeSet<(Timestamp, Timer)>,
    /// Counts servings, for taking turns.
    pub(crate) servings: u64,
    pub(crate) sessions: u64,
    pub(crate) revision: u64,
    pub(crate) supply: u64,
}

/// The order in which sweeps are served: priority, then whoever waited longest, then submission.
pub(crate) type Turn = (Reverse<i32>, u64, SweepAt);

/// What happens when its time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A lease was not renewed.
    Lease(FoldAt),
    /// A fold has waited long enough for another worker.
    Held(FoldAt),
    /// A worker was silent, or did not come back.
    Worker(WorkerAt),
}

#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) key: FoldKey,
    pub(crate) state: State,
    /// Sweeps that have it, and its place in each.
    pub(crate) sweeps: Vec<(SweepAt, u32)>,
    /// Attempt 1 first.
    pub(crate) attempts: Vec<Issue>,
    /// Attempts before a retry; they no longer count.
    pub(crate) forgiven: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum State {
    Pending { avoid: Option<(WorkerAt, Timestamp)> },
    Leased { attempt: Attempt, worker: WorkerAt, deadline: Timestamp },
    Finished { attempt: Attempt, digest: Digest },
    Failed(Box<Failure>),
}

/// An attempt that was issued.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Issue {
    pub(crate) worker: WorkerAt,
    pub(crate) ending: Option<Ending>,
    pub(crate) replicate: Option<Digest>,
}

#[derive(Debug)]
pub(crate) struct Sweep {
    pub(crate) name: SweepName,
    pub(crate) yaml: Arc<str>,
    pub(crate) priority: i32,
    pub(crate) limits: SweepLimits,
    pub(crate) state: SweepState,
    pub(crate) folds: Vec<FoldAt>,
    pub(crate) trials: u64,
    pub(crate) counts: Counts,
    /// Positions of pending folds that anybody may have.
    pub(crate) queue: BTreeSet<u32>,
    /// Positions of pending folds that one worker may not have yet, by that worker.
    pub(crate) held: BTreeMap<WorkerAt, BTreeSet<u32>>,
    pub(crate) last_served: u64,
    /// Its entry in [`Scheduler::ready`], if it has one.
    pub(crate) listed: Option<Turn>,
}

#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) id: WorkerId,
    /// The host it named first.
    pub(crate) host: String,
    pub(crate) leases: BTreeSet<FoldAt>,
    /// Whether an attempt names it, so that its place must stay.
    pub(crate) remembered: bool,
    pub(crate) presence: Option<Presence>,
}

/// A worker that is here, or was a moment ago.
#[derive(Debug)]
pub(crate) struct Presence {
    pub(crate) info: WorkerInfo,
    pub(crate) session: u64,
    pub(crate) closed: bool,
    pub(crate) draining: bool,
    pub(crate) deadline: Timestamp,
}

impl Fold {
    pub(crate) fn new(key: FoldKey) -> Self {
        Self {
            key,
            state: State::Pending { avoid: None },
            sweeps: Vec::new(),
            attempts: Vec::new(),
            forgiven: 0,
        }
    }

    pub(crate) fn issue(&self, attempt: Attempt) -> Option<&Issue> {
        self.attempts.get(index_of(attempt)?)
    }

    pub(crate) fn issue_mut(&mut self, attempt: Attempt) -> Option<&mut Issue> {
        self.attempts.get_mut(index_of(attempt)?)
    }

    /// The number of the latest attempt; 0 if there was none.
    pub(crate) fn last_attempt(&self) -> Attempt {
        Attempt(u32::try_from(self.attempts.len()).unwrap_or(u32::MAX))
    }
}

fn index_of(attempt: Attempt) -> Option<usize> {
    attempt.0.checked_sub(1).and_then(|index| usize::try_from(index).ok())
}

impl Sweep {
    fn enter(&mut self, position: u32, state: &State) {
        *self.counts.of(state) += 1;
        match state {
            State::Pending { avoid: None } => _ = self.queue.insert(position),
            State::Pending { avoid: Some((worker, _)) } => {
                self.held.entry(*worker).or_default().insert(position);
            }
            _ => {}
        }
    }

    fn leave(&mut self, position: u32, state: &State) {
        let count = self.counts.of(state);
        *count = count.saturating_sub(1);
        match state {
            State::Pending { avoid: None } => _ = self.queue.remove(&position),
            State::Pending { avoid: Some((worker, _)) } => {
                if let Some(positions) = self.held.get_mut(worker) {
                    positions.remove(&position);
                    if positions.is_empty() {
                        self.held.remove(worker);
                    }
                }
            }
            _ => {}
        }
    }

    /// The first fold that `worker` may have. Looks at two held queues at the most.
    pub(crate) fn next_for(&self, worker: WorkerAt) -> Option<FoldAt> {
        let held = self.held.iter().find(|(avoided, _)| **avoided != worker);
        let held = held.and_then(|(_, positions)| positions.first());
        let position = self.queue.first().into_iter().chain(held).min()?;
        self.folds.get(*position as usize).copied()
    }

    pub(crate) fn wants(&self) -> bool {
        self.state != SweepState::Cancelled
    }
}

impl Scheduler {
    pub(crate) fn empty(limits: Limits) -> Self {
        Self {
            limits,
            folds: Vec::new(),
            by_key: HashMap::new(),
            trials: HashMap::new(),
            sweeps: Vec::new(),
            by_name: BTreeMap::new(),
            ready: BTreeSet::new(),
            workers: Vec::new(),
            by_worker: HashMap::new(),
            vacant: Vec::new(),
            connected: 0,
            timers: BTreeSet::new(),
            servings: 0,
            sessions: 0,
            revision: 0,
            supply: 0,
        }
    }

    /// When [`Event::Tick`](crate::Event::Tick) is due next.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.timers.first().map(|(deadline, _)| *deadline)
    }

    /// Grows with every change that somebody who watches could see, stored or not.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Grows whenever there may be something new to lease; who asked in vain should ask again.
    pub fn supply(&self) -> u64 {
        self.supply
    }

    /// The bounds it works within.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether anybody who is not cancelled has this fold.
    pub(crate) fn is_wanted(&self, fold: &Fold) -> bool {
        fold.sweeps.iter().any(|(sweep, _)| self.sweeps[sweep.at()].wants())
    }

    /// Moves a fold to another state, in all books.
    pub(crate) fn set_state(&mut self, at: FoldAt, state: State) {
        self.take_out(at);
        self.folds[at.at()].state = state;
        self.put_in(at);
        self.revision += 1;
    }

    fn take_out(&mut self, at: FoldAt) {
        let fold = &self.folds[at.at()];
        match fold.state {
            State::Leased { worker, deadline, .. } => {
                self.timers.remove(&(deadline, Timer::Lease(at)));
                self.workers[worker.at()].leases.remove(&at);
            }
            State::Pending { avoid: Some((_, until)) } => _ = self.timers.remove(&(until, Timer::Held(at))),
            _ => {}
        }
        for (sweep, position) in &fold.sweeps {
            self.sweeps[sweep.at()].leave(*position, &fold.state);
            list(&mut self.ready, &mut self.sweeps[sweep.at()], *sweep);
        }
    }

    fn put_in(&mut self, at: FoldAt) {
        let fold = &self.folds[at.at()];
        match fold.state {
            State::Leased { worker, deadline, .. } => {
                self.timers.insert((deadline, Timer::Lease(at)));
                self.workers[worker.at()].leases.insert(at);
            }
            State::Pending { avoid: Some((_, until)) } => _ = self.timers.insert((until, Timer::Held(at))),
            _ => {}
        }
        self.supply += u64::from(matches!(fold.state, State::Pending { .. }));
        for (sweep, position) in &fold.sweeps {
            self.sweeps[sweep.at()].enter(*position, &fold.state);
            list(&mut self.ready, &mut self.sweeps[sweep.at()], *sweep);
        }
    }

    /// Gives `sweep` exactly these folds.
    pub(crate) fn link(&mut self, sweep_at: SweepAt, folds: Vec<FoldAt>) {
        let old = std::mem::take(&mut self.sweeps[sweep_at.at()].folds);
        let sweep = &mut self.sweeps[sweep_at.at()];
        for at in old {
            let fold = &mut self.folds[at.at()];
            if let Some(index) = fold.sweeps.iter().position(|(sweep, _)| *sweep == sweep_at) {
                let (_, position) = fold.sweeps.swap_remove(index);
                sweep.leave(position, &fold.state);
            }
        }
        for (position, at) in (0..).zip(&folds) {
            let fold = &mut self.folds[at.at()];
            fold.sweeps.reserve_exact(1);
            fold.sweeps.push((sweep_at, position));
            sweep.enter(position, &fold.state);
        }
        sweep.folds = folds;
        self.relist(sweep_at);
    }

    /// To be called after anything that decides whether and when a sweep is served has changed.
    pub(crate) fn relist(&mut self, sweep: SweepAt) {
        list(&mut self.ready, &mut self.sweeps[sweep.at()], sweep);
        self.revision += 1;
        self.supply += 1;
    }
}

/// Puts a sweep into the serving order, at its place, if it is active and has something to lease.
fn list(ready: &mut BTreeSet<Turn>, sweep: &mut Sweep, at: SweepAt) {
    let serves = sweep.state == SweepState::Active && !(sweep.queue.is_empty() && sweep.held.is_empty());
    let turn = serves.then_some((Reverse(sweep.priority), sweep.last_served, at));
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
