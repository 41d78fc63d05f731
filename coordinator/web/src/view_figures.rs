//! Curves, axes, trials and comparisons as numbers, as they go over the wire to the browser. Part of [`crate::view`]; draws
//! nothing.

use serde::Serialize;

use crate::view::ShownScore;

/// Learning curves of a sweep: values on the validation part by epoch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurvesNow {
    /// Finished folds, drawn or not.
    pub total: u64,
    /// How many of them are drawn.
    pub drawn: u64,
    /// How values are written.
    pub score: ShownScore,
    /// One for each line of the figure, in the order of the sweep.
    pub groups: Vec<CurveLine>,
    /// Folds in training, as far as they are.
    pub running: Vec<ThinCurve>,
}

/// Folds of one line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurveLine {
    /// Data set.
    pub dataset: String,
    /// What the line is called.
    pub label: String,
    /// Mean over the folds that are that far.
    pub mean: Vec<Along>,
    /// The folds, in fewer points.
    pub folds: Vec<Vec<Along>>,
}

/// A fold in training.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThinCurve {
    /// `TRIAL/split/seed`.
    pub fold: String,
    /// What is trained on what.
    pub title: String,
    /// How far it is.
    pub points: Vec<Along>,
}

/// A place along a curve: epoch, and a share with three digits.
pub type Along = [f64; 2];

/// Values against a setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Against {
    /// The setting along the axis.
    pub setting: String,
    /// What the values are, in words.
    pub caption: String,
    /// How values are written; the factor is already in.
    pub score: ShownScore,
    /// One for each data set.
    pub panels: Vec<AgainstPanel>,
}

/// Lines over one axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgainstPanel {
    /// What stands above it.
    pub title: String,
    /// Its lines.
    pub lines: Vec<AgainstLine>,
}

/// A line with its error bars.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgainstLine {
    /// What it is called.
    pub label: String,
    /// From left to right.
    pub points: Vec<AgainstPoint>,
}

/// A point with its error bar, in the unit of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgainstPoint {
    /// The value of the setting.
    pub x: String,
    /// The mean.
    pub y: f64,
    /// What stands behind ±.
    pub spread: Option<f64>,
    /// Folds behind it.
    pub n: u64,
    /// Planned folds.
    pub planned: u64,
}

/// The trials of a sweep with what came out of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trials {
    /// All of them, shown or not.
    pub total: u64,
    /// So many were left out before the first.
    pub from: u64,
    /// Where the next page begins, if there is one.
    pub next: Option<u64>,
    /// What the values are.
    pub caption: String,
    /// How values are written; the factor is already in.
    pub score: ShownScore,
    /// Settings that vary, in order.
    pub settings: Vec<String>,
    /// The trials, from best to worst.
    pub trials: Vec<TrialOnPage>,
}

/// A trial with what came out of it, in percent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrialOnPage {
    /// Its id.
    pub trial: String,
    /// Name of the network.
    pub method: String,
    /// The value of each setting.
    pub values: Vec<String>,
    /// Mean on the validation part.
    pub validation: Option<f64>,
    /// Mean on the test part.
    pub test: Option<f64>,
    /// Sample standard deviation of the same.
    pub test_std: Option<f64>,
    /// Folds with a value.
    pub n: u64,
    /// Planned folds.
    pub planned: u64,
}

/// Two trials beside each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparisonOnPage {
    /// What they are called.
    pub names: [String; 2],
    /// Settings that differ: name, value of the one, value of the other.
    pub settings: Vec<[String; 3]>,
    /// Folds that both have.
    pub pairs: Vec<PairOnPage>,
    /// What can be said of the difference, or why nothing can.
    pub verdict: String,
    /// How values are written; the factor is already in.
    pub score: ShownScore,
    /// Mean of A less B and its interval, where a test is made.
    pub difference: Option<MeanDifference>,
}

/// A mean difference with its interval, in percent where values are shares.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeanDifference {
    /// Mean.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Level of the interval, in percent.
    pub level: u64,
}

/// A fold that both trials have, in percent where values are shares.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairOnPage {
    /// Which split.
    pub split: u32,
    /// Which seed.
    pub seed: u64,
    /// Value of the one.
    pub a: f64,
    /// Value of the other.
    pub b: f64,
}
