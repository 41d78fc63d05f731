//! Why a test was not made. A refusal explains itself to someone who wanted a p-value: which assumption the data
//! break, and what would help.

/// Why values cannot be compared by the test that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TestRefusal {
    /// All values come from one split, so they differ only by training seed.
    #[error(
        "all {seeds} values come from one split and differ only by training seed: their spread says how much \
         training varies, not how much the data do, so no test can tell whether the difference holds beyond this \
         split; train on several splits"
    )]
    OneSplit { seeds: usize },
    /// Too few values for a test to say anything.
    #[error("{found} {what}, but the test needs at least {needed}")]
    TooFew { what: &'static str, found: usize, needed: usize },
    /// The two sides were not measured on the same folds.
    #[error(
        "the two sides were not measured on the same folds ({missing} of the first lack a partner, {extra} of the \
         second do), so they cannot be paired; compare complete cells of one plan"
    )]
    NotPaired {
        /// Folds that only the first side has.
        missing: usize,
        /// Folds that only the second side has.
        extra: usize,
    },
    /// What has the same number is not the same split of the data.
    #[error("split {split} is not the same on both sides (their digests differ), so folds cannot be paired")]
    DifferentSplits { split: u32 },
    /// The correction for shared training data needs sizes that are not known.
    #[error(
        "the sizes of the training and test parts are not known (imported rows have none), and without them the \
         test cannot correct for the training data that folds share"
    )]
    UnknownSizes,
    /// A data set lacks the value of some method.
    #[error(
        "every method needs a value on every data set, but the lists have {shortest} to {longest} values"
    )]
    Ragged { shortest: usize, longest: usize },
    /// NaN or infinite values have no rank and no mean.
    #[error("a value is not a finite number")]
    NotFinite,
}
