//! Finds folds by the beginning of their trial's id, as people type them. Reads the books, changes nothing.

use togl_sweeps::FoldKey;

use crate::books::Scheduler;

/// A fold that could not be found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FoldLookupError {
    /// Not `TRIAL/split/seed`.
    #[error("`{0}` is not a fold: expected TRIAL/split/seed, where TRIAL may be shortened")]
    Malformed(String),
    /// Nothing begins like that.
    #[error("there is no fold `{0}`; `togl folds SWEEP` lists them")]
    Unknown(String),
    /// Several trials begin like that.
    #[error("`{text}` may mean {first} or {second}; add more digits")]
    Ambiguous {
        /// As asked.
        text: String,
        /// One that fits.
        first: FoldKey,
        /// Another one.
        second: FoldKey,
    },
}

impl Scheduler {
    /// The fold that `text` means: `TRIAL/split/seed`, where the trial may be any unambiguous beginning.
    pub fn find_fold(&self, text: &str) -> Result<FoldKey, FoldLookupError> {
        let malformed = || FoldLookupError::Malformed(text.to_owned());
        let mut parts = text.split('/');
        let (Some(trial), Some(split), Some(seed), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(malformed());
        };
        let split: u32 = split.parse().map_err(|_| malformed())?;
        let seed: u64 = seed.parse().map_err(|_| malformed())?;
        let mut fits: Vec<FoldKey> = self
            .folds
            .iter()
            .map(|fold| fold.key)
            .filter(|key| key.split == split && key.seed == seed && key.trial.to_string().starts_with(trial))
            .collect();
        fits.sort_unstable();
        match fits.as_slice() {
            [] => Err(FoldLookupError::Unknown(text.to_owned())),
            [only] => Ok(*only),
            [first, second, ..] => {
                Err(FoldLookupError::Ambiguous { text: text.to_owned(), first: *first, second: *second })
            }
        }
    }
}
