//! The fixed, versioned schema of a frame of folds: which columns, of which kind, meaning what, in which order.
//! Owns the version number and the check that a frame from outside fits; reads no files and computes nothing.
//!
//! Rules for changing it: a new column or a new meaning raises [`SCHEMA_VERSION`]; a column is never renamed or
//! given another kind within a version. Columns that are not listed here are kept, after those that are.

use polars::prelude::{Column, DataFrame, DataType, NamedFrom, Series};
use togl_sweeps::{TrialConfig, nearest};

use crate::error::{Error, NO_FOLDS, Result};

/// The version that this program writes, and the newest it reads.
pub const SCHEMA_VERSION: u64 = 5;

/// Columns that version 1 did not have; rows of that version have no value in them.
const SINCE_VERSION_2: [&str; 3] = ["train_size", "validation_size", "test_size"];

/// Settings that versions 1 and 2 did not have; rows of those versions have their defaults, which mean "as before".
const SINCE_VERSION_3: [&str; 6] =
    ["wl_labels", "choose_rounds", "as_published", "svm_c_min", "svm_c_max", "inner_folds"];

/// Columns that versions 1 to 3 did not have: a setting with its default, and what rows of those versions cannot say.
const SINCE_VERSION_4: [&str; 3] = ["finished_at", "energy_joules", "outer_folds"];

/// Columns that versions 1 to 4 did not have and whose rows cannot say it.
const SINCE_VERSION_5: [&str; 2] = ["test_f1", "test_roc_auc"];

/// What kind of value a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text; unknown is the empty text.
    Text,
    /// A whole number from 0.
    Count,
    /// A floating-point number.
    Number,
    /// Yes or no.
    Flag,
}

impl Kind {
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

/// One column of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether it may be null.
    pub need: Need,
    /// What it means.
    pub about: &'static str,
}

const fn column(name: &'static str, kind: Kind, need: Need, about: &'static str) -> ColumnSpec {
    ColumnSpec { name, kind, need, about }
}

const fn setting(name: &'static str, kind: Kind) -> ColumnSpec {
    column(name, kind, Need::Always, "the trial's setting of this name")
}

const fn metric(name: &'static str, about: &'static str) -> ColumnSpec {
    column(name, Kind::Number, Need::IfKnown, about)
}

/// Which fold a row is.
pub const KEYS: [ColumnSpec; 5] = [
    column(
        "position",
        Kind::Count,
        Need::Always,
        "place of the trial in its sweep, or of the row in its import",
    ),
    column("trial", Kind::Text, Need::Always, "identity of the trial: 32 hexadecimal digits"),
    column("split", Kind::Count, Need::Always, "fold index of the data set, or split seed"),
    column("seed", Kind::Count, Need::Always, "training seed"),
    column(
        "method",
        Kind::Text,
        Need::Always,
        "name of the network after what was built, such as GCN-4-TOGL-1",
    ),
];

/// Every setting of a trial, under its own name. `togl_position` is text, because it may be the word `last`.
pub const SETTINGS: [ColumnSpec; 44] = [
    setting("dataset", Kind::Text),
    setting("data_seed", Kind::Count),
    setting("features", Kind::Text),
    setting("model", Kind::Text),
    setting("depth", Kind::Count),
    setting("hidden_dim", Kind::Count),
    setting("num_heads", Kind::Count),
    setting("residual", Kind::Flag),
    setting("batch_norm", Kind::Flag),
    setting("dropout_p", Kind::Number),
    setting("activation_last", Kind::Text),
    setting("gat_last", Kind::Text),
    setting("togl", Kind::Flag),
    setting("togl_position", Kind::Text),
    setting("placement", Kind::Text),
    setting("deepset", Kind::Flag),
    setting("static", Kind::Flag),
    setting("dim1", Kind::Flag),
    setting("num_filtrations", Kind::Count),
    setting("filtration_hidden", Kind::Count),
    setting("num_coord_funs", Kind::Count),
    setting("tanh_filtrations", Kind::Flag),
    setting("share_filtration_parameters", Kind::Flag),
    setting("residual_and_bn", Kind::Flag),
    setting("swap_bn_order", Kind::Flag),
    setting("deepset_type", Kind::Text),
    setting("aggregation_fn", Kind::Text),
    setting("dim0_out_dim", Kind::Count),
    setting("dim1_out_dim", Kind::Count),
    setting("dist_dim1", Kind::Flag),
    setting("batch_size", Kind::Count),
    setting("lr", Kind::Number),
    setting("lr_patience", Kind::Count),
    setting("lr_min", Kind::Number),
    setting("weight_decay", Kind::Number),
    setting("max_epochs", Kind::Count),
    setting("last_epoch", Kind::Text),
    setting("wl_labels", Kind::Text),
    setting("choose_rounds", Kind::Flag),
    setting("as_published", Kind::Flag),
    setting("svm_c_min", Kind::Number),
    setting("svm_c_max", Kind::Number),
    setting("inner_folds", Kind::Count),
    setting("outer_folds", Kind::Count),
];

/// What came out of training.
pub const METRICS: [ColumnSpec; 10] = [
    metric("test_accuracy", "test metric of the best checkpoint, a share in 0..=1"),
    metric("test_loss", "test loss of the best checkpoint"),
    metric("validation_accuracy", "validation metric of the best checkpoint"),
    metric("validation_loss", "validation loss of the best checkpoint"),
    metric("train_accuracy", "training metric of the best checkpoint's epoch"),
    metric("train_loss", "training loss of the best checkpoint's epoch"),
    metric("last_validation_accuracy", "validation metric of the last epoch"),
    metric("last_validation_loss", "validation loss of the last epoch"),
    metric("test_f1", "mean over classes of the test F1 of the best checkpoint, from its confusion matrix"),
    metric("test_roc_auc", "test ROC-AUC of the best checkpoint, on data sets that are scored by it"),
];

/// How it was trained, where, and with what.
pub const PROVENANCE: [ColumnSpec; 23] = [
    column("best_epoch", Kind::Count, Need::IfKnown, "epoch of the best checkpoint, from 0"),
    column("epochs", Kind::Count, Need::IfKnown, "epochs trained"),
    column("seconds", Kind::Number, Need::IfKnown, "seconds of training"),
    column(
        "finished_at",
        Kind::Count,
        Need::IfKnown,
        "when training ended, in milliseconds since 1970 by the worker's clock",
    ),
    column("energy_joules", Kind::Number, Need::IfKnown, "energy of a device that trained this fold alone"),
    column("peak_memory", Kind::Count, Need::IfKnown, "largest resident memory of the trainer, in bytes"),
    column("parameters", Kind::Count, Need::IfKnown, "trainable parameters of the network"),
    column("train_size", Kind::Count, Need::IfKnown, "examples in the training part"),
    column("validation_size", Kind::Count, Need::IfKnown, "examples in the validation part"),
    column("test_size", Kind::Count, Need::IfKnown, "examples in the test part"),
    column("data_digest", Kind::Text, Need::IfKnown, "digest of the data set as loaded"),
    column("split_digest", Kind::Text, Need::IfKnown, "digest of the split"),
    column("code_version", Kind::Text, Need::IfKnown, "version of the training program"),
    column("commit", Kind::Text, Need::IfKnown, "commit it was built from"),
    column("dirty", Kind::Flag, Need::IfKnown, "whether its tree had uncommitted changes"),
    column("libtorch", Kind::Text, Need::IfKnown, "version of libtorch"),
    column("device", Kind::Text, Need::IfKnown, "device kind and name"),
    column("host", Kind::Text, Need::IfKnown, "host name of the worker"),
    column("worker", Kind::Text, Need::IfKnown, "the worker that trained it"),
    column("attempt", Kind::Count, Need::IfKnown, "which attempt at the fold this is, from 1"),
    column("numerics", Kind::Count, Need::IfKnown, "changes whenever any trained number may change"),
    column("schema_version", Kind::Count, Need::Always, "version of this schema"),
    column("origin", Kind::Text, Need::IfKnown, "file and line of an imported row, else empty"),
];

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
    Err(Error::UnknownSetting { name: name.to_owned(), hint: nearest::hint(name, label_names()) })
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
    let later = |name| {
        version < 2 && SINCE_VERSION_2.contains(&name)
            || version < 4 && SINCE_VERSION_4.contains(&name)
            || SINCE_VERSION_5.contains(&name)
    };
    for spec in METRICS.iter().chain(&PROVENANCE).filter(|spec| later(spec.name)) {
        if data.column(spec.name).is_err() {
            data.with_column(Column::full_null(spec.name.into(), data.height(), &spec.kind.data_type()))?;
        }
    }
    let defaults = TrialConfig::default();
    let is_later = |name: &str| {
        (version < 3 && SINCE_VERSION_3.contains(&name)) || (version < 4 && SINCE_VERSION_4.contains(&name))
    };
    for spec in SETTINGS.iter().filter(|spec| is_later(spec.name)) {
        if data.column(spec.name).is_err() {
            let value = defaults.show(spec.name).unwrap_or_default();
            let texts = Series::new(spec.name.into(), vec![value; data.height()]);
            data.with_column(text_as(&texts, spec.kind)?)?;
        }
    }
    data.with_column(Column::new("schema_version".into(), vec![SCHEMA_VERSION; data.height()]))?;
    Ok(data)
}

/// Settings in words, as values of a kind.
fn text_as(texts: &Series, kind: Kind) -> Result<Column> {
    if kind == Kind::Flag {
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
        Some(found) if found > SCHEMA_VERSION => {
            Err(Error::NewerSchema { origin: origin.to_owned(), found, known: SCHEMA_VERSION })
        }
        newest => Ok(newest.unwrap_or(SCHEMA_VERSION)),
    }
}

fn fit(column: &Column, spec: &ColumnSpec, origin: &str) -> Result<Column> {
    let refuse =
        |reason: String| Error::BadColumn { origin: origin.to_owned(), column: spec.name.to_owned(), reason };
    let fitted = column
        .strict_cast(&spec.kind.data_type())
        .map_err(|_| refuse(format!("has values that are not {}", plain_words(spec.kind))))?;
    if spec.kind == Kind::Text && spec.need == Need::IfKnown {
        return Ok(without_null_text(&fitted)?);
    }
    if spec.need == Need::Always && fitted.null_count() > 0 {
        let row = fitted.is_null().iter().position(|null| null == Some(true)).unwrap_or_default();
        return Err(refuse(format!("has no value in row {}", row + 1)));
    }
    Ok(fitted)
}

fn plain_words(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "text",
        Kind::Count => "whole numbers from 0",
        Kind::Number => "numbers",
        Kind::Flag => "true or false",
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
    fn every_setting_of_a_trial_is_a_column() {
        let ours: BTreeSet<String> = SETTINGS.iter().map(|spec| spec.name.to_owned()).collect();
        let theirs: BTreeSet<String> = togl_sweeps::trial::setting_names().into_iter().collect();
        assert_eq!(ours, theirs, "add new settings to SETTINGS and raise SCHEMA_VERSION");
    }

    #[test]
    fn every_column_is_in_the_documents() {
        let text = include_str!("../../docs/tables.md");
        assert!(text.contains(&format!("Version {SCHEMA_VERSION} of the schema")));
        for spec in columns() {
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
