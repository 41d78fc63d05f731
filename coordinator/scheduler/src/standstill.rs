//! Why does nothing of this sweep run? One answer for the whole sweep, from the obstacle of the fold that is next. Reads
//! the state, changes nothing.

use std::fmt;
use std::sync::Arc;

use togl_sweeps::{FailureClass, WorkerId};

use crate::explain::Reason;
use crate::fold::{Fold, State, Wait};
use crate::limits::Timestamp;
use crate::place::FoldAt;
use crate::queue::Sweep;
use crate::state::Scheduler;
use crate::words::{Ending, SweepState};

/// Waiting folds that are looked at to find the one whose wait is over first.
const LOOKED_AT: usize = 1_000;

/// What keeps a sweep from going on although it has folds to train.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standstill {
    /// Somebody paused it, or it did so itself.
    Paused {
        /// Why, if it did so itself.
        note: Option<Arc<str>>,
    },
    /// Everything that is left failed before and waits for another worker.
    AllWait {
        /// How many.
        folds: u64,
        /// How the one that waits least ended.
        class: Option<FailureClass>,
        /// On whom.
        worker: WorkerId,
        /// Until that one may try again.
        milliseconds: u64,
    },
    /// What keeps its next fold keeps all.
    Blocked(Reason),
}

impl fmt::Display for Standstill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused { note: None } => write!(f, "it is paused; `togl resume` goes on"),
            Self::Paused { note: Some(note) } => write!(f, "{note}"),
            Self::AllWait { folds, class, worker, milliseconds } => {
                let class = class.map_or_else(|| "an attempt".to_owned(), |class| format!("`{class}`"));
                let what = if *folds == 1 { "the pending fold waits" } else { "all pending folds wait" };
                let seconds = milliseconds.div_ceil(1_000);
                write!(
                    f,
                    "{what} for another worker after {class} on {worker}; {worker} may try again in {seconds} s"
                )
            }
            Self::Blocked(reason) => write!(f, "{reason}"),
        }
    }
}

impl Scheduler {
    /// Why nothing of a sweep runs; none if something does, or will in a moment, or nothing is left.
    pub(crate) fn standstill(&self, now: Timestamp, sweep: &Sweep) -> Option<Standstill> {
        let counts = sweep.view().counts;
        match sweep.state {
            SweepState::Cancelled | SweepState::Archived => None,
            SweepState::Active | SweepState::Paused if counts.running > 0 || counts.pending == 0 => None,
            SweepState::Paused => Some(Standstill::Paused { note: sweep.note.clone() }),
            SweepState::Active => {
                let next = &self.folds[self.next_of(sweep)?.at()];
                match self.reason(now, next) {
                    Reason::Queued { .. } => None,
                    Reason::WaitsForAnother { worker, milliseconds } => {
                        let (folds, class) = (counts.pending, last_class(next));
                        Some(Standstill::AllWait { folds, class, worker, milliseconds })
                    }
                    reason => Some(Standstill::Blocked(reason)),
                }
            }
        }
    }

    /// The fold that would be handed out first: one that anybody may have, else the one that waits least.
    fn next_of(&self, sweep: &Sweep) -> Option<FoldAt> {
        let queues = &sweep.queues;
        let put_aside = || queues.put_aside.values().find_map(|positions| positions.first());
        if let Some(position) = queues.open.first().or_else(put_aside) {
            return sweep.folds.get(*position as usize).copied();
        }
        let held = queues.held.values().flatten().take(LOOKED_AT);
        let places = held.filter_map(|position| sweep.folds.get(*position as usize).copied());
        places.min_by_key(|at| match self.folds[at.at()].state {
            State::Pending(Wait::Another { until, .. }) => until,
            State::Pending(_) | State::Leased { .. } | State::Finished { .. } | State::Failed(_) => {
                Timestamp::default()
            }
        })
    }
}

fn last_class(fold: &Fold) -> Option<FailureClass> {
    match fold.attempts.last()?.ending? {
        Ending::Failed(class) => Some(class),
        Ending::Abandoned => None,
    }
}
