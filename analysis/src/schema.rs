//! The fixed, versioned schema of a frame of folds: which columns, of which kind, meaning what, in which order.
//! Owns the version number and the check that a frame from outside fits; reads no files and computes nothing.
//!
//! Rules for changing it: a new column or a new meaning raises [`SCHEMA_VERSION`], by itself for a setting; a column is never renamed or
//! given another kind within a version. Columns that are not listed here are kept, after those that are.

use polars::prelude::{Column, DataFrame, DataType, NamedFrom, Series};
use serde_json::Value;
use togl_sweeps::datasets::Scoring;
use togl_sweeps::{Scale, TrialConfig, nearest, settings};

use crate::columns::column as column_of;
use crate::error::{Error, NO_FOLDS, Result};
use crate::frame::FoldRow;
use crate::statistics::mean_f1;

/// The version that this program writes, and the newest it reads: that of the newest column.
pub const SCHEMA_VERSION: u64 = newest();

/// Columns that are no settings and that older versions did not have, with the first version that has them. Rows of
/// older versions have no value in them; of a later setting they have the default, which means "as before".
const LATER: [(&str, u64); 12] = [
    ("train_size", 2),
    ("validation_size", 2),
    ("test_size", 2),
    ("finished_at", 4),
    ("energy_joules", 4),
    ("test_f1", 5),
    ("test_roc_auc", 5),
    ("processor", 6),
    ("score", 7),
    ("score_goal", 7),
    ("score_low", 7),
    ("score_high", 7),
];

const fn newest() -> u64 {
    let (mut newest, mut at) = (LATER[LATER.len() - 1].1, 0);
    while at < settings::SETTINGS.len() {
        if settings::SETTINGS[at].since > newest {
            newest = settings::SETTINGS[at].since;
        }
        at += 1;
    }
    newest
}

/// What kind of value a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text; unknown is the empty text.
    Text,
    /// A whole number from 0.
    Count,
    /// A floating-point number.
    Number,
    /// Yes or no.
    Flag,
}

impl ColumnKind {
    /// The Polars type that stores it.
    pub fn data_type(self) -> DataType {
        match self {
            Self::Text => DataType::String,
            Self::Count => DataType::UInt64,
            Self::Number => DataType::Float64,
            Self::Flag => DataType::Boolean,
        }
    }
}

/// Whether a column may lack a value in some rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Every row has one.
    Always,
    /// Null where unknown, as in imported rows.
    IfKnown,
}

/// What a column says of a fold that was trained here.
#[derive(Debug, Clone, Copy)]
enum Recorded {
    Text(fn(&FoldRow) -> String),
    Count(fn(&FoldRow) -> Option<u64>),
    Number(fn(&FoldRow) -> Option<f64>),
    Flag(fn(&FoldRow) -> Option<bool>),
    /// It follows from which fold it is.
    Identity,
}

/// One column of the schema.
#[derive(Debug, Clone, Copy)]
pub struct ColumnSpec {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: ColumnKind,
    /// Whether it may be null.
    pub need: Need,
    /// What it means.
    pub about: &'static str,
    recorded: Recorded,
}

impl ColumnSpec {
    /// The column of these folds.
    pub(crate) fn of(&self, rows: &[FoldRow]) -> Column {
        match self.recorded {
            Recorded::Text(of) => column_of(self.name, rows, of),
            Recorded::Count(of) => column_of(self.name, rows, of),
            Recorded::Number(of) => column_of(self.name, rows, of),
            Recorded::Flag(of) => column_of(self.name, rows, of),
            Recorded::Identity => self.unknown(rows.len()),
        }
    }

    /// What it says of one fold that was trained here, if anything is known.
    pub fn value(&self, row: &FoldRow) -> Option<Value> {
        match self.recorded {
            Recorded::Text(of) => Some(of(row)).filter(|text| !text.is_empty()).map(Value::from),
            Recorded::Count(of) => of(row).map(Value::from),
            Recorded::Number(of) => of(row).map(Value::from),
            Recorded::Flag(of) => of(row).map(Value::from),
            Recorded::Identity => None,
        }
    }

    /// The column where nothing is known of any row.
    pub(crate) fn unknown(&self, rows: usize) -> Column {
        Column::full_null(self.name.into(), rows, &self.kind.data_type())
    }
}

/// A column of what identifies a fold.
const fn column(name: &'static str, kind: ColumnKind, about: &'static str) -> ColumnSpec {
    ColumnSpec { name, kind, need: Need::Always, about, recorded: Recorded::Identity }
}

/// Makes columns of rows `Kind "name": value of a fold, "meaning";`, which may have `Always` behind the name.
macro_rules! recorded {
    ($($kind:ident $name:literal $($need:ident)?: $value:expr, $about:literal;)+) => {
        [$(ColumnSpec {
            need: need!($($need)?),
            recorded: Recorded::$kind($value),
            ..column($name, ColumnKind::$kind, $about)
        }),+]
    };
}

macro_rules! need {
    () => {
        Need::IfKnown
    };
    ($need:ident) => {
        Need::$need
    };
}

const fn setting(of: &settings::Setting) -> ColumnSpec {
    let kind = match of.kind {
        // A position may be the word `last`.
        settings::ValueKind::Text | settings::ValueKind::Word(_) | settings::ValueKind::Position => {
            ColumnKind::Text
        }
        settings::ValueKind::Flag => ColumnKind::Flag,
        settings::ValueKind::Whole(..) => ColumnKind::Count,
        settings::ValueKind::Real(..) => ColumnKind::Number,
    };
    column(of.name, kind, "the trial's setting of this name")
}

/// Which fold a row is.
pub const KEYS: [ColumnSpec; 5] = [
    column("position", ColumnKind::Count, "place of the trial in its sweep, or of the row in its import"),
    column("trial", ColumnKind::Text, "identity of the trial: 32 hexadecimal digits"),
    column("split", ColumnKind::Count, "fold index of the data set, or split seed"),
    column("seed", ColumnKind::Count, "training seed"),
    column("method", ColumnKind::Text, "name of the network after what was built, such as GCN-4-TOGL-1"),
];

/// Every setting of a trial, under its own name.
pub const SETTINGS: [ColumnSpec; settings::SETTINGS.len()] = {
    let mut columns = [setting(&settings::SETTINGS[0]); settings::SETTINGS.len()];
    let mut at = 1;
    while at < columns.len() {
        columns[at] = setting(&settings::SETTINGS[at]);
        at += 1;
    }
    columns
};

/// What came out of training.
pub const METRICS: [ColumnSpec; 10] = recorded! {
    Number "test_accuracy": |row| Some(row.result.test.accuracy),
        "test metric of the best checkpoint, a share in 0..=1 unless `score` says otherwise";
    Number "test_loss": |row| Some(row.result.test.loss), "test loss of the best checkpoint";
    Number "validation_accuracy": |row| Some(row.result.validation.accuracy),
        "validation metric of the best checkpoint";
    Number "validation_loss": |row| Some(row.result.validation.loss), "validation loss of the best checkpoint";
    Number "train_accuracy": |row| Some(row.result.train.accuracy),
        "training metric of the best checkpoint's epoch";
    Number "train_loss": |row| Some(row.result.train.loss), "training loss of the best checkpoint's epoch";
    Number "last_validation_accuracy": |row| Some(row.result.last_validation.accuracy),
        "validation metric of the last epoch";
    Number "last_validation_loss": |row| Some(row.result.last_validation.loss),
        "validation loss of the last epoch";
    Number "test_f1": |row| mean_f1(&row.result.confusion),
        "mean over classes of the test F1 of the best checkpoint, from its confusion matrix";
    Number "test_roc_auc": |row| is_scored_by_roc_auc(row).then_some(row.result.test.accuracy),
        "test ROC-AUC of the best checkpoint, on data sets that are scored by it";
};

/// What a program computes is its own business.
fn is_scored_by_roc_auc(row: &FoldRow) -> bool {
    row.config.program.is_none() && Scoring::of(&row.config.dataset) == Scoring::RocAuc
}

fn own_score(row: &FoldRow) -> Option<&Scale> {
    row.result.score.as_ref()
}

/// How it was trained, where, and with what.
pub const PROVENANCE: [ColumnSpec; 28] = recorded! {
    Count "best_epoch": |row| Some(row.result.best_epoch.into()), "epoch of the best checkpoint, from 0";
    Count "epochs": |row| Some(row.result.epochs.into()), "epochs trained";
    Number "seconds": |row| Some(row.result.seconds), "seconds of training";
    Count "finished_at": |row| row.result.finished_at,
        "when training ended, in milliseconds since 1970 by the worker's clock";
    Number "energy_joules": |row| row.result.energy_joules, "energy of a device that trained this fold alone";
    Count "peak_memory": |row| Some(row.result.peak_memory), "largest resident memory of the trainer, in bytes";
    Count "parameters": |row| Some(row.result.parameters), "trainable parameters of the network";
    Count "train_size": |row| Some(row.result.part_sizes[0]), "examples in the training part";
    Count "validation_size": |row| Some(row.result.part_sizes[1]), "examples in the validation part";
    Count "test_size": |row| Some(row.result.part_sizes[2]), "examples in the test part";
    Text "data_digest": |row| row.result.data_digest.clone(), "digest of the data set as loaded";
    Text "split_digest": |row| row.result.split_digest.clone(), "digest of the split";
    Text "code_version": |row| row.result.provenance.code_version.clone(), "version of the training program";
    Text "commit": |row| row.result.provenance.commit.clone(), "commit it was built from";
    Flag "dirty": |row| Some(row.result.provenance.dirty), "whether its tree had uncommitted changes";
    Text "libtorch": |row| row.result.provenance.libtorch.clone(), "version of libtorch";
    Text "device": |row| row.result.provenance.device.clone(), "device kind and name";
    Text "processor": |row| row.result.provenance.processor.clone(),
        "what decides the last digits on the device: vector instructions, or a GPU's model; empty if not known";
    Text "host": |row| row.result.provenance.host.clone(), "host name of the worker";
    Text "worker": |row| row.worker.clone(), "the worker that trained it";
    Count "attempt": |row| Some(row.attempt.into()), "which attempt at the fold this is, from 1";
    Count "numerics": |row| Some(row.result.numerics.into()), "changes whenever any trained number may change";
    Text "score": |row| own_score(row).map(|score| score.name.to_string()).unwrap_or_default(),
        "what the metric is called where it is a score of a program's own; empty where values are shares";
    Text "score_goal": |row| own_score(row).map(|score| score.goal.to_string()).unwrap_or_default(),
        "which values of that score are better: `max` or `min`";
    Number "score_low": |row| own_score(row)?.low, "the lowest value of that score there can be, if there is one";
    Number "score_high": |row| own_score(row)?.high, "the highest value of that score there can be, if there is one";
    Count "schema_version" Always: |_| Some(SCHEMA_VERSION), "version of this schema";
    Text "origin": |_| String::new(), "file and line of an imported row, else empty";
};

/// All columns, in the order in which files have them.
pub fn columns() -> impl Iterator<Item = &'static ColumnSpec> {
    KEYS.iter().chain(&SETTINGS).chain(&METRICS).chain(&PROVENANCE)
}

/// Names that can make the rows or columns of a table: all settings, and `method`.
pub fn label_names() -> impl Iterator<Item = &'static str> + Clone {
    SETTINGS.iter().map(|spec| spec.name).chain(["method"])
}

/// Refuses a name that cannot make rows or columns of a table.
pub fn check_label(name: &str) -> Result<()> {
    if label_names().any(|known| known == name) {
        return Ok(());
    }
    Err(Error::Unfit(format!("no setting `{name}`; {}", nearest::hint(name, label_names()))))
}

/// Makes a frame from outside fit: version, columns, kinds and needed values checked, columns put in order.
/// Columns beyond the schema are kept at the end.
pub fn conform(data: &DataFrame, origin: &str) -> Result<DataFrame> {
    let data = &with_later_columns(data, check_version(data, origin)?)?;
    let missing: Vec<String> =
        columns().filter(|spec| data.column(spec.name).is_err()).map(|spec| spec.name.to_owned()).collect();
    if !missing.is_empty() {
        return Err(Error::MissingColumns { advice: NO_FOLDS, origin: origin.to_owned(), columns: missing });
    }
    let mut fitted = Vec::with_capacity(data.width());
    for spec in columns() {
        fitted.push(fit(data.column(spec.name)?, spec, origin)?);
    }
    let known = |name: &str| columns().any(|spec| spec.name == name);
    fitted.extend(data.columns().iter().filter(|column| !known(column.name())).cloned());
    Ok(DataFrame::new(data.height(), fitted)?)
}

/// An older frame with the columns that its version did not have yet, as a frame of this version.
fn with_later_columns(data: &DataFrame, version: u64) -> Result<DataFrame> {
    let mut data = data.clone();
    if version == SCHEMA_VERSION {
        return Ok(data);
    }
    let later = |name| LATER.iter().any(|(later, since)| *later == name && version < *since);
    for spec in METRICS.iter().chain(&PROVENANCE).filter(|spec| later(spec.name)) {
        if data.column(spec.name).is_err() {
            data.with_column(spec.unknown(data.height()))?;
        }
    }
    let defaults = TrialConfig::default();
    for (spec, of) in SETTINGS.iter().zip(settings::SETTINGS) {
        if version < of.since && data.column(spec.name).is_err() {
            let value = defaults.show(spec.name).unwrap_or_default();
            let texts = Series::new(spec.name.into(), vec![value; data.height()]);
            data.with_column(text_as(&texts, spec.kind)?)?;
        }
    }
    data.with_column(Column::new("schema_version".into(), vec![SCHEMA_VERSION; data.height()]))?;
    Ok(data)
}

/// Settings in words, as values of a kind.
fn text_as(texts: &Series, kind: ColumnKind) -> Result<Column> {
    if kind == ColumnKind::Flag {
        let flags: Vec<bool> = texts.str()?.iter().map(|text| text == Some("true")).collect();
        return Ok(Column::new(texts.name().clone(), flags));
    }
    Ok(texts.strict_cast(&kind.data_type())?.into())
}

fn check_version(data: &DataFrame, origin: &str) -> Result<u64> {
    let name = "schema_version";
    let missing = |_| Error::MissingColumns {
        advice: NO_FOLDS,
        origin: origin.to_owned(),
        columns: vec![name.to_owned()],
    };
    let column = data.column(name).map_err(missing)?;
    let versions = column.cast(&DataType::UInt64)?;
    match versions.u64()?.iter().flatten().max() {
        Some(found) if found > SCHEMA_VERSION => Err(Error::Unfit(format!(
            "{origin} has schema version {found}, this program knows up to {SCHEMA_VERSION}; read it with a newer \
                 program"
        ))),
        newest => Ok(newest.unwrap_or(SCHEMA_VERSION)),
    }
}

fn fit(column: &Column, spec: &ColumnSpec, origin: &str) -> Result<Column> {
    let refuse = |reason: String| Error::bad_column(origin, spec.name, reason);
    let fitted = column
        .strict_cast(&spec.kind.data_type())
        .map_err(|_| refuse(format!("has values that are not {}", plain_words(spec.kind))))?;
    if spec.kind == ColumnKind::Text && spec.need == Need::IfKnown {
        return Ok(without_null_text(&fitted)?);
    }
    if spec.need == Need::Always && fitted.null_count() > 0 {
        let row = fitted.is_null().iter().position(|null| null == Some(true)).unwrap_or_default();
        return Err(refuse(format!("has no value in row {}", row + 1)));
    }
    Ok(fitted)
}

fn plain_words(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Text => "text",
        ColumnKind::Count => "whole numbers from 0",
        ColumnKind::Number => "numbers",
        ColumnKind::Flag => "true or false",
    }
}

/// Formats differ in whether they keep empty text apart from no text; a frame has only empty text.
fn without_null_text(column: &Column) -> polars::prelude::PolarsResult<Column> {
    if column.null_count() == 0 {
        return Ok(column.clone());
    }
    let texts: Vec<&str> = column.str()?.iter().map(Option::unwrap_or_default).collect();
    Ok(Series::new(column.name().clone(), texts).into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_column_is_in_the_documents() {
        let text = include_str!("../../docs/tables.md");
        assert!(text.contains(&format!("Version {SCHEMA_VERSION} of the schema")));
        for spec in KEYS.iter().chain(&METRICS).chain(&PROVENANCE) {
            assert!(text.contains(&format!("`{}`", spec.name)), "docs/tables.md lacks `{}`", spec.name);
        }
    }

    #[test]
    fn no_name_is_used_twice() {
        let names: BTreeSet<&str> = columns().map(|spec| spec.name).collect();
        assert_eq!(names.len(), columns().count());
    }

    #[test]
    fn an_unknown_label_gets_a_hint() {
        insta::assert_snapshot!(check_label("dpeth").unwrap_err(), @"no setting `dpeth`; did you mean `depth`?");
        assert!(check_label("method").is_ok());
    }
}
