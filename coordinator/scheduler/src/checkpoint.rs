//! What a checkpoint of a fold is still good for. The scheduler has none and decides nothing about them; whoever keeps them
//! asks here.

use togl_sweeps::FoldKey;

use crate::fold::State;
use crate::state::Scheduler;

/// What a checkpoint of a fold is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// An attempt goes on from it, or may have to.
    Needed,
    /// Nobody wants the fold now; that may change.
    Unwanted,
    /// The fold has its result.
    Over,
}

impl Scheduler {
    /// What a checkpoint of this fold is good for.
    pub fn use_of_checkpoint(&self, fold: &FoldKey) -> Use {
        let Some(fold) = self.place_of(fold).map(|at| &self.folds[at.at()]) else { return Use::Unwanted };
        match fold.state {
            State::Finished { .. } => Use::Over,
            State::Failed(_) => Use::Unwanted,
            State::Pending(_) | State::Leased { .. } if self.is_wanted(fold) => Use::Needed,
            State::Pending(_) | State::Leased { .. } => Use::Unwanted,
        }
    }
}
