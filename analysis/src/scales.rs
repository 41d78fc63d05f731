//! What the values of folds are, by the columns `score`, `score_goal`, `score_low` and `score_high` of a frame: the one scale of a
//! table, or what is the same for each row. Owns the refusal of several in one table, whose mean would be of nothing; compares
//! no values.

use polars::prelude::{DataFrame, Float64Chunked, StringChunked};
use togl_sweeps::spec::Metric;
use togl_sweeps::{Goal, Scale};

use crate::columns::is_constant;
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::plan::Plan;

/// The columns of a frame, row by row.
pub struct Scales<'a> {
    name: &'a StringChunked,
    goal: &'a StringChunked,
    low: &'a Float64Chunked,
    high: &'a Float64Chunked,
    all_shares: bool,
}

impl<'a> Scales<'a> {
    /// Those of a frame in the form of the schema.
    pub fn of(data: &'a DataFrame) -> Result<Self> {
        let name = data.column("score")?;
        let names = name.str()?;
        let all_shares = is_constant(name)? && names.iter().next().flatten().is_none_or(str::is_empty);
        let goal = data.column("score_goal")?.str()?;
        let (low, high) = (data.column("score_low")?.f64()?, data.column("score_high")?.f64()?);
        Ok(Self { name: names, goal, low, high, all_shares })
    }

    /// Whether no row says anything.
    pub fn all_shares(&self) -> bool {
        self.all_shares
    }

    /// What the values of a row are; why that cannot be, if it cannot.
    pub fn at(&self, row: usize) -> Result<Scale, String> {
        let name = self.name.get(row).unwrap_or_default();
        if name.is_empty() {
            return Ok(Scale::SHARE);
        }
        let word = self.goal.get(row).unwrap_or_default();
        let goal = Goal::from_word(word).ok_or_else(|| format!("its goal is `{word}`, not max or min"))?;
        let scale =
            Scale { goal, low: self.low.get(row), high: self.high.get(row), name: name.to_owned().into() };
        scale.check().map(|()| scale).map_err(|error| error.to_string())
    }

    /// Every row, with the scale only where it is another than that of the row before.
    fn changes(&self) -> impl Iterator<Item = usize> + '_ {
        let key =
            |row: usize| (self.name.get(row), self.goal.get(row), self.low.get(row), self.high.get(row));
        let rows = if self.all_shares { 0..self.name.len().min(1) } else { 0..self.name.len() };
        rows.filter(move |row| *row == 0 || key(*row) != key(*row - 1))
    }

    /// What each value is multiplied with so that higher is better; nothing where that is 1 for all.
    pub fn signs(&self) -> Option<Vec<f64>> {
        let of = |goal: Option<&str>| if goal == Some(Goal::Min.as_str()) { -1.0 } else { 1.0 };
        (!self.all_shares).then(|| self.goal.iter().map(of).collect())
    }
}

/// The scale of a metric in all rows of a frame.
pub fn of_frame(frame: &FoldFrame, metric: Metric) -> Result<Scale> {
    match metric {
        Metric::TestF1 | Metric::TestRocAuc => return Ok(Scale { name: "share".into(), ..Scale::SHARE }),
        Metric::TestAccuracy
        | Metric::ValidationAccuracy
        | Metric::LastValidationAccuracy
        | Metric::TrainAccuracy => {}
    }
    let scales = Scales::of(frame.data())?;
    let mut found: Vec<Scale> = Vec::new();
    for row in scales.changes() {
        let scale = scales.at(row).map_err(|reason| Error::bad_column("the folds", "score", reason))?;
        if !found.contains(&scale) {
            found.push(scale);
        }
    }
    match found.as_slice() {
        [] => Ok(Scale::SHARE),
        [only] => Ok(only.clone()),
        several => {
            let names: Vec<String> = several.iter().map(|scale| format!("`{scale}`")).collect();
            Err(Error::Unfit(format!(
                "these folds have values of several scores, {}, which have no mean; keep those of one with `--filter`, such \
                 as `--filter method=NAME`",
                names.join(" and ")
            )))
        }
    }
}

/// The scale of a table of these folds, or of the plan while there are none.
pub fn of_table(frame: &FoldFrame, plan: &Plan, metric: Metric) -> Result<Scale> {
    match plan.scale().filter(|_| frame.is_empty()) {
        Some(planned) if !matches!(metric, Metric::TestF1 | Metric::TestRocAuc) => Ok(planned.clone()),
        _ => of_frame(frame, metric),
    }
}

#[cfg(test)]
#[path = "scales_tests.rs"]
mod tests;
