//! Runs exported from Weights & Biases as CSV, one run a line, as frames. Owns which foreign column is which of
//! ours; the default mapping understands the logs of the published TOGL experiments. Rows are ordered by file
//! and line. Chooses and averages nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use polars::prelude::{Column, DataFrame, DataType, PlSmallStr};
use polars_io::prelude::*;
use serde_json::{Map, Value, json};
use togl_sweeps::{FoldKey, TrialConfig};

use crate::columns::{Identity, column, identity_columns};
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::schema::{self, Kind, SCHEMA_VERSION, SETTINGS};

/// Columns without which a file is not an export of runs.
const NEEDED: [&str; 6] = ["dataset", "model", "depth", "seed", "test_accuracy", "last_validation_accuracy"];

/// Our names of what the published logs call differently; all other settings have the same name in both.
/// The logged `val_acc` is the last epoch's, and `test_acc` is that of the best checkpoint.
const RENAMED: [(&str, &str); 11] = [
    ("lr_min", "min_lr"),
    ("static", "fake"),
    ("num_heads", "num_heads_gnn"),
    ("split", "fold"),
    ("seed", "training_seed"),
    ("test_accuracy", "test_acc"),
    ("test_loss", "test_loss"),
    ("validation_accuracy", "best_val_acc"),
    ("validation_loss", "best_val_loss"),
    ("last_validation_accuracy", "val_acc"),
    ("last_validation_loss", "val_loss"),
];

/// Heads of every logged attention network; the logs have no column for them.
const LOGGED_GAT_HEADS: u32 = 8;

/// Which column of the export holds which of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    theirs: BTreeMap<String, String>,
}

impl Default for Mapping {
    fn default() -> Self {
        let same = SETTINGS.iter().map(|spec| (spec.name, spec.name)).chain([("seconds", "Runtime")]);
        let theirs = same.chain(RENAMED).map(|(ours, theirs)| (ours.to_owned(), theirs.to_owned()));
        Self { theirs: theirs.collect() }
    }
}

impl Mapping {
    /// The same mapping, except that our column `ours` is read from `theirs`.
    #[must_use]
    pub fn with(mut self, ours: &str, theirs: &str) -> Self {
        self.theirs.insert(ours.to_owned(), theirs.to_owned());
        self
    }

    fn of<'a>(&'a self, ours: &'a str) -> &'a str {
        self.theirs.get(ours).map_or(ours, String::as_str)
    }
}

/// What an import gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The finished runs.
    pub frame: FoldFrame,
    /// Runs that were left out, each with its file, line and reason.
    pub skipped: Vec<String>,
}

/// Reads exports, in the order given. A run without a test value has not finished and is left out.
pub fn read(files: &[PathBuf], mapping: &Mapping) -> Result<Imported> {
    let mut frames = Vec::new();
    let mut skipped = Vec::new();
    for path in files {
        let export = Export::open(path, mapping)?;
        let (runs, left_out) = export.runs()?;
        frames.push(FoldFrame::from_data(&export.frame(&runs)?, &format!("`{}`", path.display()))?);
        skipped.extend(left_out);
    }
    let frame = FoldFrame::concat(frames)?;
    if frame.is_empty() {
        return Err(Error::Empty { origin: "the import".to_owned() });
    }
    Ok(Imported { frame, skipped })
}

/// One finished run.
struct Run {
    /// Its place in the file, from 0.
    row: usize,
    fold: FoldKey,
    config: TrialConfig,
}

/// One file, all fields as text.
struct Export<'a> {
    path: &'a Path,
    mapping: &'a Mapping,
    data: DataFrame,
}

impl<'a> Export<'a> {
    fn open(path: &'a Path, mapping: &'a Mapping) -> Result<Self> {
        let file = File::open(path).map_err(|source| Error::io("cannot read", path, source))?;
        // Inferring from no rows makes every column text: the schema's kinds decide, not the values.
        let options = CsvReadOptions::default().with_infer_schema_length(Some(0));
        let data = options
            .into_reader_with_file_handle(file)
            .finish()
            .map_err(|error| Error::bad_file(path, error.to_string().lines().next().unwrap_or_default()))?;
        let missing: Vec<String> = NEEDED
            .iter()
            .map(|ours| mapping.of(ours).to_owned())
            .filter(|name| data.column(name).is_err())
            .collect();
        if !missing.is_empty() {
            return Err(Error::MissingColumns { origin: format!("`{}`", path.display()), columns: missing });
        }
        Ok(Self { path, mapping, data })
    }

    fn runs(&self) -> Result<(Vec<Run>, Vec<String>)> {
        let (mut runs, mut skipped) = (Vec::new(), Vec::new());
        for row in 0..self.data.height() {
            if self.number(row, "test_accuracy")?.is_none() {
                skipped.push(format!("{}: no test value", self.origin(row)));
                continue;
            }
            let config = self.config(row)?;
            let split = self.count(row, "split")?.unwrap_or_default();
            let split = u32::try_from(split).map_err(|_| self.refuse(row, "split", "too large"))?;
            let seed = self.count(row, "seed")?.unwrap_or_default();
            runs.push(Run { row, fold: FoldKey { trial: config.id(), split, seed }, config });
        }
        Ok((runs, skipped))
    }

    fn config(&self, row: usize) -> Result<TrialConfig> {
        let mut settings = Map::new();
        for spec in &SETTINGS {
            if !matches!(spec.name, "model" | "features" | "togl" | "togl_position")
                && let Some(value) = self.value(row, spec.name, spec.kind)?
            {
                settings.insert(spec.name.to_owned(), value);
            }
        }
        let is = |column: &str| self.text(row, column) == Some("true");
        let backbones = [("GatedGCN", "gatedgcn"), ("GAT", "gat"), ("GIN", "gin")];
        let backbone = backbones.iter().find(|(flag, _)| is(flag)).map_or("gcn", |(_, model)| model);
        settings.insert("model".to_owned(), json!(backbone));
        if backbone == "gat" && !settings.contains_key("num_heads") {
            settings.insert("num_heads".to_owned(), json!(LOGGED_GAT_HEADS));
        }
        let togl = self.text(row, self.mapping.of("model")).is_some_and(|model| model.ends_with("TopoGNN"));
        settings.insert("togl".to_owned(), json!(togl));
        if togl {
            settings.insert("togl_position".to_owned(), json!(self.position(row)?));
        }
        let features =
            if self.text(row, "use_node_attributes") == Some("false") { "random" } else { "original" };
        settings.insert("features".to_owned(), json!(features));
        settings.insert("last_epoch".to_owned(), json!("one-batch"));
        TrialConfig::from_settings(&settings)
            .map_err(|error| Error::bad_file(self.path, format!("line {}: {error}", line_of(row))))
    }

    /// Newer logs say after how many layers; older ones only whether early (after the first) or late (before
    /// the last).
    fn position(&self, row: usize) -> Result<u64> {
        let depth = self.count(row, "depth")?.unwrap_or_default();
        let written = self.count(row, "togl_position")?;
        let late = self.text(row, "early_topo") == Some("false");
        Ok(written.unwrap_or(if late { depth.saturating_sub(1) } else { 1 }).min(depth))
    }

    /// A field that is there and not empty.
    fn text(&self, row: usize, theirs: &str) -> Option<&str> {
        let column = self.data.column(theirs).ok()?;
        column.str().ok()?.get(row).filter(|text| !text.is_empty())
    }

    fn value(&self, row: usize, ours: &str, kind: Kind) -> Result<Option<Value>> {
        let Some(text) = self.text(row, self.mapping.of(ours)) else { return Ok(None) };
        let wrong = |_| self.refuse(row, ours, text);
        Ok(Some(match kind {
            Kind::Text => json!(text),
            Kind::Count => json!(text.parse::<u64>().map_err(|_| self.refuse(row, ours, text))?),
            Kind::Number => json!(text.parse::<f64>().map_err(|_| self.refuse(row, ours, text))?),
            Kind::Flag => json!(text.to_ascii_lowercase().parse::<bool>().map_err(wrong)?),
        }))
    }

    fn count(&self, row: usize, ours: &str) -> Result<Option<u64>> {
        Ok(self.value(row, ours, Kind::Count)?.and_then(|value| value.as_u64()))
    }

    fn number(&self, row: usize, ours: &str) -> Result<Option<f64>> {
        Ok(self.value(row, ours, Kind::Number)?.and_then(|value| value.as_f64()))
    }

    fn refuse(&self, row: usize, ours: &str, text: &str) -> Error {
        let theirs = self.mapping.of(ours);
        Error::bad_file(self.path, format!("line {}: `{theirs}` is `{text}`, which cannot be", line_of(row)))
    }

    fn origin(&self, row: usize) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        format!("{name}:{}", line_of(row))
    }

    /// The runs in the columns of the schema, and after them what the export says beyond it.
    fn frame(&self, runs: &[Run]) -> Result<DataFrame> {
        let identities: Vec<Identity<'_>> = runs
            .iter()
            .map(|run| Identity { position: run.row as u64, fold: run.fold, config: &run.config })
            .collect();
        let mut columns = identity_columns(&identities);
        for spec in schema::METRICS.iter().chain(&schema::PROVENANCE) {
            columns.push(match spec.name {
                "schema_version" => column(spec.name, runs, |_| SCHEMA_VERSION),
                "origin" => column(spec.name, runs, |run| self.origin(run.row)),
                name if self.mapping.theirs.contains_key(name) => self.numbers(name, runs)?,
                name => Column::full_null(name.into(), runs.len(), &spec.kind.data_type()),
            });
        }
        columns.extend(self.unknown(runs));
        Ok(DataFrame::new(runs.len(), columns)?)
    }

    fn numbers(&self, ours: &str, runs: &[Run]) -> Result<Column> {
        let values: Result<Vec<Option<f64>>> = runs.iter().map(|run| self.number(run.row, ours)).collect();
        let kind = schema::columns()
            .find(|spec| spec.name == ours)
            .map_or(DataType::Float64, |s| s.kind.data_type());
        Ok(Column::new(ours.into(), values?).strict_cast(&kind)?)
    }

    /// Columns that nothing was read from and that say something, as text under `wandb_NAME`.
    fn unknown(&self, runs: &[Run]) -> Vec<Column> {
        let used = |name: &str| self.mapping.theirs.values().any(|theirs| theirs == name);
        let names = self.data.get_column_names().into_iter().filter(|name| !used(name));
        let kept = names.map(|name| {
            let values: Vec<Option<&str>> = runs.iter().map(|run| self.text(run.row, name)).collect();
            Column::new(PlSmallStr::from_string(format!("wandb_{name}")), values)
        });
        kept.filter(|column| column.null_count() < column.len()).collect()
    }
}

/// The line of a run: the header is line 1.
fn line_of(row: usize) -> usize {
    row + 2
}

#[cfg(test)]
#[path = "wandb_tests.rs"]
mod tests;
