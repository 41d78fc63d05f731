//! What one finished fold reports: metrics, how it was trained, where it came from. The row of every table.
//!
//! The form is versioned; readers refuse a newer version and metrics that are not finite. Whoever takes a result in makes
//! a [`CheckedResult`] of it, once: everything behind that may trust it. Stored results are not checked again, so that
//! they stay readable when a rule is added.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::datasets::Scoring;
use crate::scale::{Scale, ScaleError};

/// The newest version of [`FoldResult`] that this program knows. What is written says in its version whether it has a scale of
/// its own ([`version_of`]), so that programs that know none go on reading shares.
pub const RESULT_VERSION: u32 = 2;

/// The version of a result with this scale.
pub fn version_of(score: Option<&Scale>) -> u32 {
    if score.is_some() { 2 } else { 1 }
}

/// The longest digest, version or name in a result, in bytes.
pub const LONGEST_NAME: usize = 1_024;

/// How far a value may be from the one that follows from the confusion matrix.
const ROUNDING: f64 = 1e-9;

/// Losses and accuracies of one evaluation of one part of the data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Mean of the batch losses.
    pub loss: f64,
    /// The data set's metric as a share in 0..=1: accuracy, weighted accuracy or ROC-AUC. In a result with a scale of its own
    /// it is a value on that.
    pub accuracy: f64,
}

/// One line of the learning curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// Epoch, from 0.
    pub epoch: u32,
    /// Learning rate used in it.
    pub lr: f64,
    /// On the training batches, in training mode.
    pub train: Metrics,
    /// On the validation part.
    pub validation: Metrics,
}

/// Where and with what a fold was trained.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of this program.
    pub code_version: String,
    /// Commit it was built from, if known.
    pub commit: String,
    /// Whether the tree had changes that no commit holds.
    pub dirty: bool,
    /// Version of libtorch.
    pub libtorch: String,
    /// Device kind: `cpu`, `cuda` or `mps`.
    pub device: String,
    /// What decides the last digits there: libtorch's vector instructions, such as `avx2` or `avx512`, or the GPU's model
    /// and compute capability; older results do not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub processor: String,
    /// Host name of the worker.
    pub host: String,
    /// The worker that trained it.
    pub worker: String,
}

/// Everything a finished fold reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoldResult {
    /// Version of this form.
    pub version: u32,
    /// The constant that changes with any trained number; see [`crate::trial::NUMERICS`].
    pub numerics: u32,
    /// What its values are; none if they are shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Scale>,
    /// Test metrics of the best checkpoint.
    pub test: Metrics,
    /// Validation metrics of the best checkpoint.
    pub validation: Metrics,
    /// Training metrics of the best checkpoint's epoch.
    pub train: Metrics,
    /// Validation metrics of the last epoch; the published tables select on its accuracy.
    pub last_validation: Metrics,
    /// Epoch of the best checkpoint, from 0.
    pub best_epoch: u32,
    /// Epochs trained.
    pub epochs: u32,
    /// Seconds of training, all attempts' resumed parts included.
    pub seconds: f64,
    /// When training ended, in milliseconds since 1970 by the worker's clock; older results do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<u64>,
    /// Energy that the device took meanwhile, where it can tell and trained nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_joules: Option<f64>,
    /// Most memory taken where it trained, in bytes: of the GPU, else resident memory of the trainer; 0 if unknown.
    pub peak_memory: u64,
    /// Trainable parameters of the network.
    pub parameters: u64,
    /// Rows are true classes, columns predicted ones, on the test part; empty if not a classification.
    pub confusion: Vec<Vec<u64>>,
    /// Sizes of the training, validation and test part.
    pub part_sizes: [u64; 3],
    /// Digest of the data set as loaded.
    pub data_digest: String,
    /// Digest of the split.
    pub split_digest: String,
    /// Where it was trained.
    pub provenance: Provenance,
    /// The learning curve.
    pub history: Vec<EpochRecord>,
}

/// Why a result cannot be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResultError {
    /// Written by a newer program.
    #[error("result has version {found}, this program knows up to {RESULT_VERSION}; upgrade it")]
    Newer { found: u32 },
    /// A metric is NaN or infinite, or a value is outside its range.
    #[error("result has {name} = {value}, which is not a possible value")]
    Impossible { name: String, value: String },
    /// Two of its values cannot both be right.
    #[error("result has {name} = {value}, which contradicts {other}")]
    Contradiction {
        name: &'static str,
        value: String,
        /// The other field, with its value.
        other: String,
    },
    /// Its values are on a scale that is none.
    #[error("result has an impossible score: {0}")]
    Score(#[from] ScaleError),
    /// Nobody has such a name.
    #[error("result has {name} of {bytes} bytes, the longest is {LONGEST_NAME}")]
    TooLong { name: &'static str, bytes: usize },
}

/// A result that passed [`FoldResult::check`]; there is no other way to make one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "FoldResult")]
pub struct CheckedResult(FoldResult);

impl Deref for CheckedResult {
    type Target = FoldResult;

    fn deref(&self) -> &FoldResult {
        &self.0
    }
}

impl TryFrom<FoldResult> for CheckedResult {
    type Error = ResultError;

    fn try_from(result: FoldResult) -> Result<Self, ResultError> {
        result.check()
    }
}

impl From<CheckedResult> for FoldResult {
    fn from(result: CheckedResult) -> Self {
        result.0
    }
}

impl CheckedResult {
    /// Refuses a confusion matrix of other predictions than those that the value counts. The value of a ROC-AUC does not
    /// follow from any, and graphs are not what a node task counts.
    pub fn check_confusion(&self, metric: Scoring) -> Result<(), ResultError> {
        let rows = self.confusion.iter().enumerate().map(|(class, row)| (row[class], total(row)));
        let rows: Vec<(u64, u128)> = rows.filter(|(_, all)| *all > 0).collect();
        let all: u128 = rows.iter().map(|(_, all)| all).sum();
        let follows = match metric {
            _ if all == 0 || self.score.is_some() => return Ok(()),
            Scoring::RocAuc => return Ok(()),
            Scoring::Accuracy => rows.iter().map(|(hits, _)| *hits as f64).sum::<f64>() / all as f64,
            Scoring::WeightedAccuracy => {
                rows.iter().map(|(hits, all)| *hits as f64 / *all as f64).sum::<f64>() / rows.len() as f64
            }
        };
        if (follows - self.test.accuracy).abs() > ROUNDING {
            let other = format!("its confusion matrix, from which {follows} follows");
            return Err(contradiction("test accuracy", self.test.accuracy, other));
        }
        if metric == Scoring::Accuracy && all != u128::from(self.part_sizes[2]) {
            let other = format!("its confusion matrix, which counts {all}");
            return Err(contradiction("test part size", self.part_sizes[2], other));
        }
        Ok(())
    }
}

fn total(row: &[u64]) -> u128 {
    row.iter().map(|count| u128::from(*count)).sum()
}

impl FoldResult {
    /// Refuses what contradicts itself. To be asked of what comes in, not of what is stored.
    pub fn check(self) -> Result<CheckedResult, ResultError> {
        self.check_readable()?;
        if self.best_epoch >= self.epochs {
            return Err(contradiction("best_epoch", self.best_epoch, format!("epochs = {}", self.epochs)));
        }
        self.check_curve()?;
        let classes = self.confusion.len();
        if let Some(row) = self.confusion.iter().find(|row| row.len() != classes) {
            return Err(contradiction("confusion row length", row.len(), format!("its {classes} rows")));
        }
        self.check_names()?;
        Ok(CheckedResult(self))
    }

    /// Refuses what can never be a row of a table: what every reader of any result may ask.
    pub fn check_readable(&self) -> Result<(), ResultError> {
        if self.version > RESULT_VERSION {
            return Err(ResultError::Newer { found: self.version });
        }
        if (self.version >= version_of(Some(Scale::share()))) != self.score.is_some() {
            let other = if self.score.is_some() { "its score" } else { "that it has no score" };
            return Err(contradiction("version", self.version, other.to_owned()));
        }
        let scale = self.scale();
        scale.check()?;
        let parts = [
            ("test", self.test),
            ("validation", self.validation),
            ("train", self.train),
            ("last_validation", self.last_validation),
        ];
        for (part, metrics) in parts {
            metrics.check(part, scale)?;
        }
        if !is_amount(self.seconds) {
            return Err(impossible("seconds".to_owned(), self.seconds));
        }
        match self.energy_joules.filter(|joules| !is_amount(*joules)) {
            Some(joules) => Err(impossible("energy_joules".to_owned(), joules)),
            None => Ok(()),
        }
    }

    /// Epochs in order, none beyond those that were trained, and values that can be.
    fn check_curve(&self) -> Result<(), ResultError> {
        let mut next = 0;
        for line in &self.history {
            if line.epoch < next || line.epoch >= self.epochs {
                let other = format!("epochs = {} and the lines before", self.epochs);
                return Err(contradiction("learning curve epoch", line.epoch, other));
            }
            next = line.epoch.saturating_add(1);
            if !is_amount(line.lr) {
                return Err(impossible("learning curve lr".to_owned(), line.lr));
            }
            line.train.check("learning curve train", self.scale())?;
            line.validation.check("learning curve validation", self.scale())?;
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), ResultError> {
        let Provenance { code_version, commit, dirty: _, libtorch, device, processor, host, worker } =
            &self.provenance;
        let names = [
            ("data_digest", &self.data_digest),
            ("split_digest", &self.split_digest),
            ("code_version", code_version),
            ("commit", commit),
            ("libtorch", libtorch),
            ("device", device),
            ("processor", processor),
            ("host", host),
            ("worker", worker),
        ];
        match names.into_iter().find(|(_, text)| text.len() > LONGEST_NAME) {
            Some((name, text)) => Err(ResultError::TooLong { name, bytes: text.len() }),
            None => Ok(()),
        }
    }

    /// What its values are.
    pub fn scale(&self) -> &Scale {
        self.score.as_ref().unwrap_or(Scale::share())
    }

    /// Whether two results of the same fold say the same, apart from when and where they were made.
    pub fn same_numbers(&self, other: &Self) -> bool {
        self.score == other.score
            && self.test == other.test
            && self.validation == other.validation
            && self.train == other.train
            && self.last_validation == other.last_validation
            && self.best_epoch == other.best_epoch
            && self.epochs == other.epochs
            && self.data_digest == other.data_digest
    }
}

impl Metrics {
    fn check(self, part: &str, scale: &Scale) -> Result<(), ResultError> {
        if !self.loss.is_finite() {
            return Err(impossible(format!("{part} loss"), self.loss));
        }
        if !scale.contains(self.accuracy) {
            return Err(impossible(format!("{part} {}", scale.name), self.accuracy));
        }
        Ok(())
    }
}

/// Whether it can be an amount of something.
fn is_amount(number: f64) -> bool {
    number.is_finite() && number >= 0.0
}

fn impossible(name: String, value: f64) -> ResultError {
    ResultError::Impossible { name, value: value.to_string() }
}

fn contradiction(name: &'static str, value: impl ToString, other: String) -> ResultError {
    ResultError::Contradiction { name, value: value.to_string(), other }
}

/// Predictions for eight graphs of two classes with that accuracy; none if eight cannot have it.
fn example_confusion(accuracy: f64) -> Vec<Vec<u64>> {
    match (0..=8u64).find(|hits| *hits as f64 / 8.0 == accuracy) {
        Some(hits) => {
            let of_first = hits.min(4);
            let of_second = hits - of_first;
            vec![vec![of_first, 4 - of_first], vec![4 - of_second, of_second]]
        }
        None => Vec::new(),
    }
}

/// A plausible result for tests of other crates: accuracy as given, everything else fixed.
pub fn example(accuracy: f64) -> FoldResult {
    let metrics = Metrics { loss: 0.5, accuracy };
    FoldResult {
        version: version_of(None),
        numerics: crate::trial::NUMERICS,
        score: None,
        test: metrics,
        validation: metrics,
        train: metrics,
        last_validation: metrics,
        best_epoch: 3,
        epochs: 5,
        seconds: 1.5,
        finished_at: None,
        energy_joules: None,
        peak_memory: 1 << 20,
        parameters: 101,
        confusion: example_confusion(accuracy),
        part_sizes: [80, 9, 8],
        data_digest: "data".to_owned(),
        split_digest: "split".to_owned(),
        provenance: Provenance {
            code_version: "0.1.0".to_owned(),
            device: "cpu".to_owned(),
            ..Provenance::default()
        },
        history: vec![EpochRecord { epoch: 0, lr: 1e-3, train: metrics, validation: metrics }],
    }
}

#[cfg(test)]
#[path = "result_tests.rs"]
mod tests;
