//! Which folds stand behind one number of a table, and where each was trained. Owns how a cell is named by its
//! labels and what is told about a fold; computes nothing anew.

use std::collections::{BTreeMap, HashMap};

use polars::prelude::DataFrame;
use serde::Serialize;
use togl_sweeps::{FoldKey, nearest};

use crate::columns::{label, labels};
use crate::distinct::Distinct;
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::render::{aligned, head::value};
use crate::statistics::quartiles;
use crate::table::{Cell, Mark, Table};

/// One fold behind a number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainedFold {
    /// The trial's identity, 32 hexadecimal digits.
    pub trial: String,
    /// Which split of the data.
    pub split: u32,
    /// Which training seed.
    pub seed: u64,
    /// What it contributes, in percent and not rounded.
    pub value: f64,
    /// Which attempt at the fold it was, if known.
    pub attempt: Option<u64>,
    /// Version of the training program; empty if unknown, as all texts here.
    pub code_version: String,
    /// The commit it was built from.
    pub commit: String,
    /// Whether its tree had uncommitted changes, if known.
    pub dirty: Option<bool>,
    /// The worker that trained it.
    pub worker: String,
    /// The device kind and name.
    pub device: String,
    /// Digest of the data as loaded.
    pub data_digest: String,
    /// Digest of the split.
    pub split_digest: String,
    /// File and line of an imported row.
    pub origin: String,
    /// What was chosen, setting by setting, where the table made a choice.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub chosen: BTreeMap<String, String>,
}

/// A cell with everything behind it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellExplanation {
    /// The labels of its row.
    pub row: Vec<String>,
    /// The label of its column.
    pub column: String,
    /// Mean in percent.
    pub mean: Option<f64>,
    /// Sample standard deviation in percent.
    pub std: Option<f64>,
    /// Median in percent.
    pub median: Option<f64>,
    /// Interquartile range in percentage points.
    pub interquartile_range: Option<f64>,
    /// Folds that have finished and were averaged.
    pub n: usize,
    /// Folds that it is to have.
    pub planned: usize,
    /// What a reader must know, in words.
    pub warnings: Vec<String>,
    /// The folds that were averaged, in their defined order.
    pub folds: Vec<ExplainedFold>,
}

impl CellExplanation {
    /// Explains the cell in the row and column of these names. A row is named by its labels with commas between;
    /// labels may be left out as long as one row is meant. `frame` is the one that the table was made from.
    pub fn of(table: &Table, frame: &FoldFrame, row: &str, column: &str) -> Result<Self> {
        let row = &table.rows[find_row(table, row)?];
        let at = find_column(table, column)?;
        let cell = &row.cells[at];
        let quartiles = quartiles(&cell.values);
        Ok(Self {
            row: row.labels.clone(),
            column: table.columns[at].label.clone(),
            mean: cell.mean,
            std: cell.std,
            median: quartiles.map(|quartiles| quartiles.median),
            interquartile_range: quartiles.map(|quartiles| quartiles.range()),
            n: cell.n,
            planned: cell.planned,
            warnings: cell.marks.iter().map(|mark| warning(*mark, cell)).collect(),
            folds: explained(cell, &table.chosen, frame)?,
        })
    }

    /// The explanation as JSON.
    pub fn json(&self) -> String {
        // Texts and numbers always serialise.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// The explanation as aligned text.
    pub fn text(&self) -> String {
        let number =
            |value: Option<f64>| value.map_or_else(|| "n/a".to_owned(), |value| format!("{value:.4}"));
        let mut text = format!(
            "{} / {}: {} ± {} (n={}/{}), median {}, interquartile range {}\n",
            self.row.join(", "),
            self.column,
            number(self.mean),
            number(self.std),
            self.n,
            self.planned,
            number(self.median),
            number(self.interquartile_range),
        );
        self.warnings.iter().for_each(|warning| text.push_str(&format!("! {warning}\n")));
        if self.folds.is_empty() {
            return text + "no fold has finished\n";
        }
        let headers =
            ["trial", "split", "seed", "value", "commit", "worker", "device", "data", "origin", "chosen"];
        let chosen = self.folds.iter().any(|fold| !fold.chosen.is_empty());
        let shown = headers.len() - usize::from(!chosen);
        let rows: Vec<Vec<String>> = self.folds.iter().map(line).collect();
        text + "\n" + &aligned(&headers[..shown], &rows) + &self.versions()
    }

    /// What trained the folds: our version, or the interpreter and the packages of a program.
    fn versions(&self) -> String {
        let known =
            self.folds.iter().map(|fold| fold.code_version.as_str()).filter(|version| !version.is_empty());
        let counted = Distinct::grouped(known.map(|version| (version, ()))).into_iter();
        counted.map(|(version, folds)| format!("version: {version} ({} folds)\n", folds.len())).collect()
    }
}

fn line(fold: &ExplainedFold) -> Vec<String> {
    let dirty = if fold.dirty == Some(true) { "+changes" } else { "" };
    let known = |text: &str| if text.is_empty() { "?".to_owned() } else { text.to_owned() };
    vec![
        fold.trial.clone(),
        fold.split.to_string(),
        fold.seed.to_string(),
        format!("{:.4}", fold.value),
        format!("{}{dirty}", known(&fold.commit)),
        known(&fold.worker),
        known(&fold.device),
        known(&fold.data_digest),
        fold.origin.clone(),
        fold.chosen.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", "),
    ]
}

fn warning(mark: Mark, cell: &Cell) -> String {
    match mark {
        Mark::Stopped if cell.n < cell.planned => {
            format!("stopped by its race after {} of {} planned folds", cell.n, cell.planned)
        }
        Mark::Incomplete => format!("{} of {} planned folds have finished", cell.n, cell.planned),
        mixed => mixed.meaning().to_owned(),
    }
}

fn find_column(table: &Table, name: &str) -> Result<usize> {
    let named = |column: &crate::table::TableColumn| {
        column.printed_as.as_deref() == Some(name)
            || value(table, &table.column_setting, &column.label) == name
    };
    // What was trained goes before what a publication prints, where both exist.
    let exact = table.columns.iter().position(|column| column.label == name);
    exact.or_else(|| table.columns.iter().position(named)).ok_or_else(|| {
        let known = table.columns.iter().map(|column| column.label.as_str());
        no_single("column", name, &nearest::hint(name, known))
    })
}

fn no_single(what: &str, name: &str, hint: &str) -> Error {
    Error::Unfit(format!("no single {what} `{name}` in the table; {hint}"))
}

fn find_row(table: &Table, name: &str) -> Result<usize> {
    let wanted: Vec<&str> = name.split(',').map(str::trim).collect();
    let joined: Vec<String> = table.rows.iter().map(|row| row.labels.join(", ")).collect();
    let whole = |labels: &[String]| labels.iter().map(String::as_str).eq(wanted.iter().copied());
    if let Some(at) = table.rows.iter().position(|row| whole(&row.labels) || row.labels.join(",") == name) {
        return Ok(at);
    }
    let fits = |labels: &[String]| {
        let printed = table.row_settings.iter().zip(labels).map(|(name, label)| value(table, name, label));
        let printed: Vec<String> = printed.chain(labels.iter().cloned()).collect();
        wanted.iter().all(|wanted| printed.iter().any(|label| label == wanted))
    };
    let fitting: Vec<usize> = (0..table.rows.len()).filter(|at| fits(&table.rows[*at].labels)).collect();
    let refuse = |hint: String| no_single("row", name, &hint);
    match fitting.as_slice() {
        [at] => Ok(*at),
        [] if table.row_settings.is_empty() && name == "all" && table.rows.len() == 1 => Ok(0),
        [] => Err(refuse(nearest::hint(name, joined.iter().map(String::as_str)))),
        several => {
            let names: Vec<String> = several.iter().map(|at| format!("`{}`", joined[*at])).collect();
            Err(refuse(format!("{} rows fit: {}", several.len(), names.join("; "))))
        }
    }
}

fn explained(cell: &Cell, chosen: &[String], frame: &FoldFrame) -> Result<Vec<ExplainedFold>> {
    let behind = frame.only(&cell.folds)?;
    let places: HashMap<FoldKey, usize> = behind.keys()?.into_iter().zip(0..).collect();
    let folds = cell.folds.iter().zip(&cell.values);
    folds
        .map(|(key, value)| match places.get(key) {
            Some(row) => {
                let mut fold = fold(behind.data(), *row, key, *value)?;
                let values = labels(behind.data(), chosen, *row)?;
                fold.chosen = chosen.iter().cloned().zip(values).collect();
                Ok(fold)
            }
            None => Err(Error::Empty { origin: format!("the frame, for fold {key} of the table,") }),
        })
        .collect()
}

fn fold(data: &DataFrame, row: usize, key: &FoldKey, value: f64) -> Result<ExplainedFold> {
    let text = |name: &str| -> Result<String> { Ok(label(&data.column(name)?.get(row)?)) };
    Ok(ExplainedFold {
        trial: key.trial.to_string(),
        split: key.split,
        seed: key.seed,
        value,
        attempt: data.column("attempt")?.u64()?.get(row),
        code_version: text("code_version")?,
        commit: text("commit")?,
        dirty: data.column("dirty")?.bool()?.get(row),
        worker: text("worker")?,
        device: text("device")?,
        data_digest: text("data_digest")?,
        split_digest: text("split_digest")?,
        origin: text("origin")?,
        chosen: BTreeMap::new(),
    })
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
