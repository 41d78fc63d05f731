//! The runs of one export: what each line says, under our names. Owns how values are spelt in exports and that a filled
//! field is understood or refused, never guessed. Which network a run was is in [`super::network`].

use polars::prelude::{Column, DataFrame, PlSmallStr};
use serde_json::{Map, Value, json};
use togl_sweeps::{FoldKey, TrialConfig};

use super::export::ExportFile;
use super::mapping::{Mapping, NEEDED};
use super::wandb::TRIAL;
use crate::columns::{FoldIdentity, column, declared_columns, identity_columns, is_among};
use crate::error::{Error, Result};
use crate::schema::{self, ColumnKind, ColumnSpec, SCHEMA_VERSION, SETTINGS};
use crate::spreadsheet;

/// One finished run.
pub struct ImportedRun {
    /// Its place in the file, from 0.
    pub row: usize,
    pub fold: FoldKey,
    pub config: TrialConfig,
}

/// One file and how it is to be read.
pub struct RunReader<'a> {
    pub export: ExportFile<'a>,
    pub mapping: &'a Mapping,
}

impl RunReader<'_> {
    pub(super) fn runs(&self) -> Result<(Vec<ImportedRun>, Vec<String>)> {
        let (mut runs, mut skipped) = (Vec::new(), Vec::new());
        for row in 0..self.export.len() {
            if let Some(reason) = self.left_out(row)? {
                skipped.push(format!("{}: {reason}", self.export.origin(row)));
                continue;
            }
            self.refuse_unsaid(row)?;
            let config = self.config(row)?;
            let split = self.count(row, "split")?.unwrap_or_default();
            let too_large = |_| self.refuse(row, "split", &split.to_string(), "a whole number below 2^32");
            let split = u32::try_from(split).map_err(too_large)?;
            let seed = self.seed(row)?;
            runs.push(ImportedRun { row, fold: FoldKey { trial: config.id(), split, seed }, config });
        }
        Ok((runs, skipped))
    }

    /// A run must say what it is: where a needed column is empty, a default would be a guess.
    fn refuse_unsaid(&self, row: usize) -> Result<()> {
        if self.export.text(row, TRIAL).is_some() {
            return Ok(());
        }
        let mut needed = NEEDED.iter().map(|ours| self.mapping.of(ours));
        match needed.find(|theirs| self.export.text(row, theirs).is_none()) {
            None => Ok(()),
            Some(theirs) => {
                let reason = format!("`{theirs}` is empty, but needed to know what was trained");
                Err(self.export.refuse(row, &reason))
            }
        }
    }

    /// Why a run is left out, if it is.
    fn left_out(&self, row: usize) -> Result<Option<String>> {
        for (column, values) in self.mapping.conditions() {
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
        other.map_or(Ok(0), |text| {
            whole(text).ok_or_else(|| self.refuse(row, "seed", text, wanted(ColumnKind::Count)))
        })
    }

    fn config(&self, row: usize) -> Result<TrialConfig> {
        if let Some(text) = self.export.text(row, TRIAL) {
            let wrong = |error| self.export.refuse(row, &format!("`{TRIAL}` is not understood: {error}"));
            return TrialConfig::from_canonical(text).map_err(wrong);
        }
        let mut settings = Map::new();
        for spec in SETTINGS.iter().filter(|spec| self.mapping.has(spec.name)) {
            if !matches!(spec.name, "model" | "togl_position")
                && let Some(value) = self.value(row, spec.name, spec.kind)?
            {
                settings.insert(spec.name.to_owned(), value);
            }
        }
        self.network(row, &mut settings)?;
        TrialConfig::from_settings(&settings).map_err(|error| self.export.refuse(row, &error.to_string()))
    }

    fn value(&self, row: usize, ours: &str, kind: ColumnKind) -> Result<Option<Value>> {
        let Some(text) = self.export.text(row, self.mapping.of(ours)) else { return Ok(None) };
        let wrong = || self.refuse(row, ours, text, wanted(kind));
        // The loss of a run that diverged is no number; what the run is and how well it did is said elsewhere.
        if ours.ends_with("_loss") && text.parse::<f64>().is_ok_and(f64::is_infinite) {
            return Ok(None);
        }
        Ok(Some(match kind {
            ColumnKind::Text => json!(text),
            ColumnKind::Count => json!(whole(text).ok_or_else(wrong)?),
            ColumnKind::Number => json!(finite(text).ok_or_else(wrong)?),
            ColumnKind::Flag => json!(yes_or_no(text).ok_or_else(wrong)?),
        }))
    }

    /// A column of the export that says yes or no, under its own name.
    pub(super) fn flag(&self, row: usize, theirs: &str) -> Result<Option<bool>> {
        let Some(text) = self.export.text(row, theirs) else { return Ok(None) };
        yes_or_no(text).map(Some).ok_or_else(|| self.refuse(row, theirs, text, wanted(ColumnKind::Flag)))
    }

    pub(super) fn count(&self, row: usize, ours: &str) -> Result<Option<u64>> {
        Ok(self.value(row, ours, ColumnKind::Count)?.and_then(|value| value.as_u64()))
    }

    fn number(&self, row: usize, ours: &str) -> Result<Option<f64>> {
        Ok(self.value(row, ours, ColumnKind::Number)?.and_then(|value| value.as_f64()))
    }

    /// A value that is not understood, and what would be.
    pub(super) fn refuse(&self, row: usize, ours: &str, text: &str, wanted: &str) -> Error {
        let theirs = self.mapping.of(ours);
        self.export
            .refuse(row, &format!("`{theirs}` is `{text}`, which is not understood; it must be {wanted}"))
    }

    /// The runs in the columns of the schema, and after them what the export says beyond it.
    pub(super) fn frame(&self, runs: &[ImportedRun]) -> Result<DataFrame> {
        let identities: Vec<FoldIdentity<'_>> = runs
            .iter()
            .map(|run| FoldIdentity { position: run.row as u64, fold: run.fold, config: &run.config })
            .collect();
        let mut columns = identity_columns(&identities);
        for spec in schema::METRICS.iter().chain(&schema::PROVENANCE) {
            columns.push(match spec.name {
                "schema_version" => column(spec.name, runs, |_| SCHEMA_VERSION),
                "origin" => column(spec.name, runs, |run| self.export.origin(run.row)),
                name if self.mapping.has(name) => self.measured(spec, runs)?,
                _ => spec.unknown(runs.len()),
            });
        }
        columns.extend(declared_columns(&identities));
        columns.extend(self.unknown(runs));
        Ok(DataFrame::new(runs.len(), columns)?)
    }

    fn measured(&self, spec: &ColumnSpec, runs: &[ImportedRun]) -> Result<Column> {
        let name = PlSmallStr::from_static(spec.name);
        let theirs = self.mapping.of(spec.name);
        Ok(match spec.kind {
            ColumnKind::Text => {
                let text = |run: &ImportedRun| self.export.text(run.row, theirs).map(spreadsheet::read_back);
                Column::new(name, runs.iter().map(text).collect::<Vec<_>>())
            }
            ColumnKind::Flag => {
                let flags = runs.iter().map(|run| self.flag(run.row, theirs));
                Column::new(name, flags.collect::<Result<Vec<_>>>()?)
            }
            ColumnKind::Count => {
                let counts = runs.iter().map(|run| self.count(run.row, spec.name));
                Column::new(name, counts.collect::<Result<Vec<_>>>()?)
            }
            ColumnKind::Number => {
                let shares = runs.iter().map(|run| self.share(run.row, spec.name));
                Column::new(name, shares.collect::<Result<Vec<_>>>()?)
            }
        })
    }

    /// A metric; an accuracy must be a share, unless its run says that it is a score of another kind.
    fn share(&self, row: usize, ours: &str) -> Result<Option<f64>> {
        let number = self.number(row, ours)?;
        let is_share = || !self.mapping.has("score") || self.export.text(row, "score").is_none();
        match number {
            Some(value) if ours.ends_with("_accuracy") && !(0.0..=1.0).contains(&value) && is_share() => {
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
    fn unknown(&self, runs: &[ImportedRun]) -> Vec<Column> {
        let declared = |name: &str| {
            let mut programs = runs.iter().filter_map(|run| run.config.program.as_ref());
            name == TRIAL || programs.any(|program| program.settings.contains_key(name))
        };
        let names = self.export.columns().filter(|name| !self.mapping.is_read(name) && !declared(name));
        let kept = names.map(|name| {
            let values: Vec<Option<&str>> = runs.iter().map(|run| self.export.text(run.row, name)).collect();
            Column::new(PlSmallStr::from_string(format!("wandb_{name}")), values)
        });
        kept.filter(|column| column.null_count() < column.len()).collect()
    }
}

/// A whole number; programs that know only floating-point numbers write 4 as 4.0.
fn whole(text: &str) -> Option<u64> {
    let by_float = || text.parse::<f64>().ok().filter(|number| number.fract() == 0.0 && *number >= 0.0);
    text.parse().ok().or_else(|| by_float().filter(|number| *number < 9e15).map(|number| number as u64))
}

fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Yes or no, as programs spell it.
fn yes_or_no(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" | "1.0" => Some(true),
        "false" | "no" | "0" | "0.0" => Some(false),
        _ => None,
    }
}

/// What a column of this kind may hold.
fn wanted(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Text => "text",
        ColumnKind::Count => "a whole number from 0",
        ColumnKind::Number => "a number",
        ColumnKind::Flag => "true, false, yes, no, 1 or 0",
    }
}
