//! The blocks of a sweep that say how it runs and what is drawn from it: limits, resources, table, figures and numbers
//! from print. Plain values with their defaults; what may stand in a file is decided in `read`.

use serde::{Deserialize, Serialize};

use crate::condition::Condition;
pub use crate::published::PublishedCell;
use crate::spec::DEFAULT_MAX_FOLDS;
use crate::words::words;

/// Guards of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SweepLimits {
    /// The sweep is refused if it has more folds.
    pub max_folds: u64,
    /// Attempts of one fold, whatever the reason but preemption, before it counts as failed.
    pub attempts: u32,
    /// Seconds that one attempt may train; none if absent.
    pub fold_seconds: Option<u64>,
}

impl Default for SweepLimits {
    fn default() -> Self {
        Self { max_folds: DEFAULT_MAX_FOLDS, attempts: 10, fold_seconds: None }
    }
}

words!(
    /// A column of the fold frame that a table can show; its word is the name of the column.
    Metric {
        /// Test metric of the best checkpoint.
        TestAccuracy = "test_accuracy",
        /// Validation metric of the best checkpoint.
        ValidationAccuracy = "validation_accuracy",
        /// Validation metric of the last epoch.
        LastValidationAccuracy = "last_validation_accuracy",
        /// Training metric of the best checkpoint's epoch.
        TrainAccuracy = "train_accuracy",
        /// Mean over classes of the test F1 of the best checkpoint, where its confusion matrix is known.
        TestF1 = "test_f1",
        /// Test ROC-AUC of the best checkpoint, on data sets that are scored by it.
        TestRocAuc = "test_roc_auc",
    }
);

impl Metric {
    /// Whether it is measured on the test part, so that nothing may be chosen by it.
    pub fn is_of_test(self) -> bool {
        match self {
            Self::TestAccuracy | Self::TestF1 | Self::TestRocAuc => true,
            Self::ValidationAccuracy | Self::LastValidationAccuracy | Self::TrainAccuracy => false,
        }
    }
}

/// What the table of a sweep shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TableSpec {
    /// Settings (or `method`) that make a row.
    pub rows: Vec<String>,
    /// The setting that makes the columns.
    pub columns: String,
    /// What is averaged.
    pub metric: Metric,
    /// The setting of which each value has a common header over its columns.
    pub group: Option<String>,
    /// Settings and the values, as text, that a trial must have to be in the table.
    pub filter: Vec<(String, Vec<String>)>,
    /// What is printed for settings and their values.
    pub labels: Vec<Labels>,
    /// Settings and their values, as text, in the order in which rows and columns are to stand; others follow.
    pub order: Vec<(String, Vec<String>)>,
    /// Digits after the decimal point.
    pub decimals: Option<usize>,
    /// What is printed above it instead of the name of the sweep.
    pub caption: Option<String>,
    /// What a paper refers to it by.
    pub label: Option<String>,
}

/// What is printed for one setting in a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// The setting, or `method`.
    pub setting: String,
    /// What its header says instead of its name.
    pub header: Option<String>,
    /// Values, as text, and what is printed instead.
    pub values: Vec<(String, String)>,
}

impl Default for TableSpec {
    fn default() -> Self {
        Self {
            rows: vec!["method".to_owned()],
            columns: "dataset".to_owned(),
            metric: Metric::TestAccuracy,
            group: None,
            filter: Vec::new(),
            labels: Vec::new(),
            order: Vec::new(),
            decimals: None,
            caption: None,
            label: None,
        }
    }
}

/// Most digits after a decimal point that a table shows.
pub const MOST_DECIMALS: u64 = 6;

/// A choice before the table is made: of the trials that differ only in these settings, the one with the best validation
/// metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The settings that are chosen among; none where all that no row and no column names are.
    pub among: Option<Vec<String>>,
    /// What decides; never a test metric.
    pub by: Metric,
    /// How often it is chosen.
    pub per: Per,
}

words!(
    /// How often a choice is made.
    Per {
        /// Anew in each split, by its own validation value.
        Split = "split",
        /// Once, by the mean over all splits and seeds.
        Config = "config",
    }
);

impl Per {
    /// What decides unless the file says otherwise: in each split the last epoch, as the published tables chose; for a
    /// configuration the checkpoint that is tested.
    pub fn usual_metric(self) -> Metric {
        match self {
            Self::Split => Metric::LastValidationAccuracy,
            Self::Config => Metric::ValidationAccuracy,
        }
    }
}

/// A figure of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FigureSpec {
    /// A sentence above it.
    pub title: String,
    /// The setting along the axis.
    pub x: String,
    /// What is averaged.
    pub metric: Metric,
    /// Settings (or `method`) that make a line.
    pub lines: Vec<String>,
    /// The setting of which each value has a panel of its own.
    pub panels: Option<String>,
}

/// An amount of memory, such as `8 GiB` or `500 MB`, in bytes.
pub fn bytes(written: &str) -> Option<u64> {
    let digits = written.chars().take_while(|c| c.is_ascii_digit() || *c == '.').count();
    let (amount, unit) = written.split_at(digits);
    let unit = match unit.trim() {
        "MB" => 1e6,
        "GB" => 1e9,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        _ => return None,
    };
    let bytes = amount.parse::<f64>().ok()? * unit;
    (bytes > 0.0 && bytes < 1e15).then_some(bytes as u64)
}

words!(
    /// The kind of device that a fold wants.
    #[derive(Default)]
    DeviceKind {
        /// Whatever is free.
        #[default]
        Any = "any",
        /// A processor.
        Cpu = "cpu",
        /// A CUDA device.
        Cuda = "cuda",
        /// An Apple GPU.
        Mps = "mps",
    }
);

/// What a fold needs to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Resources {
    /// The kind of device.
    pub device: DeviceKind,
    /// Bytes of memory on that device; unknown if absent.
    pub memory: Option<u64>,
}

/// A printed table or figure, for comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// What the paper calls it; a table that the program knows need not be repeated.
    pub table: String,
    /// What the numbers are.
    pub metric: Metric,
    /// Printed row labels and the trials that they mean; a label without trials is left out.
    pub methods: Vec<(String, Condition)>,
    /// Printed names of data sets and ours, where they differ.
    pub datasets: Vec<(String, String)>,
    /// The numbers.
    pub cells: Vec<PublishedCell>,
}
