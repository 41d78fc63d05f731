//! Names of things: trials, folds, sweeps, workers, attempts. Each is a newtype, so that one cannot be passed
//! for another, and each has one spelling that is the same in logs, on the wire, in SQL and on the command line.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An id that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Not 32 lower-case hexadecimal digits.
    #[error("`{0}` is not a trial id: expected 32 hexadecimal digits")]
    Trial(String),
    /// Not `TRIAL/split/seed`.
    #[error("`{0}` is not a fold: expected TRIAL/split/seed")]
    Fold(String),
    /// A sweep name with characters that cannot be used in a file name or a URL.
    #[error(
        "`{0}` is not a sweep name: use 1 to 64 of a-z, 0-9, `-`, `_` and `.`, starting with a letter or digit"
    )]
    Sweep(String),
    /// A worker id with characters that do not belong there.
    #[error("`{0}` is not a worker id: use 1 to 128 of A-Z, a-z, 0-9, `-`, `_` and `.`")]
    Worker(String),
}

/// Identity of a trial: 128 bits of the blake3 digest of its canonical settings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrialId([u8; 16]);

impl TrialId {
    /// The id of canonical settings; only [`crate::identity`] decides what is canonical.
    pub(crate) fn of_canonical(text: &[u8]) -> Self {
        let digest = blake3::hash(text);
        let mut id = [0; 16];
        id.copy_from_slice(&digest.as_bytes()[..16]);
        Self(id)
    }

    /// An id from its raw bytes, as stored.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The raw bytes, for storing.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The first twelve digits: enough for people, who may type any unambiguous beginning.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl fmt::Display for TrialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TrialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TrialId({self})")
    }
}

impl FromStr for TrialId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let refuse = || IdError::Trial(text.to_owned());
        let digits = text.as_bytes();
        if digits.len() != 32 || !digits.iter().all(|d| matches!(d, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(refuse());
        }
        let mut id = [0; 16];
        for (byte, pair) in id.iter_mut().zip(text.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| refuse())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| refuse())?;
        }
        Ok(Self(id))
    }
}

/// The unit of work: one trial on one split with one training seed. Written `TRIAL/split/seed`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FoldKey {
    /// Which setting.
    pub trial: TrialId,
    /// Fold index of the data set, or split seed for sets without published folds.
    pub split: u32,
    /// Training seed.
    pub seed: u64,
}

impl FoldKey {
    /// As [`Display`](fmt::Display), with the short trial id.
    pub fn short(&self) -> String {
        format!("{}/{}/{}", self.trial.short(), self.split, self.seed)
    }
}

impl fmt::Display for FoldKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.trial, self.split, self.seed)
    }
}

impl fmt::Debug for FoldKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FoldKey({})", self.short())
    }
}

impl FromStr for FoldKey {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let refuse = || IdError::Fold(text.to_owned());
        let mut parts = text.split('/');
        let (Some(trial), Some(split), Some(seed), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(refuse());
        };
        Ok(Self {
            trial: trial.parse()?,
            split: split.parse().map_err(|_| refuse())?,
            seed: seed.parse().map_err(|_| refuse())?,
        })
    }
}

/// The name of a sweep: what people call it, and its key in the store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SweepName(String);

/// What a process that owns devices calls itself; chosen by the worker, unique per process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(String);

fn is_plain(text: &str, longest: usize, extra: fn(char) -> bool) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || extra(c);
    !text.is_empty()
        && text.len() <= longest
        && text.chars().all(|c| plain(c) || matches!(c, '-' | '_' | '.'))
        && text.chars().next().is_some_and(plain)
}

impl FromStr for SweepName {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        // The signs of settings that were given on the command line: `quickstart+depth=4`.
        let fits = is_plain(&text.replace(['+', '=', ','], "-"), 64, |_| false);
        fits.then(|| Self(text.to_owned())).ok_or_else(|| IdError::Sweep(text.to_owned()))
    }
}

impl FromStr for WorkerId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let fits = is_plain(text, 128, |c| c.is_ascii_uppercase());
        fits.then(|| Self(text.to_owned())).ok_or_else(|| IdError::Worker(text.to_owned()))
    }
}

/// How often a fold has been handed out: 1, 2, ... A stale report is recognised by its attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attempt(pub u32);

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Implements what the text ids share: showing, borrowing and (de)serialising through their one spelling.
macro_rules! text_id {
    ($name:ident) => {
        impl $name {
            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

/// Serialises an id as its one spelling and parses it back, refusing anything else.
macro_rules! serde_by_text {
    ($($name:ident),+) => {$(
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}

text_id!(SweepName);
text_id!(WorkerId);
serde_by_text!(TrialId, FoldKey, SweepName, WorkerId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fold_is_written_and_read_back() {
        let text = "00112233445566778899aabbccddeeff/3/42";
        let fold: FoldKey = text.parse().unwrap();
        assert_eq!(fold.to_string(), text);
        assert_eq!(fold.short(), "001122334455/3/42");
    }

    #[test]
    fn what_is_not_an_id_is_refused() {
        for text in ["", "abc", "00112233445566778899AABBCCDDEEFF", "é0112233445566778899aabbccddeef"] {
            assert!(text.parse::<TrialId>().is_err(), "{text}");
        }
        for text in ["00112233445566778899aabbccddeeff/3", "00112233445566778899aabbccddeeff/3/4/5", "/1/2"] {
            assert!(text.parse::<FoldKey>().is_err(), "{text}");
        }
        for text in ["", "../etc", "Upper", "-x", "a b", "a/b"] {
            assert!(text.parse::<SweepName>().is_err(), "{text}");
        }
    }
}
