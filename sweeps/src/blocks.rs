//! The blocks of a sweep that say how it runs and what is drawn from it: limits, resources, table, figures and numbers
//! from print. Plain values with their defaults; what may stand in a file is decided in `read`.

use serde::{Deserialize, Serialize};

use crate::condition::Condition;
pub use crate::published::PublishedCell;
use crate::spec::DEFAULT_MAX_FOLDS;

/// Guards of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The sweep is refused if it has more folds.
    pub max_folds: u64,
    /// Attempts of one fold, whatever the reason, before it counts as failed.
    pub attempts: u32,
    /// Seconds that one attempt may train; none if absent.
    pub fold_seconds: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_folds: DEFAULT_MAX_FOLDS, attempts: 10, fold_seconds: None }
    }
}

/// A column of the fold frame that a table can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Test metric of the best checkpoint.
    TestAccuracy,
    /// Validation metric of the best checkpoint.
    ValidationAccuracy,
    /// Validation metric of the last epoch.
    LastValidationAccuracy,
    /// Training metric of the best checkpoint's epoch.
    TrainAccuracy,
    /// Mean over classes of the test F1 of the best checkpoint, where its confusion matrix is known.
    TestF1,
    /// Test ROC-AUC of the best checkpoint, on data sets that are scored by it.
    TestRocAuc,
}

impl Metric {
    const ALL: [Self; 6] = [
        Self::TestAccuracy,
        Self::ValidationAccuracy,
        Self::LastValidationAccuracy,
        Self::TrainAccuracy,
        Self::TestF1,
        Self::TestRocAuc,
    ];

    /// All words of a sweep file, in the order of the documentation.
    pub const WORDS: &'static [&'static str] = &[
        "test_accuracy",
        "validation_accuracy",
        "last_validation_accuracy",
        "train_accuracy",
        "test_f1",
        "test_roc_auc",
    ];

    /// The metric that a word means.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().position(|known| *known == word).map(|at| Self::ALL[at])
    }

    /// Its word, which is also the name of its column in a frame of folds.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().position(|known| *known == self).map_or("", |at| Self::WORDS[at])
    }

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

/// How often a choice is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// Anew in each split, by its own validation value.
    Split,
    /// Once, by the mean over all splits and seeds.
    Config,
}

impl Per {
    /// All words of a sweep file.
    pub const WORDS: &'static [&'static str] = &["split", "config"];

    /// What a word means.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().position(|known| *known == word).map(|at| [Self::Split, Self::Config][at])
    }

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

/// The kind of device that a fold wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// Whatever is free.
    #[default]
    Any,
    /// A processor.
    Cpu,
    /// A CUDA device.
    Cuda,
    /// An Apple GPU.
    Mps,
}

impl DeviceKind {
    /// All words of a sweep file.
    pub const WORDS: &'static [&'static str] = &["any", "cpu", "cuda", "mps"];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::Mps => "mps",
        }
    }

    /// The kind that a word means.
    pub fn from_word(word: &str) -> Option<Self> {
        let all = [Self::Any, Self::Cpu, Self::Cuda, Self::Mps];
        Self::WORDS.iter().position(|known| *known == word).map(|at| all[at])
    }
}

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
