//! What facts are told with: a sweep as it is kept, its state, how an attempt ended, what a result says in short. Each word has
//! one spelling, on the wire and in the store.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use togl_sweeps::failure::UnknownClass;
use togl_sweeps::race::Race;
use togl_sweeps::result::Metrics;
use togl_sweeps::spec::{Resources, SweepLimits};
use togl_sweeps::{FailureClass, FoldKey, FoldResult, SweepName};

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
    /// How many folds it may have, and how often and how long one may be tried.
    pub limits: SweepLimits,
    /// What its folds need.
    pub resources: Resources,
    /// Which of its trials race with each other; follows from the text.
    pub race: Option<Arc<Race>>,
    /// Whether it runs.
    pub state: SweepState,
    /// Why it is in that state, if it went there by itself.
    pub note: Option<Arc<str>>,
    /// Its folds in order.
    pub folds: Vec<FoldKey>,
    /// How many of them were named by [`crate::SweepChange::Gathered`] already, from the first on; 0 for most sweeps.
    pub gathered: u64,
}

togl_sweeps::words!(
    /// Whether a sweep runs. The words are those of the wire and of the store.
    SweepState {
        /// Its folds are handed out.
        Active = "active",
        /// No new leases; what runs goes on.
        Paused = "paused",
        /// Nobody wants it.
        Cancelled = "cancelled",
        /// Nobody wants it or wants to see it; what it has is kept.
        Archived = "archived",
    }
);

/// A word that is no sweep state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a sweep state")]
pub struct UnknownState(String);

impl FromStr for SweepState {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, UnknownState> {
        Self::from_word(text).ok_or_else(|| UnknownState(text.to_owned()))
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
        if let Some(score) = &result.score {
            hasher.update(format!("{score:?}").as_bytes()); // digests of shares stay what they were
        }
        let mut first = [0; 8];
        hasher.finalize_xof().fill(&mut first);
        Self(u64::from_le_bytes(first))
    }
}

#[cfg(test)]
mod tests {
    use togl_sweeps::Scale;
    use togl_sweeps::result::example;

    use super::*;

    #[test]
    fn digests_agree_exactly_when_the_numbers_do() {
        let base = example(0.5);
        let edits: [fn(&mut FoldResult); 11] = [
            |r| r.seconds = 99.0,
            |r| r.provenance.host = "elsewhere".to_owned(),
            |r| r.test.loss = 0.25,
            |r| r.validation.accuracy = 0.25,
            |r| r.train.loss = -0.0,
            |r| r.last_validation.accuracy = 0.0,
            |r| r.best_epoch = 0,
            |r| r.epochs = 9,
            |r| r.data_digest = "other".to_owned(),
            |r| r.score = Some(Scale::SHARE),
            |r| r.score = Some(Scale { high: None, ..Scale::SHARE }),
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
