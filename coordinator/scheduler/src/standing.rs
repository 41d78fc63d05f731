//! Where the folds of one sweep stand: counts, and the places of those that people ask for. Kept in step whenever a fold
//! changes its state, so that looking at a sweep costs what is shown and not what the sweep holds. Decides nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use togl_sweeps::{FailureClass, TrialId};

use crate::fold::{Fold, State};
use crate::views::Counts;

/// The folds of a sweep by state. A recount of the same folds is equal to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) counts: Counts,
    /// Positions of the folds in training.
    pub(crate) running: BTreeSet<u32>,
    /// Positions of the failed folds.
    pub(crate) failed: BTreeSet<u32>,
    /// Failed folds by class.
    pub(crate) classes: BTreeMap<FailureClass, u64>,
    /// Pending folds that the race of the sweep has stopped.
    pub(crate) stopped: u64,
    /// Folds without a result, for each trial that has any.
    open: HashMap<TrialId, u32>,
}

impl Standing {
    /// A fold belongs to the sweep from now on.
    pub(crate) fn admit(&mut self, position: u32, fold: &Fold) {
        *self.open.entry(fold.key.trial).or_default() += 1;
        self.enter(position, fold);
    }

    /// A fold of the sweep has come to its state.
    pub(crate) fn enter(&mut self, position: u32, fold: &Fold) {
        *self.counts.of(&fold.state) += 1;
        match &fold.state {
            State::Pending(_) => {}
            State::Leased { .. } => _ = self.running.insert(position),
            State::Finished { .. } => take(&mut self.open, fold.key.trial),
            State::Failed(failure) => {
                self.failed.insert(position);
                *self.classes.entry(failure.class).or_default() += 1;
            }
        }
    }

    /// A fold of the sweep is about to leave its state.
    pub(crate) fn leave(&mut self, position: u32, fold: &Fold) {
        let count = self.counts.of(&fold.state);
        *count = count.saturating_sub(1);
        match &fold.state {
            State::Pending(_) => {}
            State::Leased { .. } => _ = self.running.remove(&position),
            State::Finished { .. } => *self.open.entry(fold.key.trial).or_default() += 1,
            State::Failed(failure) => {
                self.failed.remove(&position);
                if let Some(count) = self.classes.get_mut(&failure.class) {
                    *count = count.saturating_sub(1);
                }
                self.classes.retain(|_, count| *count > 0);
            }
        }
    }

    /// Trials of which a fold has no result.
    pub(crate) fn open_trials(&self) -> u64 {
        self.open.len() as u64
    }
}

/// One fold fewer of this trial is open.
fn take(open: &mut HashMap<TrialId, u32>, trial: TrialId) {
    if let Some(count) = open.get_mut(&trial) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            open.remove(&trial);
        }
    }
}
