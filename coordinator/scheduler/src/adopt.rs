//! Adoption: results that were trained under another coordinator, handed in by the operator. All of them or none: what this
//! store could never have led to is named and refused before anything changes. What is taken becomes an attempt of its own,
//! by the worker that trained it; it says nothing about the pace of a sweep here, nor about the hosts of its workers.

use std::fmt;

use togl_sweeps::{Attempt, CheckedResult, FoldKey, SweepName, WorkerId};

use crate::change::{Change, FoldChange};
use crate::fold::{Issue, State};
use crate::place::{FoldAt, SweepAt};
use crate::reply::{Rejection, Reply};
use crate::report::Delivery;
use crate::state::Scheduler;
use crate::words::Digest;

/// Refused results that are named in a message.
const NAMED: usize = 20;

/// Results from elsewhere, for the folds of one sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Adoption {
    /// Whose folds they are.
    pub sweep: SweepName,
    /// The results, of each fold at most one.
    pub results: Vec<FromElsewhere>,
}

/// A result that was trained under another coordinator.
#[derive(Debug, Clone, PartialEq)]
pub struct FromElsewhere {
    /// Which fold.
    pub fold: FoldKey,
    /// Who trained it; where that worker ran is in the result.
    pub worker: WorkerId,
    /// What came out.
    pub result: Box<CheckedResult>,
}

/// What becomes of results from elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdoptionCounts {
    /// Folds that have their result from them.
    pub taken: u64,
    /// Results that say what is known already.
    pub same: u64,
    /// Results with other numbers than those of the fold, kept beside them.
    pub replicates: u64,
}

/// Why a result cannot be adopted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unadoptable {
    /// The sweep has other folds.
    #[error("fold {0} is not in the sweep")]
    NotInSweep(FoldKey),
    /// It can never be a row of a table.
    #[error("fold {fold}: {reason}")]
    Invalid {
        /// Which fold.
        fold: FoldKey,
        /// What is wrong with its result.
        reason: String,
    },
}

/// Several of them, in lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllUnadoptable(pub Vec<Unadoptable>);

impl fmt::Display for AllUnadoptable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for refused in self.0.iter().take(NAMED) {
            write!(f, "\n  {refused}")?;
        }
        match self.0.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

/// What is done with a result from elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Taken,
    Same,
    Replicate,
}

impl AdoptionCounts {
    fn count(&mut self, fate: Fate) {
        *match fate {
            Fate::Taken => &mut self.taken,
            Fate::Same => &mut self.same,
            Fate::Replicate => &mut self.replicates,
        } += 1;
    }
}

impl Scheduler {
    /// What adopting would do, or why it cannot be; changes nothing.
    pub fn check_adoption(&self, adoption: &Adoption) -> Result<AdoptionCounts, Rejection> {
        let sweep = self.find_sweep(&adoption.sweep)?;
        let (mut counts, mut refused) = (AdoptionCounts::default(), Vec::new());
        for one in &adoption.results {
            match self.check_one(sweep, one) {
                Ok(at) => counts.count(self.fate(at, Digest::of(&one.result))),
                Err(reason) => refused.push(reason),
            }
        }
        if refused.is_empty() {
            return Ok(counts);
        }
        Err(Rejection::Unadoptable { name: adoption.sweep.clone(), refused: AllUnadoptable(refused) })
    }

    pub(crate) fn adopt(
        &mut self,
        adoption: Adoption,
        changes: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        self.check_adoption(&adoption)?;
        let mut counts = AdoptionCounts::default();
        for FromElsewhere { fold, worker, result } in adoption.results {
            let Some(at) = self.place_of(&fold) else { continue }; // it was there when it was checked
            let digest = Digest::of(&result);
            let fate = self.fate(at, digest);
            counts.count(fate);
            if fate != Fate::Same {
                let attempt = self.note_attempt(at, &worker, &result.provenance.host, changes);
                let delivery = Delivery { at, fold, attempt, worker, digest, result };
                match fate {
                    Fate::Replicate => _ = self.keep_replicate(delivery, false, changes),
                    Fate::Taken | Fate::Same => self.fill(delivery, changes),
                }
            }
        }
        Ok(Reply::Adopted(counts))
    }

    fn check_one(&self, sweep: SweepAt, one: &FromElsewhere) -> Result<FoldAt, Unadoptable> {
        let has = |at: &FoldAt| self.folds[at.at()].sweeps.iter().any(|(of, _)| *of == sweep);
        let at = self.place_of(&one.fold).filter(has).ok_or(Unadoptable::NotInSweep(one.fold))?;
        let invalid = |reason| Unadoptable::Invalid { fold: one.fold, reason };
        self.check_trial(&one.fold, &one.result).map_err(invalid)?;
        Ok(at)
    }

    fn fate(&self, at: FoldAt, digest: Digest) -> Fate {
        let of_fold = (at, Attempt(0))..=(at, Attempt(u32::MAX));
        let beside = || self.replicates.range(of_fold).any(|(_, known)| *known == digest);
        match self.folds[at.at()].state {
            State::Finished { digest: known, .. } if known == digest || beside() => Fate::Same,
            State::Finished { .. } => Fate::Replicate,
            State::Pending(_) | State::Leased { .. } | State::Failed(_) => Fate::Taken,
        }
    }

    /// The next attempt at a fold was made elsewhere, by this worker.
    fn note_attempt(
        &mut self,
        at: FoldAt,
        worker: &WorkerId,
        host: &str,
        changes: &mut Vec<Change>,
    ) -> Attempt {
        let by = self.enrol(worker, host);
        let trainer = &mut self.workers[by.at()];
        trainer.remembered = true;
        let host = trainer.host.to_string();
        let fold = &mut self.folds[at.at()];
        fold.attempts.push(Issue { worker: by, ending: None });
        let attempt = fold.last_attempt();
        let adopted = FoldChange::Adopted { attempt, worker: worker.clone(), host };
        changes.push(Change::Fold(fold.key, adopted));
        attempt
    }
}
