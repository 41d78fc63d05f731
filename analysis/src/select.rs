//! Choosing rows by their validation values. A choice sees only a [`ValidationView`], which has no test columns,
//! so that choosing by the test set is not a mistake one can make here. Averages nothing.

use polars::prelude::*;

use crate::columns::labels;
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::schema::{self, KEYS, SETTINGS};

/// The validation columns of the schema; test and training columns must never be listed here.
const VALIDATION: [&str; 4] =
    ["validation_accuracy", "validation_loss", "last_validation_accuracy", "last_validation_loss"];

/// What choices may read of a frame: keys, settings and validation columns.
#[derive(Debug, Clone)]
pub struct ValidationView<'a> {
    frame: &'a FoldFrame,
    visible: DataFrame,
}

impl<'a> ValidationView<'a> {
    pub(crate) fn of(frame: &'a FoldFrame) -> Result<Self> {
        let names = KEYS.iter().chain(&SETTINGS).map(|spec| spec.name).chain(VALIDATION);
        Ok(Self { frame, visible: frame.data().select(names)? })
    }

    /// The visible columns, one row per fold in the frame's order.
    pub fn data(&self) -> &DataFrame {
        &self.visible
    }
}

/// Rows chosen from a frame. Bound to it, so that a choice cannot be applied to another frame's rows.
#[derive(Debug, Clone)]
pub struct Selection<'a> {
    frame: &'a FoldFrame,
    rows: Vec<IdxSize>,
}

impl Selection<'_> {
    /// Places of the chosen rows in the frame, ascending.
    pub fn rows(&self) -> &[IdxSize] {
        &self.rows
    }

    /// The chosen rows with all their columns, in the frame's order.
    pub fn frame(&self) -> Result<FoldFrame> {
        self.frame.rows(&self.rows)
    }
}

/// Chooses within each group the row with the highest validation accuracy **of the last epoch**; of equal ones
/// the last row in the frame's order. This is the rule by which the published tables' "General" columns chose.
/// Groups are by settings, `method`, `split` or `seed`.
pub fn best_by_last_validation<'a>(view: &ValidationView<'a>, groups: &[&str]) -> Result<Selection<'a>> {
    best_row(view, groups, "last_validation_accuracy")
}

/// As [`best_by_last_validation`], by the validation accuracy of the best checkpoint.
pub fn best_by_validation<'a>(view: &ValidationView<'a>, groups: &[&str]) -> Result<Selection<'a>> {
    best_row(view, groups, "validation_accuracy")
}

/// Chooses within each group the trial whose folds have the highest mean validation accuracy (best checkpoint),
/// and keeps all its folds; of equal trials the last in the frame's order. Trials are compared over the folds
/// they have, so the caller first makes sure that they are complete.
pub fn best_trial_by_validation<'a>(view: &ValidationView<'a>, groups: &[&str]) -> Result<Selection<'a>> {
    let by = group_columns(groups)?;
    let with_trial: Vec<Expr> = by.iter().cloned().chain([col("trial")]).collect();
    let means = candidates(view, "validation_accuracy")
        .group_by_stable(with_trial)
        .agg([col("value").mean(), col("row")]);
    chosen(view, groups, "validation_accuracy", means.group_by_stable(by).agg([last_best(col("row"))]))
}

fn best_row<'a>(view: &ValidationView<'a>, groups: &[&str], column: &str) -> Result<Selection<'a>> {
    let by = group_columns(groups)?;
    chosen(view, groups, column, candidates(view, column).group_by_stable(by).agg([last_best(col("row"))]))
}

/// The value of `what` in the last of the rows that have the highest `value` of their group.
fn last_best(what: Expr) -> Expr {
    what.filter(col("value").eq(col("value").max())).last()
}

/// All rows, numbered, with the deciding column under the name `value`; NaN decides nothing.
fn candidates(view: &ValidationView<'_>, column: &str) -> LazyFrame {
    let value = when(col(column).is_not_nan()).then(col(column)).otherwise(lit(NULL));
    view.visible.clone().lazy().with_row_index("row", None).with_column(value.alias("value"))
}

fn group_columns(groups: &[&str]) -> Result<Vec<Expr>> {
    for name in groups {
        if !matches!(*name, "split" | "seed") {
            schema::check_label(name)?;
        }
    }
    // A group that all rows share, so that "no groups" means "one group".
    let everything = lit(0_u64).alias("everything");
    Ok(groups.iter().map(|name| col(*name)).chain([everything]).collect())
}

fn chosen<'a>(
    view: &ValidationView<'a>,
    groups: &[&str],
    column: &str,
    best: LazyFrame,
) -> Result<Selection<'a>> {
    let best = best.collect()?;
    let undecided = best.column("row")?.is_null().iter().position(|null| null == Some(true));
    if let Some(row) = undecided {
        let names: Vec<String> = groups.iter().map(|name| (*name).to_owned()).collect();
        let values = labels(&best, &names, row)?;
        let group = names.iter().zip(values).map(|(name, value)| format!("{name}={value}")).collect();
        return Err(Error::NothingToChoose { group, column: column.to_owned() });
    }
    let places = match best.column("row")?.dtype() {
        DataType::List(_) => {
            best.column("row")?.explode(ExplodeOptions { empty_as_null: false, keep_nulls: false })?
        }
        _ => best.column("row")?.clone(),
    };
    let mut rows: Vec<IdxSize> = places.idx()?.iter().flatten().collect();
    rows.sort_unstable();
    Ok(Selection { frame: view.frame, rows })
}

#[cfg(test)]
#[path = "select_tests.rs"]
mod tests;
