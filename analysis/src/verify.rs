//! Whether a saved table still comes out: the JSON of [`crate::render::json`] is read back and compared, cell by
//! cell and fold by fold, with a table made anew. Owns what counts as a change; makes no table itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use togl_sweeps::spec::{Metric, TableSpec};

use crate::error::{Error, Result};
use crate::table::{Cell, Table};

/// Means and deviations closer than this (in percentage points) are the same.
const SAME: f64 = 1e-9;

/// A table that was saved as JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedTable {
    /// The settings that label rows, in order.
    pub row_settings: Vec<String>,
    /// The setting that makes columns.
    pub column_setting: String,
    /// What was measured.
    pub metric: Metric,
    cells: BTreeMap<Vec<String>, SavedNumbers>,
}

/// What a saved cell says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SavedNumbers {
    /// Mean in percent.
    pub mean: Option<f64>,
    /// Sample standard deviation in percent.
    pub std: Option<f64>,
    /// How many folds had finished.
    pub n: u64,
    /// The folds, as `TRIAL/split/seed`.
    #[serde(skip)]
    pub folds: BTreeSet<String>,
}

/// A cell that is not what it was.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangedCell {
    /// The labels of its row, then that of its column.
    pub cell: Vec<String>,
    /// What was saved; none if the cell was not there.
    pub old: Option<SavedNumbers>,
    /// What comes out now; none if it no longer does.
    pub new: Option<SavedNumbers>,
    /// Folds that are behind it now and were not before.
    pub added: Vec<String>,
    /// Folds that were behind it and no longer are.
    pub removed: Vec<String>,
}

/// What came of comparing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verification {
    /// Cells that are as they were.
    pub same: usize,
    /// Cells that are not.
    pub changes: Vec<ChangedCell>,
}

/// One JSON object with its keys in the order of the file, which says what labels rows and what columns.
struct Entries(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Entries;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a cell of a table")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Entries, M::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Entries {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The settings before the numbers.
    fn settings(&self) -> impl Iterator<Item = &(String, Value)> {
        self.0.iter().take_while(|(key, _)| !matches!(key.as_str(), "printed_as" | "mean"))
    }

    fn numbers(&self) -> Option<SavedNumbers> {
        let folds = self.get("folds")?.as_array()?.iter();
        Some(SavedNumbers {
            mean: self.get("mean")?.as_f64(),
            std: self.get("std")?.as_f64(),
            n: self.get("n")?.as_u64()?,
            folds: folds.filter_map(|fold| fold.as_str().map(str::to_owned)).collect(),
        })
    }
}

impl SavedTable {
    /// Reads what [`crate::render::json`] wrote; `origin` names the file in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        let refuse = |reason: String| {
            Error::Unfit(format!("{origin} is not a saved table: {reason}; save one with `--format json`"))
        };
        let mut cells: Vec<Entries> =
            serde_json::from_str(text).map_err(|error| refuse(error.to_string()))?;
        // Cited numbers come from print; there is nothing to make anew.
        cells.retain(|cell| cell.get("cited").is_none());
        let first = cells.first().ok_or_else(|| refuse("it has no cells".to_owned()))?;
        let mut settings: Vec<String> = first.settings().map(|(name, _)| name.clone()).collect();
        let column_setting = settings.pop().ok_or_else(|| refuse("its cells have no labels".to_owned()))?;
        let metric = metric_named(first.get("metric")).map_err(&refuse)?;
        let mut saved = Self { row_settings: settings, column_setting, metric, cells: BTreeMap::new() };
        for (at, cell) in cells.iter().enumerate() {
            let labels: Vec<String> = cell.settings().map(|(_, value)| text_of(value)).collect();
            let numbers = cell.numbers().filter(|_| labels.len() == saved.row_settings.len() + 1);
            let numbers = numbers.ok_or_else(|| refuse(format!("cell {} lacks a value", at + 1)))?;
            if saved.cells.insert(labels.clone(), numbers).is_some() {
                return Err(refuse(format!("cell ({}) is there twice", labels.join(", "))));
            }
        }
        Ok(saved)
    }

    /// The table block that the saved table was made by, for making it anew.
    pub fn spec(&self) -> TableSpec {
        TableSpec {
            rows: self.row_settings.clone(),
            columns: self.column_setting.clone(),
            metric: self.metric,
            ..TableSpec::default()
        }
    }

    /// Compares with a table made anew. Labels identify cells; their order does not matter.
    pub fn verify(&self, table: &Table) -> Verification {
        let now = current(table);
        let mut verification = Verification { same: 0, changes: Vec::new() };
        let names: BTreeSet<&Vec<String>> = self.cells.keys().chain(now.keys()).collect();
        for name in names {
            match change(name, self.cells.get(name), now.get(name)) {
                None => verification.same += 1,
                Some(change) => verification.changes.push(change),
            }
        }
        verification
    }
}

fn metric_named(value: Option<&Value>) -> Result<Metric, String> {
    let Some(name) = value.map(text_of) else { return Ok(Metric::TestAccuracy) };
    Metric::from_word(&name).ok_or_else(|| format!("`{name}` is no metric"))
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The cells that the JSON of this table would have.
fn current(table: &Table) -> BTreeMap<Vec<String>, SavedNumbers> {
    let cells = table.cells().filter(|(_, _, cell)| cell.is_there() && !cell.cited);
    let settings = table.settings();
    cells
        .map(|(row, column, cell)| {
            let labels = table.labels(row, column).into_iter().zip(&settings);
            // As JSON spells them, so that 1e-5 and 0.00001 are the same learning rate.
            let labels = labels.map(|(label, setting)| text_of(&crate::render::typed(setting, label)));
            (labels.collect(), numbers_of(cell))
        })
        .collect()
}

fn numbers_of(cell: &Cell) -> SavedNumbers {
    let folds = cell.folds.iter().map(ToString::to_string).collect();
    SavedNumbers { mean: cell.mean, std: cell.std, n: cell.n as u64, folds }
}

fn change(name: &[String], old: Option<&SavedNumbers>, new: Option<&SavedNumbers>) -> Option<ChangedCell> {
    if let (Some(old), Some(new)) = (old, new)
        && close(old.mean, new.mean)
        && close(old.std, new.std)
        && old.n == new.n
        && old.folds == new.folds
    {
        return None;
    }
    let none = BTreeSet::new();
    let (before, after) = (old.map_or(&none, |old| &old.folds), new.map_or(&none, |new| &new.folds));
    Some(ChangedCell {
        cell: name.to_vec(),
        old: old.cloned(),
        new: new.cloned(),
        added: after.difference(before).cloned().collect(),
        removed: before.difference(after).cloned().collect(),
    })
}

fn close(old: Option<f64>, new: Option<f64>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => (old - new).abs() <= SAME,
        (old, new) => old == new,
    }
}

impl Verification {
    /// Whether nothing changed.
    pub fn holds(&self) -> bool {
        self.changes.is_empty()
    }

    /// The outcome as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

impl fmt::Display for Verification {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.same + self.changes.len();
        writeln!(formatter, "{} of {total} cells are as saved", self.same)?;
        self.changes.iter().try_for_each(|change| writeln!(formatter, "{change}"))
    }
}

impl fmt::Display for ChangedCell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |numbers: &Option<SavedNumbers>| {
            let text = |value: Option<f64>| value.map_or_else(|| "n/a".to_owned(), |value| value.to_string());
            let words = |numbers: &SavedNumbers| {
                format!("{} ± {} (n={})", text(numbers.mean), text(numbers.std), numbers.n)
            };
            numbers.as_ref().map_or_else(|| "not there".to_owned(), words)
        };
        write!(formatter, "({}): {} → {}", self.cell.join(", "), words(&self.old), words(&self.new))?;
        match (self.added.len(), self.removed.len()) {
            (0, 0) if self.old.is_some() && self.new.is_some() => {
                formatter.write_str("; same folds, other values")
            }
            (0, 0) => Ok(()),
            (added, removed) => write!(formatter, "; folds added: {added}, removed: {removed}"),
        }
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
