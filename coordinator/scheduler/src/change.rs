//! Facts that must outlive the process: what a store is asked to keep. Domain words only; how they are kept
//! is the store's business, what they amount to is told by [`crate::Snapshot::apply`].

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use togl_sweeps::failure::UnknownClass;
use togl_sweeps::result::Metrics;
use togl_sweeps::spec::{Limits as SweepLimits, Resources};
use togl_sweeps::{
    Attempt, CheckedResult, Failure, FailureClass, FoldKey, FoldResult, SweepName, TrialId, WorkerId,
};

/// One fact, by what it is about. Facts of one event belong into one transaction, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// About a trial.
    Trial(TrialId, TrialChange),
    /// About one fold.
    Fold(FoldKey, FoldChange),
    /// About a sweep.
    Sweep(SweepChange),
    /// About a data set.
    Data(DataChange),
    /// About workers and hosts.
    Fleet(FleetChange),
}

/// What became known of a trial.
#[derive(Debug, Clone, PartialEq)]
pub enum TrialChange {
    /// Its settings, as canonical JSON.
    Saved(Arc<str>),
    /// It ran out of memory: it needs at least so many bytes.
    FloorRaised(u64),
}

/// What happened to a fold.
#[derive(Debug, Clone, PartialEq)]
pub enum FoldChange {
    /// It exists from now on, pending. Its trial was saved before.
    Added,
    /// A lease was given; the attempt is known for ever.
    Issued {
        /// One more than the last.
        attempt: Attempt,
        /// To whom.
        worker: WorkerId,
        /// Where that worker runs.
        host: String,
    },
    /// A lease that had ended goes on: its worker came back before anybody else took the fold.
    Revived {
        /// Its last attempt.
        attempt: Attempt,
    },
    /// The current attempt ended without a result; the fold is pending unless [`FoldChange::Failed`] follows.
    Ended {
        /// The attempt that was running.
        attempt: Attempt,
        /// How it ended.
        ending: Ending,
        /// For people.
        message: String,
    },
    /// It will not be tried again by itself.
    Failed(Failure),
    /// It failed and gets a clean slate: endings so far no longer count.
    Retried,
    /// It has its result.
    Finished {
        /// The attempt that brought it.
        attempt: Attempt,
        /// The worker of that attempt.
        worker: WorkerId,
        /// Of the result.
        digest: Digest,
        /// The result.
        result: Box<CheckedResult>,
    },
    /// Its accepted result is a replicate from now on, and it is pending.
    SetAside,
    /// Another attempt brought a result too, after it was finished. At most one an attempt.
    Replicate {
        /// The attempt that brought it.
        attempt: Attempt,
        /// The worker of that attempt.
        worker: WorkerId,
        /// Of this result.
        digest: Digest,
        /// Whether it says what the accepted one says.
        agrees: bool,
        /// The result.
        result: Box<CheckedResult>,
    },
    /// An attempt reported twice, with different numbers. Said once an attempt; the store keeps the first such report.
    Conflict {
        /// Which attempt.
        attempt: Attempt,
        /// Who reported the second.
        worker: WorkerId,
        /// Of the second report.
        digest: Digest,
        /// The second report.
        result: Box<CheckedResult>,
    },
}

/// What was submitted, and how it is steered.
#[derive(Debug, Clone, PartialEq)]
pub enum SweepChange {
    /// The next folds of a sweep that is being submitted, from that position on; 0 begins anew. Nobody sees them before
    /// [`SweepChange::Saved`] says whose they are, and a restart forgets them.
    Gathered {
        /// Position of the first.
        from: u64,
        /// They were added before.
        folds: Vec<FoldKey>,
    },
    /// It was submitted or edited; replaces what was known of it.
    Saved(Box<SweepSaved>),
    /// It was cancelled, archived, paused or made active.
    StateSet {
        /// Which.
        sweep: SweepName,
        /// From now on.
        state: SweepState,
        /// Why, if it did so by itself.
        note: Option<Arc<str>>,
    },
    /// It has another priority than its text says.
    PrioritySet {
        /// Which.
        sweep: SweepName,
        /// From now on.
        priority: i32,
    },
}

/// What a data set must be.
#[derive(Debug, Clone, PartialEq)]
pub enum DataChange {
    /// From now on, by the catalogue or by its first result.
    Pinned {
        /// Which data set; generated ones with their seed.
        data: String,
        /// Its digest.
        digest: String,
    },
    /// The result of a fold comes from other data; none of the data set's folds is handed out until
    /// [`DataChange::Settled`].
    Disputed {
        /// Which data set.
        data: String,
        /// Whose result.
        fold: FoldKey,
        /// The digest of the data it comes from.
        digest: String,
    },
    /// The operator decided. Results from other data were set aside before.
    Settled {
        /// Which data set.
        data: String,
        /// Its digest.
        digest: String,
    },
}

/// Who gets no work.
#[derive(Debug, Clone, PartialEq)]
pub enum FleetChange {
    /// A worker gets nothing new until [`FleetChange::Undrained`].
    Drained {
        /// Which.
        worker: WorkerId,
        /// Where it runs.
        host: String,
    },
    /// A worker gets work again, or will not come back.
    Undrained {
        /// Which.
        worker: WorkerId,
    },
    /// A host is kept out until [`FleetChange::Released`].
    Quarantined {
        /// Which.
        host: String,
        /// For people.
        reason: Arc<str>,
    },
    /// A host is no longer kept out.
    Released {
        /// Which.
        host: String,
    },
}

/// A sweep as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepSaved {
    /// Its name and key.
    pub name: SweepName,
    /// Place in the order of first submissions, from 0.
    pub order: u64,
    /// The text as written.
    pub yaml: Arc<str>,
    /// Higher runs first.
    pub priority: i32,
    /// Guards.
    pub limits: SweepLimits,
    /// What its folds need.
    pub resources: Resources,
    /// Whether it runs.
    pub state: SweepState,
    /// Why it is in that state, if it went there by itself.
    pub note: Option<Arc<str>>,
    /// Its folds in order.
    pub folds: Vec<FoldKey>,
    /// How many of them were named by [`SweepChange::Gathered`] already, from the first on; 0 for most sweeps.
    pub gathered: u64,
}

/// Whether a sweep runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SweepState {
    /// Its folds are handed out.
    Active,
    /// No new leases; what runs goes on.
    Paused,
    /// Nobody wants it.
    Cancelled,
    /// Nobody wants it or wants to see it; what it has is kept.
    Archived,
}

impl SweepState {
    /// The one spelling, on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Cancelled => "cancelled",
            Self::Archived => "archived",
        }
    }
}

impl fmt::Display for SweepState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no sweep state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a sweep state")]
pub struct UnknownState(String);

impl FromStr for SweepState {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, UnknownState> {
        let all = [Self::Active, Self::Paused, Self::Cancelled, Self::Archived];
        all.into_iter().find(|state| state.as_str() == text).ok_or_else(|| UnknownState(text.to_owned()))
    }
}

/// How an attempt ended that brought no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ending {
    /// It failed; the class decides what follows.
    Failed(FailureClass),
    /// Nobody wanted it any more. Never held against the fold.
    Abandoned,
}

impl Ending {
    /// The one spelling: the failure class, or `abandoned`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed(class) => class.as_str(),
            Self::Abandoned => "abandoned",
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Ending {
    type Err = UnknownClass;

    fn from_str(text: &str) -> Result<Self, UnknownClass> {
        if text == "abandoned" { Ok(Self::Abandoned) } else { text.parse().map(Self::Failed) }
    }
}

/// A short digest of what a result says: equal exactly when [`FoldResult::same_numbers`] holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub u64);

impl Digest {
    /// The digest of `result`.
    pub fn of(result: &FoldResult) -> Self {
        let mut hasher = blake3::Hasher::new();
        for Metrics { loss, accuracy } in
            [result.test, result.validation, result.train, result.last_validation]
        {
            for number in [loss, accuracy] {
                // Adding zero makes one zero of the two, as comparing does.
                hasher.update(&(number + 0.0).to_bits().to_le_bytes());
            }
        }
        hasher.update(&result.best_epoch.to_le_bytes());
        hasher.update(&result.epochs.to_le_bytes());
        hasher.update(result.data_digest.as_bytes());
        let mut first = [0; 8];
        hasher.finalize_xof().fill(&mut first);
        Self(u64::from_le_bytes(first))
    }
}

#[cfg(test)]
mod tests {
    use togl_sweeps::result::example;

    use super::*;

    #[test]
    fn digests_agree_exactly_when_the_numbers_do() {
        let base = example(0.5);
        let edits: [fn(&mut FoldResult); 9] = [
            |r| r.seconds = 99.0,
            |r| r.provenance.host = "elsewhere".to_owned(),
            |r| r.test.loss = 0.25,
            |r| r.validation.accuracy = 0.25,
            |r| r.train.loss = -0.0,
            |r| r.last_validation.accuracy = 0.0,
            |r| r.best_epoch = 0,
            |r| r.epochs = 9,
            |r| r.data_digest = "other".to_owned(),
        ];
        for (index, edit) in edits.into_iter().enumerate() {
            let mut edited = base.clone();
            edit(&mut edited);
            let same = Digest::of(&base) == Digest::of(&edited);
            assert_eq!(same, base.same_numbers(&edited), "edit {index}");
        }
        let (mut plus, mut minus) = (base.clone(), base);
        (plus.test.loss, minus.test.loss) = (0.0, -0.0);
        assert_eq!(Digest::of(&plus), Digest::of(&minus));
    }

    #[test]
    fn endings_and_states_read_back() {
        for class in FailureClass::ALL {
            let ending = Ending::Failed(class);
            assert_eq!(ending.as_str().parse(), Ok(ending));
        }
        assert_eq!("abandoned".parse(), Ok(Ending::Abandoned));
        assert_eq!("paused".parse(), Ok(SweepState::Paused));
        assert_eq!("archived".parse(), Ok(SweepState::Archived));
        assert!("sleeping".parse::<SweepState>().is_err());
    }
}
