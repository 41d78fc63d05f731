//! A sweep in memory and its queues: which of its pending folds anybody may have, which wait for another
//! worker, and which were put aside behind an obstacle. Keeps order and counts; decides nothing about workers.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use togl_sweeps::race::Race;
use togl_sweeps::spec::{Resources, SweepLimits};
use togl_sweeps::{SweepName, TrialId};

use crate::demand::Pace;
use crate::early_warning::EarlyWarning;
use crate::fold::{Fold, State, Wait};
use crate::place::{FoldAt, ObstacleAt, WorkerAt};
use crate::race::Course;
use crate::standing::Standing;
use crate::words::SweepState;

/// A sweep.
#[derive(Debug)]
pub(crate) struct Sweep {
    pub(crate) name: SweepName,
    pub(crate) yaml: Arc<str>,
    pub(crate) priority: i32,
    pub(crate) limits: SweepLimits,
    pub(crate) resources: Resources,
    pub(crate) race: Option<Arc<Race>>,
    /// How far the race is.
    pub(crate) course: Option<Box<Course>>,
    /// Trials that the race has stopped, as the books below have it.
    pub(crate) stopped: HashSet<TrialId>,
    pub(crate) state: SweepState,
    /// Why it is in that state, if it went there by itself.
    pub(crate) note: Option<Arc<str>>,
    pub(crate) folds: Vec<FoldAt>,
    pub(crate) trials: u64,
    pub(crate) standing: Standing,
    /// The number of the last change when it got its folds; see `follow`.
    pub(crate) gathered: u64,
    pub(crate) queues: Queues,
    pub(crate) early_warning: EarlyWarning,
    /// How long its folds take.
    pub(crate) pace: Pace,
    pub(crate) last_served: u64,
    /// Its entry in the serving order, if it has one.
    pub(crate) listed: Option<crate::state::Turn>,
}

/// Positions of the pending folds of a sweep.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Queues {
    /// Of those that anybody may have, as far as is known.
    pub(crate) open: BTreeSet<u32>,
    /// Of those that one worker may not have yet, by that worker.
    pub(crate) held: BTreeMap<WorkerAt, BTreeSet<u32>>,
    /// Of those that were put aside, by what stands in their way.
    pub(crate) put_aside: BTreeMap<ObstacleAt, BTreeSet<u32>>,
}

impl Queues {
    pub(crate) fn enter(&mut self, position: u32, state: &State) {
        match state {
            State::Pending(Wait::Nothing) => _ = self.open.insert(position),
            State::Pending(Wait::Another { worker, .. }) => {
                _ = self.held.entry(*worker).or_default().insert(position);
            }
            State::Pending(Wait::PutAside(obstacle)) => {
                _ = self.put_aside.entry(*obstacle).or_default().insert(position)
            }
            _ => {}
        }
    }

    fn leave(&mut self, position: u32, state: &State) {
        match state {
            State::Pending(Wait::Nothing) => _ = self.open.remove(&position),
            State::Pending(Wait::Another { worker, .. }) => remove(&mut self.held, worker, position),
            State::Pending(Wait::PutAside(obstacle)) => remove(&mut self.put_aside, obstacle, position),
            _ => {}
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.held.is_empty() && self.put_aside.is_empty()
    }

    /// The first position that `worker` may have, if `opens` says so of the obstacles. Looks at the first positions
    /// only: two of the held queues at the most, and one for each obstacle.
    pub(crate) fn first_for(
        &self,
        worker: WorkerAt,
        mut opens: impl FnMut(ObstacleAt) -> bool,
    ) -> Option<u32> {
        let held = self.held.iter().find(|(avoided, _)| **avoided != worker);
        let held = held.and_then(|(_, positions)| positions.first());
        let put_aside = self.put_aside.iter().filter(|(obstacle, _)| opens(**obstacle));
        let put_aside = put_aside.filter_map(|(_, positions)| positions.first());
        self.open.first().into_iter().chain(held).chain(put_aside).min().copied()
    }
}

fn remove<K: Ord>(queues: &mut BTreeMap<K, BTreeSet<u32>>, key: &K, position: u32) {
    if let Some(positions) = queues.get_mut(key) {
        positions.remove(&position);
        if positions.is_empty() {
            queues.remove(key);
        }
    }
}

impl Sweep {
    pub(crate) fn new(name: SweepName) -> Self {
        Self {
            name,
            yaml: "".into(),
            priority: 0,
            limits: SweepLimits::default(),
            resources: Resources::default(),
            race: None,
            course: None,
            stopped: HashSet::new(),
            state: SweepState::Active,
            note: None,
            folds: Vec::new(),
            trials: 0,
            standing: Standing::default(),
            gathered: 0,
            queues: Queues::default(),
            early_warning: EarlyWarning::default(),
            pace: Pace::default(),
            last_served: 0,
            listed: None,
        }
    }

    /// A fold belongs to it from now on.
    pub(crate) fn admit(&mut self, position: u32, fold: &Fold) {
        self.standing.admit(position, fold);
        self.enqueue(position, fold);
    }

    pub(crate) fn enter(&mut self, position: u32, fold: &Fold) {
        self.standing.enter(position, fold);
        self.enqueue(position, fold);
    }

    /// What a race has stopped is in no queue.
    fn enqueue(&mut self, position: u32, fold: &Fold) {
        match self.has_stopped(fold.key.trial) {
            true => self.standing.stopped += u64::from(matches!(fold.state, State::Pending(_))),
            false => self.queues.enter(position, &fold.state),
        }
    }

    pub(crate) fn leave(&mut self, position: u32, fold: &Fold) {
        self.standing.leave(position, fold);
        match self.has_stopped(fold.key.trial) {
            true => {
                let waits = u64::from(matches!(fold.state, State::Pending(_)));
                self.standing.stopped = self.standing.stopped.saturating_sub(waits);
            }
            false => self.queues.leave(position, &fold.state),
        }
    }

    /// The folds at these positions.
    pub(crate) fn places(&self, positions: &BTreeSet<u32>) -> Vec<FoldAt> {
        positions.iter().filter_map(|position| self.folds.get(*position as usize).copied()).collect()
    }

    /// Trials all of whose folds are finished.
    pub(crate) fn trials_finished(&self) -> u64 {
        self.trials.saturating_sub(self.standing.open_trials())
    }

    /// Whether its folds shall be trained, now or after a pause.
    pub(crate) fn wants(&self) -> bool {
        matches!(self.state, SweepState::Active | SweepState::Paused)
    }
}
