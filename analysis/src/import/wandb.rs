//! Runs exported from Weights & Biases as CSV, one run a line, as frames. Owns which foreign column is which of
//! ours; the default mapping understands the logs of the published TOGL experiments. Columns may come in any order,
//! and those that are not needed may be missing. Rows are ordered by file and line. Chooses and averages nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use polars::prelude::{Column, DataFrame, DataType, PlSmallStr};
use serde_json::{Map, Value, json};
use togl_sweeps::{FoldKey, TrialConfig, nearest};

use super::export::Export;

use crate::columns::{Identity, column, identity_columns, is_among};
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::published::same_dataset;
use crate::schema::{self, Kind, SCHEMA_VERSION, SETTINGS};

/// Columns without which a file is not an export of runs.
const NEEDED: [&str; 4] = ["dataset", "model", "depth", "test_accuracy"];

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
    /// Those that were asked for by name: an export without them is refused.
    asked: BTreeSet<String>,
    /// Columns of the export, and the values that a run may have there.
    only: Vec<(String, Vec<String>)>,
}

impl Default for Mapping {
    fn default() -> Self {
        let same = SETTINGS.iter().map(|spec| (spec.name, spec.name)).chain([("seconds", "Runtime")]);
        let theirs = same.chain(RENAMED).map(|(ours, theirs)| (ours.to_owned(), theirs.to_owned()));
        Self { theirs: theirs.collect(), asked: BTreeSet::new(), only: Vec::new() }
    }
}

impl Mapping {
    /// The same mapping, except that our column `ours` is read from `theirs`. Refuses a column that we do not have.
    pub fn with(mut self, ours: &str, theirs: &str) -> Result<Self> {
        let Some(known) = self.theirs.get_mut(ours) else {
            return Err(Error::UnknownChoice {
                what: "our column of a mapping",
                name: ours.to_owned(),
                hint: nearest::hint(ours, self.theirs.keys().map(String::as_str)),
            });
        };
        theirs.clone_into(known);
        self.asked.insert(ours.to_owned());
        Ok(self)
    }

    /// The same mapping for runs that have one of these values in a column of the export, or say nothing there.
    pub fn only(mut self, theirs: &str, values: &[&str]) -> Self {
        self.only.push((theirs.to_owned(), values.iter().map(|value| (*value).to_owned()).collect()));
        self
    }

    fn of<'a>(&'a self, ours: &'a str) -> &'a str {
        self.theirs.get(ours).map_or(ours, String::as_str)
    }

    /// The columns of an export that must be there.
    fn needed(&self) -> impl Iterator<Item = &str> {
        NEEDED.iter().copied().chain(self.asked.iter().map(String::as_str)).map(|ours| self.of(ours))
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

/// Reads exports, in the order given. A run that did not finish or has no test value is left out and named.
pub fn read(files: &[PathBuf], mapping: &Mapping) -> Result<Imported> {
    let (mut exports, mut skipped) = (Vec::new(), Vec::new());
    for path in files {
        let source = Source { export: Export::open(path, mapping.needed())?, mapping };
        let (runs, left_out) = source.runs()?;
        skipped.extend(left_out);
        exports.push((source, runs));
    }
    refuse_repeated(&exports)?;
    let frames: Result<Vec<FoldFrame>> = exports
        .iter()
        .map(|(source, runs)| FoldFrame::from_data(&source.frame(runs)?, &source.export.name()))
        .collect();
    let frame = FoldFrame::concat(frames?)?;
    if frame.is_empty() {
        return Err(Error::Empty { origin: "the import".to_owned() });
    }
    Ok(Imported { frame, skipped })
}

/// The same network on the same split with the same seed twice: which run counts is not ours to say.
fn refuse_repeated(exports: &[(Source<'_>, Vec<Run>)]) -> Result<()> {
    let mut seen: HashMap<FoldKey, Vec<String>> = HashMap::new();
    let mut names: Vec<(FoldKey, String)> = Vec::new();
    for (source, run) in exports.iter().flat_map(|(source, runs)| runs.iter().map(move |run| (source, run))) {
        let places = seen.entry(run.fold).or_default();
        places.push(source.export.origin(run.row));
        if places.len() == 2 {
            let (method, dataset) = (run.config.method(), &run.config.dataset);
            let what = format!("{method} on {dataset}, split {}, seed {}", run.fold.split, run.fold.seed);
            names.push((run.fold, what));
        }
    }
    let named = names.iter().map(|(fold, what)| format!("{what} ({})", seen[fold].join(" and ")));
    let folds: Vec<String> = named.collect();
    if folds.is_empty() { Ok(()) } else { Err(Error::DuplicateFolds { folds }) }
}

/// One finished run.
struct Run {
    /// Its place in the file, from 0.
    row: usize,
    fold: FoldKey,
    config: TrialConfig,
}

/// One file and how it is to be read.
struct Source<'a> {
    export: Export<'a>,
    mapping: &'a Mapping,
}

impl Source<'_> {
    fn runs(&self) -> Result<(Vec<Run>, Vec<String>)> {
        let (mut runs, mut skipped) = (Vec::new(), Vec::new());
        for row in 0..self.export.len() {
            if let Some(reason) = self.left_out(row)? {
                skipped.push(format!("{}: {reason}", self.export.origin(row)));
                continue;
            }
            let config = self.config(row)?;
            let split = self.count(row, "split")?.unwrap_or_default();
            let split = u32::try_from(split).map_err(|_| self.refuse(row, "split", "too large"))?;
            let seed = self.seed(row)?;
            runs.push(Run { row, fold: FoldKey { trial: config.id(), split, seed }, config });
        }
        Ok((runs, skipped))
    }

    /// Why a run is left out, if it is.
    fn left_out(&self, row: usize) -> Result<Option<String>> {
        for (column, values) in &self.mapping.only {
            if let Some(text) = self.export.text(row, column).filter(|text| !is_among(text, values)) {
                return Ok(Some(format!("its {column} is {text}")));
            }
        }
        match self.export.text(row, "State") {
            Some(state) if !state.eq_ignore_ascii_case("finished") => {
                Ok(Some(format!("its state is {state}")))
            }
            _ => Ok(self.number(row, "test_accuracy")?.is_none().then(|| "no test value".to_owned())),
        }
    }

    /// The training seed; logs that have only one seed call it `seed`.
    fn seed(&self, row: usize) -> Result<u64> {
        if let Some(seed) = self.count(row, "seed")? {
            return Ok(seed);
        }
        let other = self.export.text(row, "seed").filter(|_| !self.export.has(self.mapping.of("seed")));
        other.map_or(Ok(0), |text| whole(text).ok_or_else(|| self.refuse(row, "seed", text)))
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
        let is = |column: &str, wanted: &str| {
            self.export.text(row, column).is_some_and(|text| text.eq_ignore_ascii_case(wanted))
        };
        let backbones = [("GatedGCN", "gatedgcn"), ("GAT", "gat"), ("GIN", "gin")];
        let backbone = backbones.iter().find(|(flag, _)| is(flag, "true")).map_or("gcn", |(_, model)| model);
        settings.insert("model".to_owned(), json!(backbone));
        if backbone == "gat" && !settings.contains_key("num_heads") {
            settings.insert("num_heads".to_owned(), json!(LOGGED_GAT_HEADS));
        }
        let togl =
            self.export.text(row, self.mapping.of("model")).is_some_and(|model| model.ends_with("TopoGNN"));
        settings.insert("togl".to_owned(), json!(togl));
        if togl {
            settings.insert("togl_position".to_owned(), json!(self.position(row)?));
        }
        let dataset = self.export.text(row, self.mapping.of("dataset")).unwrap_or_default();
        let features =
            if is("use_node_attributes", "false") { without_attributes(dataset) } else { "original" };
        settings.insert("features".to_owned(), json!(features));
        settings.insert("last_epoch".to_owned(), json!("one-batch"));
        TrialConfig::from_settings(&settings).map_err(|error| self.export.refuse(row, &error.to_string()))
    }

    /// Newer logs say after how many layers; older ones only whether early (after the first) or late (before
    /// the last).
    fn position(&self, row: usize) -> Result<u64> {
        let depth = self.count(row, "depth")?.unwrap_or_default();
        let written = self.count(row, "togl_position")?;
        let early = self.export.text(row, "early_topo");
        let late = early.is_some_and(|text| text.eq_ignore_ascii_case("false"));
        Ok(written.unwrap_or(if late { depth.saturating_sub(1) } else { 1 }).min(depth))
    }

    fn value(&self, row: usize, ours: &str, kind: Kind) -> Result<Option<Value>> {
        let Some(text) = self.export.text(row, self.mapping.of(ours)) else { return Ok(None) };
        let wrong = || self.refuse(row, ours, text);
        Ok(Some(match kind {
            Kind::Text => json!(text),
            Kind::Count => json!(whole(text).ok_or_else(wrong)?),
            Kind::Number => json!(text.parse::<f64>().map_err(|_| wrong())?),
            Kind::Flag => json!(text.to_ascii_lowercase().parse::<bool>().map_err(|_| wrong())?),
        }))
    }

    fn count(&self, row: usize, ours: &str) -> Result<Option<u64>> {
        Ok(self.value(row, ours, Kind::Count)?.and_then(|value| value.as_u64()))
    }

    fn number(&self, row: usize, ours: &str) -> Result<Option<f64>> {
        Ok(self.value(row, ours, Kind::Number)?.and_then(|value| value.as_f64()))
    }

    fn refuse(&self, row: usize, ours: &str, text: &str) -> Error {
        self.export.refuse(row, &format!("`{}` is `{text}`, which cannot be", self.mapping.of(ours)))
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
                "origin" => column(spec.name, runs, |run| self.export.origin(run.row)),
                name if self.mapping.theirs.contains_key(name) => self.numbers(name, runs)?,
                name => Column::full_null(name.into(), runs.len(), &spec.kind.data_type()),
            });
        }
        columns.extend(self.unknown(runs));
        Ok(DataFrame::new(runs.len(), columns)?)
    }

    fn numbers(&self, ours: &str, runs: &[Run]) -> Result<Column> {
        let values: Result<Vec<Option<f64>>> = runs.iter().map(|run| self.share(run.row, ours)).collect();
        let kind = schema::columns()
            .find(|spec| spec.name == ours)
            .map_or(DataType::Float64, |s| s.kind.data_type());
        Ok(Column::new(ours.into(), values?).strict_cast(&kind)?)
    }

    /// A metric; an accuracy must be a share.
    fn share(&self, row: usize, ours: &str) -> Result<Option<f64>> {
        let number = self.number(row, ours)?;
        match number {
            Some(value) if ours.ends_with("_accuracy") && !(0.0..=1.0).contains(&value) => {
                let theirs = self.mapping.of(ours);
                let reason = format!(
                    "`{theirs}` is {value}, which is no share from 0 to 1; divide percentages by 100 before importing"
                );
                Err(self.export.refuse(row, &reason))
            }
            number => Ok(number),
        }
    }

    /// Columns that nothing was read from and that say something, as text under `wandb_NAME`.
    fn unknown(&self, runs: &[Run]) -> Vec<Column> {
        let used = |name: &str| self.mapping.theirs.values().any(|theirs| theirs == name);
        let names = self.export.columns().filter(|name| !used(name));
        let kept = names.map(|name| {
            let values: Vec<Option<&str>> = runs.iter().map(|run| self.export.text(run.row, name)).collect();
            Column::new(PlSmallStr::from_string(format!("wandb_{name}")), values)
        });
        kept.filter(|column| column.null_count() < column.len()).collect()
    }
}

/// What a network saw whose run left out the attributes: fresh random features, but of images their colour, because
/// there the flag only leaves out the coordinates.
fn without_attributes(dataset: &str) -> &'static str {
    let is_image = ["MNIST", "CIFAR10"].iter().any(|image| same_dataset(image, dataset));
    if is_image { "colour" } else { "random" }
}

/// A whole number; programs that know only floating-point numbers write 4 as 4.0.
fn whole(text: &str) -> Option<u64> {
    let by_float = || text.parse::<f64>().ok().filter(|number| number.fract() == 0.0 && *number >= 0.0);
    text.parse().ok().or_else(|| by_float().filter(|number| *number < 9e15).map(|number| number as u64))
}

#[cfg(test)]
#[path = "wandb_tests.rs"]
mod tests;
