//! One number of a table with what stands behind it. Owns the rules of honest cells: what is incomplete or mixed is
//! marked, what is missing stays missing, and what is cited was not trained here.

use std::collections::BTreeSet;

use togl_sweeps::{FoldKey, Scale};

use crate::cells::CellFolds;
#[cfg(doc)]
use crate::emphasis::Emphasis;
use crate::spread::Spread;
use crate::statistics::{Summary, quartiles};

/// Something that a reader of a cell must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// Fewer folds are finished than planned.
    Incomplete,
    /// Its folds were trained by different versions of the code.
    MixedCode,
    /// Its folds saw different data under the same name.
    MixedData,
    /// Its folds were trained on different kinds of devices or processors, whose last digits differ.
    MixedDevices,
    /// Its folds were trained by numerics that are known to differ.
    MixedNumerics,
    /// The race of its sweep has stopped it: no more folds are trained.
    Stopped,
    /// Some of its folds were chosen where not all candidates have finished.
    FewerCandidates,
}

impl Mark {
    /// The sign beside the number, the word in machine-readable output, and what it means.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Incomplete => {
                ("*", "incomplete", "fewer folds than planned have finished (n=finished/planned)")
            }
            Self::MixedCode => ("†", "mixed-code", "folds of different code versions"),
            Self::MixedData => ("‡", "mixed-data", "folds of different data under the same name"),
            Self::MixedDevices => ("§", "mixed-devices", "folds of different kinds of devices or processors"),
            Self::MixedNumerics => {
                ("¶", "mixed-numerics", "folds of different numerics versions, which should not be compared")
            }
            Self::Stopped => (
                "‖",
                "stopped",
                "stopped by the race or the halving of its sweep, by validation values; no rival for the best",
            ),
            Self::FewerCandidates => (
                "◊",
                "fewer-candidates",
                "chosen among fewer candidates than there are or than in other splits, so no rival for the best",
            ),
        }
    }

    /// The sign beside the number.
    pub fn sign(self) -> &'static str {
        self.words().0
    }

    /// The word in machine-readable output.
    pub fn word(self) -> &'static str {
        self.words().1
    }

    /// What the sign means, for the lines under a table.
    pub fn meaning(self) -> &'static str {
        self.words().2
    }
}

/// One number of a table, with what stands behind it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// Mean in percent, or on the scale of the table, not rounded; none if no fold has finished.
    pub mean: Option<f64>,
    /// Sample standard deviation likewise, not rounded; not defined for fewer than two folds.
    pub std: Option<f64>,
    /// Folds that have finished with a value.
    pub n: usize,
    /// Planned folds; 0 where the plan has no such combination.
    pub planned: usize,
    /// Finished folds that do not count, because they lack the metric or what a choice among them needs.
    pub valueless: usize,
    /// What the reader must know.
    pub marks: BTreeSet<Mark>,
    /// Whether it is the winner of its column, or one of several that tie.
    pub best: bool,
    /// Whether it is not significantly worse than the best, where the table was asked to find out
    /// ([`Emphasis::NotSignificantlyWorse`]).
    pub not_worse: bool,
    /// Whether it wins the narrower comparison that a layout makes within a column, such as a network with TOGL
    /// against the same network without.
    pub wins_comparison: bool,
    /// The folds that were averaged, in their defined order.
    pub folds: Vec<FoldKey>,
    /// The value of each of these folds likewise, in the same order.
    pub values: Vec<f64>,
    /// Whether it is taken over from a publication that itself took it from elsewhere: nothing was trained here.
    pub cited: bool,
}

impl Cell {
    /// Whether it is set off from the others: the best, or as good as the best.
    pub fn stands_out(&self) -> bool {
        self.best || self.not_worse
    }

    /// The number behind ± (in percentage points where values are shares); not defined for fewer than two folds.
    pub fn plus_minus(&self, spread: Spread) -> Option<f64> {
        if spread == Spread::SampleStd || self.cited {
            self.std
        } else {
            spread.of(&self.folds, &self.values)
        }
    }

    /// The number before ± (in percent where values are shares): the mean, or the median where ± is the interquartile range.
    pub fn centre(&self, spread: Spread) -> Option<f64> {
        if spread != Spread::Quartiles || self.cited {
            return self.mean;
        }
        quartiles(&self.values).map(|quartiles| quartiles.median)
    }

    /// A number from print.
    pub(crate) fn cited(mean: f64, std: Option<f64>) -> Self {
        Self { mean: Some(mean), std, cited: true, ..Self::default() }
    }

    /// Whether there is anything to say about it.
    pub(crate) fn is_there(&self) -> bool {
        self.planned > 0 || self.n > 0 || self.cited
    }

    /// Whether all planned folds and all their candidates have finished, so that it may compete.
    pub fn is_complete(&self) -> bool {
        self.n > 0
            && self.n >= self.planned
            && self.marks.is_disjoint(&BTreeSet::from([Mark::FewerCandidates, Mark::Stopped]))
    }

    pub(crate) fn of(group: CellFolds, scale: &Scale) -> Self {
        let values: Vec<f64> = group.values.iter().map(|value| value * scale.factor()).collect();
        let summary = Summary::of(&values);
        let mut marks = group.mixed;
        if summary.n < group.planned && !marks.contains(&Mark::Stopped) {
            marks.insert(Mark::Incomplete);
        }
        Self {
            mean: summary.mean,
            std: summary.std,
            n: summary.n,
            planned: group.planned,
            valueless: group.valueless,
            marks,
            folds: group.folds,
            values,
            ..Self::default()
        }
    }
}
