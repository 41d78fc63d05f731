//! What one finished fold reports: metrics, how it was trained, where it came from. The row of every table.
//! The form is versioned; readers refuse a newer version and metrics that are not finite.

use serde::{Deserialize, Serialize};

/// The version of [`FoldResult`] that this program writes.
pub const RESULT_VERSION: u32 = 1;

/// Losses and accuracies of one evaluation of one part of the data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Mean of the batch losses.
    pub loss: f64,
    /// The data set's metric as a share in 0..=1: accuracy, weighted accuracy or ROC-AUC.
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
    #[error("result has version {found}, this program knows up to {RESULT_VERSION}: update the coordinator")]
    Newer {
        /// The version it has.
        found: u32,
    },
    /// A metric is NaN or infinite, or an accuracy is outside 0..=1.
    #[error("result has {name} = {value}, which is not a possible value")]
    Impossible {
        /// Which metric.
        name: String,
        /// What was sent.
        value: String,
    },
}

impl FoldResult {
    /// Refuses what can never be a row of a table.
    pub fn check(&self) -> Result<(), ResultError> {
        if self.version > RESULT_VERSION {
            return Err(ResultError::Newer { found: self.version });
        }
        let parts = [
            ("test", self.test),
            ("validation", self.validation),
            ("train", self.train),
            ("last_validation", self.last_validation),
        ];
        for (part, metrics) in parts {
            let refuse = |what: &str, value: f64| impossible(format!("{part} {what}"), value);
            if !metrics.loss.is_finite() {
                return Err(refuse("loss", metrics.loss));
            }
            if !(0.0..=1.0).contains(&metrics.accuracy) {
                return Err(refuse("accuracy", metrics.accuracy));
            }
        }
        if !(self.seconds.is_finite() && self.seconds >= 0.0) {
            return Err(impossible("seconds".to_owned(), self.seconds));
        }
        if let Some(joules) = self.energy_joules.filter(|joules| !(joules.is_finite() && *joules >= 0.0)) {
            return Err(impossible("energy_joules".to_owned(), joules));
        }
        // No JSON can hold them, so a result with one could be stored but never read again.
        let curve = self.history.iter().flat_map(|line| {
            [line.lr, line.train.loss, line.train.accuracy, line.validation.loss, line.validation.accuracy]
        });
        match curve.into_iter().find(|number| !number.is_finite()) {
            Some(number) => Err(impossible("learning curve".to_owned(), number)),
            None => Ok(()),
        }
    }

    /// Whether two results of the same fold say the same, apart from when and where they were made.
    pub fn same_numbers(&self, other: &Self) -> bool {
        self.test == other.test
            && self.validation == other.validation
            && self.train == other.train
            && self.last_validation == other.last_validation
            && self.best_epoch == other.best_epoch
            && self.epochs == other.epochs
            && self.data_digest == other.data_digest
    }
}

fn impossible(name: String, value: f64) -> ResultError {
    ResultError::Impossible { name, value: value.to_string() }
}

/// A plausible result for tests of other crates: accuracy as given, everything else fixed.
pub fn example(accuracy: f64) -> FoldResult {
    let metrics = Metrics { loss: 0.5, accuracy };
    FoldResult {
        version: RESULT_VERSION,
        numerics: crate::trial::NUMERICS,
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
        confusion: vec![vec![3, 1], vec![0, 4]],
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
mod tests {
    use super::*;

    #[test]
    fn metrics_that_cannot_be_are_refused_and_named() {
        assert_eq!(example(0.75).check(), Ok(()));
        let mut result = example(0.75);
        result.validation.loss = f64::NAN;
        assert_eq!(
            result.check().unwrap_err().to_string(),
            "result has validation loss = NaN, which is not a possible value"
        );
        let mut result = example(1.5);
        assert!(result.check().is_err());
        result.version = RESULT_VERSION + 1;
        assert!(matches!(result.check(), Err(ResultError::Newer { .. })));
    }

    #[test]
    fn a_learning_curve_that_json_cannot_hold_is_refused() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut result = example(0.75);
            result.history[0].train.loss = number;
            assert!(result.check().unwrap_err().to_string().starts_with("result has learning curve = "));
        }
    }

    #[test]
    fn energy_that_cannot_be_is_refused() {
        for joules in [f64::NAN, f64::INFINITY, -1.0] {
            let result = FoldResult { energy_joules: Some(joules), ..example(0.75) };
            assert!(result.check().unwrap_err().to_string().starts_with("result has energy_joules = "));
        }
    }

    #[test]
    fn when_and_at_what_cost_a_fold_was_trained_says_nothing_about_its_numbers() {
        let timed = FoldResult { finished_at: Some(1), energy_joules: Some(2.0), ..example(0.75) };
        assert!(timed.same_numbers(&example(0.75)));
    }

    #[test]
    fn a_result_from_before_times_were_kept_is_read() {
        let text = serde_json::to_string(&example(0.75)).unwrap();
        assert!(
            !text.contains("finished_at") && !text.contains("energy"),
            "as older programs wrote it: {text}"
        );
        assert_eq!(serde_json::from_str::<FoldResult>(&text).unwrap().finished_at, None);
    }

    #[test]
    fn a_result_survives_json() {
        let result =
            FoldResult { finished_at: Some(u64::MAX), energy_joules: Some(0.1), ..example(0.1 + 0.2) };
        let text = serde_json::to_string(&result).unwrap();
        assert_eq!(serde_json::from_str::<FoldResult>(&text).unwrap(), result);
    }
}
