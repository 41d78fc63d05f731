//! From frame, plan and table block to grouped cells: which planned fold falls into which cell, which result belongs
//! to it, and what of its provenance is not the same in a whole cell. Owns the rule that a cell holds one trial, and
//! what counts as mixed; formats and words nothing. Written for a million folds: each is looked at a few times.

use std::collections::BTreeSet;

use polars::prelude::{Column, DataType};
use togl_sweeps::FoldKey;
use togl_sweeps::spec::{Metric, TableSpec};

use crate::columns::is_constant;
use crate::distinct::Distinct;
use crate::error::{Error, Result, backticked};
use crate::frame::FoldFrame;
use crate::level;
use crate::plan::Plan;
use crate::table::Mark;

/// Columns that must be the same in all folds of a cell, and the mark if they are not.
const MUST_AGREE: [(&str, Mark); 8] = [
    ("code_version", Mark::MixedCode),
    ("commit", Mark::MixedCode),
    ("dirty", Mark::MixedCode),
    ("libtorch", Mark::MixedCode),
    ("data_digest", Mark::MixedData),
    ("device", Mark::MixedDevices),
    ("processor", Mark::MixedDevices),
    ("numerics", Mark::MixedNumerics),
];

/// The folds of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct CellFolds {
    /// One label per row setting.
    pub row: Vec<String>,
    /// What stands over the column, where columns are grouped.
    pub group: Option<String>,
    /// The label of the column.
    pub column: String,
    /// How many folds are planned.
    pub planned: usize,
    /// How many have finished without a value of the metric.
    pub valueless: usize,
    /// The metric of the finished folds, in the frame's order.
    pub values: Vec<f64>,
    /// The finished folds, in the same order.
    pub folds: Vec<FoldKey>,
    /// What is not the same in all of them.
    pub mixed: BTreeSet<Mark>,
}

/// All cells with a planned fold, in the order of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupedCells {
    /// One for each combination of labels, in the order of its first planned fold.
    pub cells: Vec<CellFolds>,
    /// Results that the plan does not contain.
    pub unplanned: usize,
    /// Whether saved folds, which have no plan, were measured against the fullest cell of their data set.
    pub levelled: bool,
}

/// The settings that label rows: those of the table block, without repetitions and without those of columns.
pub fn row_settings(spec: &TableSpec) -> Vec<String> {
    let mut seen: BTreeSet<&str> = [spec.columns.as_str()].into_iter().chain(spec.group.as_deref()).collect();
    spec.rows.iter().filter(|name| seen.insert(name)).cloned().collect()
}

/// Groups the folds into cells; refuses a cell that would average over trials that differ in more than the
/// settings `among` which a choice was made per fold.
pub fn group(frame: &FoldFrame, spec: &TableSpec, plan: &Plan, among: &[String]) -> Result<GroupedCells> {
    let names = label_settings(spec, plan)?;
    let places = Places::of(plan, &names)?;
    refuse_mixed_cells(&places, &names, plan, among)?;
    let mut cells: Vec<CellFolds> = places.labels.iter().map(|labels| cell(labels, spec)).collect();
    let rows = rows_of_folds(frame, plan)?;
    let values = values(frame, spec.metric)?;
    let varied: Vec<(&Column, Mark)> = varied(frame)?;
    let mut cell_of_row: Vec<Option<usize>> = vec![None; if varied.is_empty() { 0 } else { frame.len() }];
    let mut matched = 0;
    let stopped = plan.stopped();
    for (fold, row) in plan.folds().iter().zip(&rows) {
        let at = places.cell_of_trial[fold.trial];
        cells[at].planned += 1;
        if stopped.contains(plan.id(fold.trial)) {
            cells[at].mixed.insert(Mark::Stopped);
        }
        let Some(row) = *row else { continue };
        matched += 1;
        if stopped.leaves_out(&plan.key(fold)) {
            continue;
        }
        let Some(value) = values[row] else {
            cells[at].valueless += 1;
            continue;
        };
        cells[at].values.push(value);
        cells[at].folds.push(plan.key(fold));
        if let Some(cell) = cell_of_row.get_mut(row) {
            *cell = Some(at);
        }
    }
    let missing = level::missing(plan, &places.cell_of_trial, !among.is_empty())?;
    for (at, folds) in &missing {
        cells[*at].planned += folds;
    }
    mark_mixed(&mut cells, varied, &cell_of_row)?;
    let (unplanned, levelled) = (frame.len().saturating_sub(matched), !missing.is_empty());
    Ok(GroupedCells { cells, unplanned, levelled })
}

/// Marks the cells whose folds differ in one of these columns.
fn mark_mixed(
    cells: &mut [CellFolds],
    varied: Vec<(&Column, Mark)>,
    cell_of_row: &[Option<usize>],
) -> Result<()> {
    for (column, mark) in varied {
        for at in disagreeing(column, cell_of_row, cells.len())? {
            cells[at].mixed.insert(mark);
        }
    }
    Ok(())
}

/// The table block with as many more row settings as it takes to have one trial per cell, where a choice was made
/// per fold `among` some settings.
pub fn separated(spec: &TableSpec, plan: &Plan, among: &[String]) -> Result<TableSpec> {
    let names = label_settings(spec, plan)?;
    let more = settings_that_differ(&Places::of(plan, &names)?.mixed(), &names, plan)?;
    let more = more.into_iter().filter(|name| !among.contains(name));
    let rows = spec.rows.iter().cloned().chain(more).collect();
    Ok(TableSpec { rows, ..spec.clone() })
}

fn label_settings(spec: &TableSpec, plan: &Plan) -> Result<Vec<String>> {
    let mut names = row_settings(spec);
    names.extend(spec.group.iter().filter(|name| **name != spec.columns).cloned());
    names.push(spec.columns.clone());
    names.iter().try_for_each(|name| plan.check_label(name))?;
    Ok(names)
}

fn cell(labels: &[String], spec: &TableSpec) -> CellFolds {
    let mut row = labels.to_vec();
    let column = row.pop().unwrap_or_default();
    let grouped = spec.group.as_ref().is_some_and(|name| *name != spec.columns);
    let group = if grouped { row.pop() } else { None };
    CellFolds {
        row,
        group,
        column,
        planned: 0,
        valueless: 0,
        values: Vec::new(),
        folds: Vec::new(),
        mixed: BTreeSet::new(),
    }
}

/// Which trial falls into which cell; cells in the order of their first planned fold.
struct Places {
    labels: Vec<Vec<String>>,
    cell_of_trial: Vec<usize>,
}

impl Places {
    fn of(plan: &Plan, names: &[String]) -> Result<Self> {
        let mut labels = Distinct::default();
        let mut cell_of_trial = vec![usize::MAX; plan.trials()];
        for fold in plan.folds() {
            if cell_of_trial[fold.trial] == usize::MAX {
                cell_of_trial[fold.trial] = labels.place(plan.labels(fold.trial, names)?);
            }
        }
        Ok(Self { labels: labels.in_order, cell_of_trial })
    }

    /// The cells that hold more than one trial, each with its trials.
    fn mixed(&self) -> Vec<(usize, Vec<usize>)> {
        let mut trials: Vec<Vec<usize>> = vec![Vec::new(); self.labels.len()];
        for (trial, cell) in self.cell_of_trial.iter().enumerate().filter(|(_, cell)| **cell != usize::MAX) {
            trials[*cell].push(trial);
        }
        trials.into_iter().enumerate().filter(|(_, trials)| trials.len() > 1).collect()
    }
}

fn refuse_mixed_cells(places: &Places, names: &[String], plan: &Plan, among: &[String]) -> Result<()> {
    let mixed = places.mixed();
    let differ = settings_that_differ(&mixed, names, plan)?;
    let settings: Vec<String> = differ.into_iter().filter(|name| !among.contains(name)).collect();
    for (cell, trials) in &mixed {
        if settings.iter().any(|name| plan.differs(trials, name).unwrap_or(true)) {
            return Err(Error::Unfit(format!(
                "cell ({}) mixes {} trials, which differ in {}; add what tells them apart to the table's `rows`, or keep \
                 one value of it with a `filter`",
                places.labels[*cell].join(", "),
                trials.len(),
                backticked(&settings)
            )));
        }
    }
    Ok(())
}

/// The settings in which the trials of some cell differ, in the order of the schema.
fn settings_that_differ(mixed: &[(usize, Vec<usize>)], names: &[String], plan: &Plan) -> Result<Vec<String>> {
    let mut differ = Vec::new();
    let others = plan.settings().into_iter().filter(|name| !names.contains(name));
    for name in others {
        for (_, trials) in mixed {
            if plan.differs(trials, &name)? {
                differ.push(name);
                break;
            }
        }
    }
    Ok(differ)
}

/// For each planned fold the row of its result. A whole sweep is in the order of its plan already; otherwise both sides
/// are put in the same order and walked once.
pub fn rows_of_folds(frame: &FoldFrame, plan: &Plan) -> Result<Vec<Option<usize>>> {
    type Key = (usize, u32, u64);
    let keys = frame.keys()?;
    let same_order = plan.folds().iter().zip(&keys).all(|(fold, key)| plan.key(fold) == *key);
    if keys.len() == plan.len() && same_order {
        return Ok((0..keys.len()).map(Some).collect());
    }
    let places = plan.places();
    let keys = keys.into_iter().enumerate();
    let mut results: Vec<(Key, usize)> =
        keys.filter_map(|(row, key)| Some(((*places.get(&key.trial)?, key.split, key.seed), row))).collect();
    let folds = plan.folds().iter().enumerate();
    let mut planned: Vec<(Key, usize)> =
        folds.map(|(at, fold)| ((fold.trial, fold.split, fold.seed), at)).collect();
    results.sort_unstable();
    planned.sort_unstable();
    let mut rows = vec![None; planned.len()];
    let mut results = results.into_iter().peekable();
    for (key, at) in planned {
        while results.next_if(|(result, _)| *result < key).is_some() {}
        rows[at] = results.peek().filter(|(result, _)| *result == key).map(|(_, row)| *row);
    }
    Ok(rows)
}

/// The metric of each row; not a number is no value.
pub(crate) fn values(frame: &FoldFrame, metric: Metric) -> Result<Vec<Option<f64>>> {
    let column = frame.data().column(metric.as_str())?.f64()?;
    Ok(column.iter().map(|value| value.filter(|value| !value.is_nan())).collect())
}

/// The columns that must agree within a cell and are not the same everywhere.
fn varied(frame: &FoldFrame) -> Result<Vec<(&Column, Mark)>> {
    let mut varied = Vec::new();
    for (name, mark) in MUST_AGREE {
        let column = frame.data().column(name)?;
        if !is_constant(column)? {
            varied.push((column, mark));
        }
    }
    Ok(varied)
}

/// The cells whose rows do not all have the same value in a column.
fn disagreeing(column: &Column, cell_of_row: &[Option<usize>], cells: usize) -> Result<Vec<usize>> {
    Ok(match column.dtype() {
        DataType::String => not_the_same(column.str()?.iter(), cell_of_row, cells),
        DataType::Boolean => not_the_same(column.bool()?.iter(), cell_of_row, cells),
        _ => not_the_same(column.u64()?.iter(), cell_of_row, cells),
    })
}

fn not_the_same<T: PartialEq + Copy>(
    values: impl Iterator<Item = Option<T>>,
    cell_of_row: &[Option<usize>],
    cells: usize,
) -> Vec<usize> {
    let mut first: Vec<Option<Option<T>>> = vec![None; cells];
    let mut differ = vec![false; cells];
    for (value, cell) in values.zip(cell_of_row) {
        let Some(cell) = *cell else { continue };
        match first[cell] {
            None => first[cell] = Some(value),
            Some(known) => differ[cell] |= known != value,
        }
    }
    (0..cells).filter(|cell| differ[*cell]).collect()
}
