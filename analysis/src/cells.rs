//! From frame, plan and table block to grouped cells: the joins and groupings behind [`crate::table`]. Every
//! planned fold is joined with its result, then folds are grouped by row and column. Owns the rule that a cell
//! holds one trial, and what counts as mixed; formats and words nothing.

use std::collections::BTreeSet;

use polars::prelude::*;
use togl_sweeps::FoldKey;
use togl_sweeps::spec::{Metric, TableSpec};

use crate::columns::{fold_keys, labels};
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::plan::Plan;
use crate::schema::{self, SETTINGS};
use crate::table::Mark;

/// Columns that must be the same in all folds of a cell, and the mark if they are not.
const MUST_AGREE: [(&str, Mark); 7] = [
    ("code_version", Mark::MixedCode),
    ("commit", Mark::MixedCode),
    ("dirty", Mark::MixedCode),
    ("libtorch", Mark::MixedCode),
    ("data_digest", Mark::MixedData),
    ("device", Mark::MixedDevices),
    ("numerics", Mark::MixedNumerics),
];

/// The folds of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct CellFolds {
    /// One label per row setting.
    pub row: Vec<String>,
    /// The label of the column.
    pub column: String,
    /// How many folds are planned.
    pub planned: usize,
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
    /// The cells.
    pub cells: Vec<CellFolds>,
    /// Results that the plan does not contain.
    pub unplanned: usize,
}

/// The settings that label rows: those of the table block, without repetitions and without the column setting.
pub fn row_settings(spec: &TableSpec) -> Vec<String> {
    let mut seen = BTreeSet::from([spec.columns.as_str()]);
    spec.rows.iter().filter(|name| seen.insert(name)).cloned().collect()
}

/// The name of the frame's column that a metric is in.
pub fn metric_column(metric: Metric) -> &'static str {
    match metric {
        Metric::TestAccuracy => "test_accuracy",
        Metric::ValidationAccuracy => "validation_accuracy",
        Metric::LastValidationAccuracy => "last_validation_accuracy",
        Metric::TrainAccuracy => "train_accuracy",
    }
}

/// Groups the folds into cells; refuses a cell that would average over trials that differ in more than the
/// settings `among` which a choice was made per fold.
pub fn group(frame: &FoldFrame, spec: &TableSpec, plan: &Plan, among: &[&str]) -> Result<GroupedCells> {
    let names = label_settings(spec)?;
    refuse_mixed_cells(&names, plan, among)?;
    let grouped = joined(frame, spec.metric, plan, &names)
        .group_by_stable(names.iter().map(col).collect::<Vec<_>>())
        .agg(aggregates())
        .collect()?;
    let cells: Result<Vec<CellFolds>> =
        (0..grouped.height()).map(|row| cell(&grouped, &names, row)).collect();
    let matched: u64 = grouped.column("matched")?.cast(&DataType::UInt64)?.u64()?.iter().flatten().sum();
    Ok(GroupedCells { cells: cells?, unplanned: frame.len().saturating_sub(matched as usize) })
}

/// The table block with as many more row settings as it takes to have one trial per cell.
pub fn separated(spec: &TableSpec, plan: &Plan) -> Result<TableSpec> {
    let names = label_settings(spec)?;
    let more = settings_that_differ(&mixed_cells(&names, plan)?, &names)?;
    let rows = spec.rows.iter().cloned().chain(more).collect();
    Ok(TableSpec { rows, ..spec.clone() })
}

fn label_settings(spec: &TableSpec) -> Result<Vec<String>> {
    let mut names = row_settings(spec);
    names.push(spec.columns.clone());
    names.iter().try_for_each(|name| schema::check_label(name))?;
    Ok(names)
}

fn refuse_mixed_cells(names: &[String], plan: &Plan, among: &[&str]) -> Result<()> {
    let mixed = mixed_cells(names, plan)?;
    let settings: Vec<String> = settings_that_differ(&mixed, names)?
        .into_iter()
        .filter(|name| !among.contains(&name.as_str()))
        .collect();
    if settings.is_empty() {
        return Ok(());
    }
    let differs = |row: usize| {
        let values = |name: &String| mixed.column(name).ok()?.u64().ok()?.get(row);
        settings.iter().any(|name| values(name).is_some_and(|values| values > 1))
    };
    let first = (0..mixed.height()).find(|row| differs(*row)).unwrap_or_default();
    let trials = mixed.column("trial")?.u64()?.get(first).unwrap_or_default();
    Err(Error::MixedTrials { cell: labels(&mixed, names, first)?, trials, settings })
}

/// The cells that hold more than one trial, with the number of values that each setting takes in them.
fn mixed_cells(names: &[String], plan: &Plan) -> Result<DataFrame> {
    let counts: Vec<Expr> = other_settings(names)
        .chain(["trial"])
        .map(|name| col(name).n_unique().cast(DataType::UInt64))
        .collect();
    // Settings belong to trials, so one row per trial says it all, and there are far fewer trials than folds.
    let settings: Vec<Expr> = schema::label_names().map(|name| col(name).first()).collect();
    let mixed = plan
        .folds()
        .group_by_stable([col("position"), col("trial")])
        .agg(settings)
        .sort(["position"], SortMultipleOptions::default().with_maintain_order(true))
        .group_by_stable(names.iter().map(col).collect::<Vec<_>>())
        .agg(counts)
        .filter(col("trial").gt(lit(1)));
    Ok(mixed.collect()?)
}

fn settings_that_differ(mixed: &DataFrame, names: &[String]) -> Result<Vec<String>> {
    let mut differ = Vec::new();
    for name in other_settings(names) {
        if mixed.column(name)?.u64()?.iter().flatten().any(|values| values > 1) {
            differ.push(name.to_owned());
        }
    }
    Ok(differ)
}

fn other_settings(names: &[String]) -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|spec| spec.name).filter(|name| !names.iter().any(|label| label == name))
}

/// Every planned fold with its labels and, where it is finished, its value and provenance.
fn joined(frame: &FoldFrame, metric: Metric, plan: &Plan, names: &[String]) -> LazyFrame {
    let keys = [col("trial"), col("split"), col("seed")];
    let metric = col(metric_column(metric));
    let value = when(metric.clone().is_not_nan()).then(metric).otherwise(lit(NULL)).alias("value");
    let provenance = MUST_AGREE.iter().map(|(name, _)| col(*name));
    let results = keys.iter().cloned().chain([value, lit(true).alias("matched")]).chain(provenance);
    let labels = names.iter().map(col).chain([col("position")]).chain(keys.clone());
    let results = frame.data().clone().lazy().select(results.collect::<Vec<_>>());
    plan.folds()
        .select(labels.collect::<Vec<_>>())
        .join(results, keys.clone(), keys, JoinArgs::new(JoinType::Left))
        .sort(["position", "split", "seed", "trial"], SortMultipleOptions::default())
}

fn aggregates() -> Vec<Expr> {
    let finished = |name: &str| col(name).filter(col("value").is_not_null());
    let mut aggregates = vec![len().alias("planned"), col("matched").count()];
    aggregates.extend(["value", "trial", "split", "seed"].map(finished));
    aggregates.extend(MUST_AGREE.iter().map(|(name, _)| finished(name).n_unique()));
    aggregates
}

fn cell(grouped: &DataFrame, names: &[String], row: usize) -> Result<CellFolds> {
    let mut row_labels = labels(grouped, names, row)?;
    let column = row_labels.pop().unwrap_or_default();
    let list = |name: &str| -> Result<Series> {
        Ok(grouped.column(name)?.list()?.get_as_series(row).unwrap_or_default())
    };
    let count =
        |name: &str| -> Result<usize> { Ok(grouped.column(name)?.get(row)?.extract().unwrap_or_default()) };
    let mut mixed = BTreeSet::new();
    for (name, mark) in MUST_AGREE {
        if count(name)? > 1 {
            mixed.insert(mark);
        }
    }
    Ok(CellFolds {
        row: row_labels,
        column,
        planned: count("planned")?,
        values: list("value")?.f64()?.iter().flatten().collect(),
        folds: fold_keys(&list("trial")?, &list("split")?, &list("seed")?)?,
        mixed,
    })
}
