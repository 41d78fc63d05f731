//! A table as people read it: labelled rows, cells with mean, deviation and the folds behind them, and a caption
//! that says what the numbers are. Owns the rules of honest cells: what is incomplete or mixed is marked, what is
//! missing stays missing, and the winner of a column is the cell with the highest mean. Renders nothing.

use std::collections::{BTreeMap, BTreeSet};

use togl_sweeps::FoldKey;
use togl_sweeps::spec::{Metric, TableSpec};

use crate::cells::{self, CellFolds, GroupedCells};
use crate::emphasis::Emphasis;
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::plan::Plan;
use crate::spread::Spread;
use crate::statistics::Summary;
use crate::wording;

/// Means closer than this (in percentage points) are equal: rounding of sums must not decide who wins.
const SAME_MEAN: f64 = 1e-9;

/// Digits after the decimal point unless asked otherwise.
const DEFAULT_DECIMALS: usize = 1;

/// Something that a reader of a cell must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// Fewer folds are finished than planned.
    Incomplete,
    /// Its folds were trained by different versions of the code.
    MixedCode,
    /// Its folds saw different data under the same name.
    MixedData,
    /// Its folds were trained on different kinds of devices.
    MixedDevices,
    /// Its folds were trained by numerics that are known to differ.
    MixedNumerics,
}

impl Mark {
    /// The sign beside the number.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Incomplete => "*",
            Self::MixedCode => "†",
            Self::MixedData => "‡",
            Self::MixedDevices => "§",
            Self::MixedNumerics => "¶",
        }
    }

    /// The word in machine-readable output.
    pub fn word(self) -> &'static str {
        match self {
            Self::Incomplete => "incomplete",
            Self::MixedCode => "mixed-code",
            Self::MixedData => "mixed-data",
            Self::MixedDevices => "mixed-devices",
            Self::MixedNumerics => "mixed-numerics",
        }
    }

    /// What the sign means, for the lines under a table.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Incomplete => "fewer folds than planned have finished (n=finished/planned)",
            Self::MixedCode => "folds of different code versions",
            Self::MixedData => "folds of different data under the same name",
            Self::MixedDevices => "folds of different kinds of devices",
            Self::MixedNumerics => "folds of different numerics versions, which should not be compared",
        }
    }
}

/// One number of a table, with what stands behind it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// Mean in percent, not rounded; none if no fold has finished.
    pub mean: Option<f64>,
    /// Sample standard deviation in percent, not rounded; not defined for fewer than two folds.
    pub std: Option<f64>,
    /// Finished folds.
    pub n: usize,
    /// Planned folds; 0 where the plan has no such combination.
    pub planned: usize,
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
    /// The value of each of these folds in percent, in the same order.
    pub values: Vec<f64>,
}

impl Cell {
    /// Whether it is set off from the others: the best, or as good as the best.
    pub fn stands_out(&self) -> bool {
        self.best || self.not_worse
    }

    /// The number behind ± (in percentage points); not defined for fewer than two folds.
    pub fn plus_minus(&self, spread: Spread) -> Option<f64> {
        if spread == Spread::SampleStd { self.std } else { spread.of(&self.values) }
    }

    /// Whether all planned folds have finished, so that it may compete.
    pub fn is_complete(&self) -> bool {
        self.n > 0 && self.n >= self.planned
    }

    fn of(group: CellFolds) -> Self {
        let percent: Vec<f64> = group.values.iter().map(|value| value * 100.0).collect();
        let summary = Summary::of(&percent);
        let mut marks = group.mixed;
        if summary.n < group.planned {
            marks.insert(Mark::Incomplete);
        }
        Self {
            mean: summary.mean,
            std: summary.std,
            n: summary.n,
            planned: group.planned,
            marks,
            best: false,
            not_worse: false,
            wins_comparison: false,
            folds: group.folds,
            values: percent,
        }
    }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    /// The value of the column setting: what was trained.
    pub label: String,
    /// What a publication prints above this column, where a table mirrors one and the two may differ.
    pub printed_as: Option<String>,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// One label per row setting.
    pub labels: Vec<String>,
    /// One cell per column.
    pub cells: Vec<Cell>,
    /// What a publication prints beside this row, where a table mirrors one and the two may differ.
    pub printed_as: Option<String>,
}

/// Among which cells the best one is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Winners {
    /// Among the cells of a column: rows are what is compared.
    PerColumn,
    /// Among the cells of a row: columns are what is compared.
    PerRow,
}

/// A finished table, ready for any renderer.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// What it is called.
    pub title: String,
    /// What the numbers are, what ± means and over how many folds. How winners are set off is the renderer's to
    /// say.
    pub caption: String,
    /// Further lines under the table: what marks mean, what was left out.
    pub notes: Vec<String>,
    /// The settings that label rows, in order.
    pub row_settings: Vec<String>,
    /// The setting that makes columns.
    pub column_setting: String,
    /// The columns, in order.
    pub columns: Vec<TableColumn>,
    /// The rows, in order.
    pub rows: Vec<Row>,
    /// Among which cells winners were found.
    pub winners: Winners,
    /// What was measured.
    pub metric: Metric,
    /// What ± means.
    pub spread: Spread,
    /// Which cells are set off.
    pub emphasis: Emphasis,
    /// Notes that belong to this table whatever its cells hold, such as how a layout chose.
    pub remarks: Vec<String>,
    /// Finished folds that the plan does not contain and that no cell shows.
    pub unplanned: usize,
    /// Digits after the decimal point in rendered numbers.
    pub decimals: usize,
}

impl Table {
    /// Makes the table that `spec` asks for. Rows and columns are those of the plan, in its order.
    ///
    /// A cell whose folds come from different trials is refused ([`Error::MixedTrials`]), because its mean would
    /// be of nothing in particular; [`Table::separated`] says which rows avoid that. Winners are found by the
    /// unrounded mean, so of two cells that print alike one may win; only complete cells compete, and only where
    /// at least two do.
    pub fn make(frame: &FoldFrame, spec: &TableSpec, plan: &Plan) -> Result<Self> {
        Self::make_after_choice(frame, spec, plan, &[])
    }

    /// As [`Table::make`], for a frame in which a choice was made per fold: trials that differ only in the
    /// settings `among` which was chosen may share a cell.
    pub fn make_after_choice(
        frame: &FoldFrame,
        spec: &TableSpec,
        plan: &Plan,
        among: &[&str],
    ) -> Result<Self> {
        if plan.is_empty() {
            return Err(Error::Empty { origin: format!("the plan of `{}`", plan.title()) });
        }
        let grouped = cells::group(frame, spec, plan, among)?;
        let mut table = Self::arrange(plan.title(), spec, grouped);
        table.mark_best(Winners::PerColumn);
        table.reword();
        Ok(table)
    }

    /// The table block with enough row settings that every cell is one trial.
    pub fn separated(spec: &TableSpec, plan: &Plan) -> Result<TableSpec> {
        cells::separated(spec, plan)
    }

    /// The same table with other digits after the decimal point.
    #[must_use]
    pub fn with_decimals(mut self, decimals: usize) -> Self {
        self.decimals = decimals;
        self
    }

    /// The same table with another meaning of ±; the caption says which.
    #[must_use]
    pub fn with_spread(mut self, spread: Spread) -> Self {
        self.spread = spread;
        self.reword();
        self
    }

    /// All cells, row by row, each with its row's labels and its column.
    pub fn cells(&self) -> impl Iterator<Item = (&[String], &TableColumn, &Cell)> {
        self.rows.iter().flat_map(|row| {
            row.cells.iter().zip(&self.columns).map(|(cell, column)| (row.labels.as_slice(), column, cell))
        })
    }

    fn arrange(title: &str, spec: &TableSpec, grouped: GroupedCells) -> Self {
        let mut columns = Places::default();
        let mut labels = Places::default();
        let places: Vec<(usize, usize)> =
            grouped.cells.iter().map(|cell| (labels.of(&cell.row), columns.of(&cell.column))).collect();
        let columns = columns.in_order;
        let empty = vec![Cell::default(); columns.len()];
        let mut rows: Vec<Row> = labels
            .in_order
            .into_iter()
            .map(|labels| Row { labels, cells: empty.clone(), printed_as: None })
            .collect();
        for ((row, column), group) in places.into_iter().zip(grouped.cells) {
            rows[row].cells[column] = Cell::of(group);
        }
        Self {
            title: title.to_owned(),
            caption: String::new(),
            notes: Vec::new(),
            row_settings: cells::row_settings(spec),
            column_setting: spec.columns.clone(),
            columns: columns.into_iter().map(|label| TableColumn { label, printed_as: None }).collect(),
            rows,
            winners: Winners::PerColumn,
            metric: spec.metric,
            spread: Spread::default(),
            emphasis: Emphasis::default(),
            remarks: Vec::new(),
            unplanned: grouped.unplanned,
            decimals: DEFAULT_DECIMALS,
        }
    }

    /// Finds the winners anew, within columns or within rows.
    pub(crate) fn mark_best(&mut self, winners: Winners) {
        self.winners = winners;
        match winners {
            Winners::PerColumn => {
                for column in 0..self.columns.len() {
                    let cells = self.rows.iter_mut().map(|row| &mut row.cells[column]).collect();
                    mark_winners(cells, |cell, wins| cell.best = wins);
                }
            }
            Winners::PerRow => {
                for row in &mut self.rows {
                    mark_winners(row.cells.iter_mut().collect(), |cell, wins| cell.best = wins);
                }
            }
        }
    }

    /// Words the caption and the notes for the cells as they are now.
    pub(crate) fn reword(&mut self) {
        self.caption = wording::caption(self);
        self.notes = wording::notes(self);
        self.notes.extend(self.remarks.iter().cloned());
    }
}

/// Tells each cell whether it has the highest mean of those given.
pub(crate) fn mark_winners(mut cells: Vec<&mut Cell>, mark: fn(&mut Cell, bool)) {
    let competes = |cell: &Cell| cell.mean.filter(|_| cell.is_complete());
    let means: Vec<f64> = cells.iter().filter_map(|cell| competes(cell)).collect();
    let highest = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for cell in &mut cells {
        let wins = means.len() > 1 && competes(cell).is_some_and(|mean| mean >= highest - SAME_MEAN);
        mark(cell, wins);
    }
}

/// Labels in the order in which they first appear, each with its place.
struct Places<T> {
    in_order: Vec<T>,
    place: BTreeMap<T, usize>,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self { in_order: Vec::new(), place: BTreeMap::new() }
    }
}

impl<T: Clone + Ord> Places<T> {
    fn of(&mut self, label: &T) -> usize {
        if let Some(place) = self.place.get(label) {
            return *place;
        }
        self.in_order.push(label.clone());
        self.place.insert(label.clone(), self.in_order.len() - 1);
        self.in_order.len() - 1
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
