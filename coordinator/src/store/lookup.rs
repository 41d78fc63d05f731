//! Finds folds by the beginning of their trial's id, as people type them. Asks a reader; holds nothing.

use togl_sweeps::{FoldKey, TrialId};

use super::{Reader, StoreError};

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

/// The fold that `text` means: `TRIAL/split/seed`, where the trial may be any unambiguous beginning. Folds that no sweep
/// has any more are found too.
pub fn find_fold(reader: &dyn Reader, text: &str) -> Result<FoldKey, StoreError> {
    let malformed = || FoldLookupError::Malformed(text.to_owned());
    let mut parts = text.split('/');
    let (Some(trial), Some(split), Some(seed), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(malformed().into());
    };
    let split: u32 = split.parse().map_err(|_| malformed())?;
    let seed: u64 = seed.parse().map_err(|_| malformed())?;
    let [least, greatest] = trials_beginning(trial).ok_or_else(malformed)?;
    let fold = |trial| FoldKey { trial, split, seed };
    match reader.folds_between(&fold(least), &fold(greatest))?[..] {
        [] => Err(FoldLookupError::Unknown(text.to_owned()).into()),
        [only] => Ok(only),
        [first, second, ..] => {
            Err(FoldLookupError::Ambiguous { text: text.to_owned(), first, second }.into())
        }
    }
}

/// The least and the greatest trial whose id begins like this; none if no id does.
pub fn trials_beginning(digits: &str) -> Option<[TrialId; 2]> {
    let filled =
        |with: char| format!("{digits}{}", with.to_string().repeat(32_usize.saturating_sub(digits.len())));
    match digits {
        "" => None,
        _ => Some([filled('0').parse().ok()?, filled('f').parse().ok()?]),
    }
}

/// How many digits tell neighbours in this order apart, for all of them; at least eight, which people expect.
pub(super) fn digits(trials: impl IntoIterator<Item = TrialId>) -> usize {
    let (mut digits, mut before): (usize, Option<TrialId>) = (8, None);
    for trial in trials {
        if let Some(before) = before.replace(trial) {
            let [one, other] = [before, trial].map(|trial| u128::from_be_bytes(*trial.as_bytes()));
            let common = (one ^ other).leading_zeros() / 4; // a digit is four bits
            digits = digits.max(common as usize + 1);
        }
    }
    digits.min(32)
}
