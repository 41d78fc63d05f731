//! What the values of results are: a name, whether more or less of it is better, and the range they lie in. Owns these facts, what
//! follows from them for whoever prints or compares values, and their words; reads no files and averages nothing. Results
//! without a scale of their own are shares, as all were once.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::words;

/// The largest size of a value or a bound: differences of two still fit into single precision, in which races compare.
pub const LARGEST: f64 = f32::MAX as f64 / 2.0;

/// The longest name, in bytes.
pub const LONGEST_NAME: usize = 64;

words!(
    /// Which values are better.
    #[derive(Default)]
    Goal {
        /// High ones.
        #[default]
        Max = "max",
        /// Low ones.
        Min = "min",
    }
);

/// What values are. The fields stand in the order of canonical JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// Which values are better.
    #[serde(default)]
    pub goal: Goal,
    /// The highest value there can be; none if there is no such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The lowest value there can be; none if there is no such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// What it is called, such as `MAE`.
    pub name: Cow<'static, str>,
}

/// Shares.
impl Default for Scale {
    fn default() -> Self {
        Self::SHARE
    }
}

/// In one line, such as `MAE, goal min, 0 or more`.
impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, goal {}, {}", self.name, self.goal, self.range())
    }
}

/// Bounds are numbers: whoever makes a scale of what came from outside asks [`Scale::check`].
impl Eq for Scale {}

/// Why something is no scale.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScaleError {
    /// Nobody could print it everywhere.
    #[error(
        "a score is called by 1 to {LONGEST_NAME} letters, digits, spaces and `-`, `_`, `.`, `@`, a letter first and \
         no space at the end"
    )]
    Name,
    /// A bound is no number, or too large.
    #[error("a bound of a range is a number of at most {LARGEST:e}, found {found}")]
    Bound { found: String },
    /// Nothing is between.
    #[error("the range is empty: {low} is not below {high}")]
    Empty { low: String, high: String },
}

impl Scale {
    /// What values are that say nothing of it: shares, of which more is better.
    pub const SHARE: Self =
        Self { goal: Goal::Max, high: Some(1.0), low: Some(0.0), name: Cow::Borrowed("accuracy") };

    /// The same, to be lent.
    pub fn share() -> &'static Self {
        static SHARE: Scale = Scale::SHARE;
        &SHARE
    }

    /// Refuses what cannot be one.
    pub fn check(&self) -> Result<(), ScaleError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || " -_.@".contains(c);
        let name = &self.name;
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic()) && !name.ends_with(' ');
        if !starts || name.len() > LONGEST_NAME || !name.chars().all(plain) {
            return Err(ScaleError::Name);
        }
        for bound in [self.low, self.high].into_iter().flatten() {
            if !(-LARGEST..=LARGEST).contains(&bound) {
                return Err(ScaleError::Bound { found: bound.to_string() });
            }
        }
        match (self.low, self.high) {
            (Some(low), Some(high)) if low >= high => {
                Err(ScaleError::Empty { low: low.to_string(), high: high.to_string() })
            }
            _ => Ok(()),
        }
    }

    /// Whether values lie in 0..=1, so that people read them in percent.
    pub fn is_share(&self) -> bool {
        (self.low, self.high) == (Some(0.0), Some(1.0))
    }

    /// Whether this can be a value; what is no number cannot.
    pub fn contains(&self, value: f64) -> bool {
        let (low, high) = (self.low.unwrap_or(-LARGEST), self.high.unwrap_or(LARGEST));
        (low..=high).contains(&value)
    }

    /// What a value is multiplied with so that higher is better.
    pub fn sign(&self) -> f64 {
        match self.goal {
            Goal::Max => 1.0,
            Goal::Min => -1.0,
        }
    }

    /// What a value is multiplied with to be printed.
    pub fn factor(&self) -> f64 {
        if self.is_share() { 100.0 } else { 1.0 }
    }

    /// What stands behind a printed value; nothing if it has no unit.
    pub fn unit(&self) -> &'static str {
        if self.is_share() { "%" } else { "" }
    }

    /// Digits behind the point of a printed value, unless somebody wants others.
    pub fn decimals(&self) -> usize {
        if self.is_share() { 1 } else { 3 }
    }

    /// A value as people read it, such as `91.3 %` or `0.412`.
    pub fn show(&self, value: f64) -> String {
        let text = format!("{:.1$}", value * self.factor(), self.decimals());
        if self.unit().is_empty() { text } else { format!("{text} {}", self.unit()) }
    }

    /// Which values are there, in words.
    pub fn range(&self) -> String {
        match (self.low, self.high) {
            (None, None) => "any number".to_owned(),
            (Some(low), None) => format!("{low} or more"),
            (None, Some(high)) => format!("{high} or less"),
            (Some(low), Some(high)) => format!("{low} to {high}"),
        }
    }

    /// What the best values are called.
    pub fn best(&self) -> &'static str {
        match self.goal {
            Goal::Max => "highest",
            Goal::Min => "lowest",
        }
    }

    /// The name of an axis or of a column, with the unit.
    pub fn axis(&self) -> String {
        if self.unit().is_empty() {
            self.name.to_string()
        } else {
            format!("{} ({})", self.name, self.unit())
        }
    }
}

#[cfg(test)]
#[path = "scale_tests.rs"]
mod tests;
