//! A fold in memory: its key, where it stands, who has it, who tried it. Small, because there are millions:
//! what few folds have (replicates, memory floors) is kept elsewhere.

use std::cell::Cell;
use std::ops::{Index, IndexMut};

use smallvec::SmallVec;
use togl_sweeps::race::Score;
use togl_sweeps::{Attempt, Failure, FoldKey};

use crate::limits::Timestamp;
use crate::place::{ObstacleAt, SweepAt, WorkerAt};
use crate::words::{Digest, Ending};

/// A fold. One sweep and two attempts need no memory beside it.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) key: FoldKey,
    pub(crate) state: State,
    /// Sweeps that have it, and its place in each.
    pub(crate) sweeps: SmallVec<[(SweepAt, u32); 1]>,
    /// Attempt 1 first.
    pub(crate) attempts: SmallVec<[Issue; 2]>,
    /// Attempts before a retry; they no longer count.
    pub(crate) forgiven: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum State {
    Pending(Wait),
    Leased { attempt: Attempt, worker: WorkerAt, slot: u32, deadline: Timestamp },
    Finished { attempt: Attempt, digest: Digest, score: Score },
    Failed(Box<Failure>),
}

/// What a pending fold waits for beside a free slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    Nothing,
    /// Any worker but this one, until then.
    Another {
        worker: WorkerAt,
        until: Timestamp,
    },
    /// It was looked at and put aside: not everybody may have it.
    PutAside(ObstacleAt),
}

/// An attempt that was issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Issue {
    pub(crate) worker: WorkerAt,
    pub(crate) ending: Option<Ending>,
}

impl Fold {
    pub(crate) fn new(key: FoldKey) -> Self {
        let (sweeps, attempts) = (SmallVec::new(), SmallVec::new());
        Self { key, state: State::Pending(Wait::Nothing), sweeps, attempts, forgiven: 0 }
    }

    pub(crate) fn issue(&self, attempt: Attempt) -> Option<&Issue> {
        self.attempts.get(index_of(attempt)?)
    }

    pub(crate) fn issue_mut(&mut self, attempt: Attempt) -> Option<&mut Issue> {
        self.attempts.get_mut(index_of(attempt)?)
    }

    /// The attempts that count, with their numbers.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (Attempt, &Issue)> {
        (1..).map(Attempt).zip(&self.attempts).skip(self.forgiven as usize)
    }

    /// The number of the latest attempt; 0 if there was none.
    pub(crate) fn last_attempt(&self) -> Attempt {
        Attempt(u32::try_from(self.attempts.len()).unwrap_or(u32::MAX))
    }

    pub(crate) fn is_current(&self, attempt: Attempt) -> bool {
        matches!(self.state, State::Leased { attempt: current, .. } if current == attempt)
    }
}

/// All folds, by place. Counts how often one was looked at, so that tests can say what a look or a decision costs.
#[derive(Debug, Default)]
pub(crate) struct Folds {
    all: Vec<Fold>,
    looked_at: Cell<u64>,
}

impl Folds {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn push(&mut self, fold: Fold) {
        self.all.push(fold);
    }

    pub(crate) fn reserve(&mut self, more: usize) {
        self.all.reserve_exact(more);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Fold> {
        (0..self.all.len()).map(|index| &self[index])
    }

    pub(crate) fn looked_at(&self) -> u64 {
        self.looked_at.get()
    }
}

impl Index<usize> for Folds {
    type Output = Fold;

    fn index(&self, index: usize) -> &Fold {
        self.looked_at.set(self.looked_at.get() + 1);
        &self.all[index]
    }
}

impl IndexMut<usize> for Folds {
    fn index_mut(&mut self, index: usize) -> &mut Fold {
        self.looked_at.set(self.looked_at.get() + 1);
        &mut self.all[index]
    }
}

fn index_of(attempt: Attempt) -> Option<usize> {
    attempt.0.checked_sub(1).and_then(|index| usize::try_from(index).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fold_is_small() {
        assert!(size_of::<Fold>() <= 128, "{} bytes", size_of::<Fold>());
        assert_eq!(size_of::<Issue>(), 8);
    }
}
