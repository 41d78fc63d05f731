//! Typed Polars columns from plain values: the keys and settings of folds, for frames and plans alike. Owns the
//! one way in which a [`TrialConfig`] becomes columns and a stored value becomes the label of a table.

use polars::prelude::{
    AnyValue, BooleanChunked, Column, DataFrame, DataType, NamedFrom, NewChunkedArray, Series, UInt64Chunked,
};
use serde_json::{Map, Value};
use togl_sweeps::{FoldKey, TrialConfig, TrialId, settings};

use crate::error::{Error, Result};
use crate::schema::{ColumnKind, SETTINGS, check_label};

/// What identifies one fold and says what was (or will be) trained.
#[derive(Debug, Clone, Copy)]
pub struct FoldIdentity<'a> {
    /// The trial's place in its sweep.
    pub position: u64,
    /// The trial, split and seed.
    pub fold: FoldKey,
    /// What is trained.
    pub config: &'a TrialConfig,
}

/// A column of one value per item.
pub fn column<T, V>(name: &str, items: &[T], value: impl Fn(&T) -> V) -> Column
where
    Series: NamedFrom<Vec<V>, [V]>,
{
    Series::new(name.into(), items.iter().map(value).collect::<Vec<V>>()).into()
}

/// The key columns and one column per setting, in the order of the schema.
pub fn identity_columns(folds: &[FoldIdentity<'_>]) -> Vec<Column> {
    let mut columns = vec![
        column("position", folds, |fold| fold.position),
        column("trial", folds, |fold| fold.fold.trial.to_string()),
        column("split", folds, |fold| u64::from(fold.fold.split)),
        column("seed", folds, |fold| fold.fold.seed),
    ];
    let configs = DistinctConfigs::of(folds);
    columns.push(column("method", &configs.index, |at| configs.methods[*at].clone()));
    columns.extend(SETTINGS.iter().map(|spec| configs.setting(spec.name, spec.kind)));
    columns
}

/// One column for each setting that programs declare and that we have none of.
pub fn declared_columns(folds: &[FoldIdentity<'_>]) -> Vec<Column> {
    if folds.iter().all(|fold| fold.config.program.is_none()) {
        return Vec::new();
    }
    let configs = DistinctConfigs::of(folds);
    let names = settings::names_of(folds.iter().map(|fold| fold.config));
    let declared = names.iter().skip(SETTINGS.len());
    declared.map(|name| configs.setting(name, configs.kind(name))).collect()
}

/// Configurations taken apart once each, although many folds share one.
struct DistinctConfigs {
    settings: Vec<Map<String, Value>>,
    methods: Vec<String>,
    /// For each fold, which of them it has.
    index: Vec<usize>,
}

impl DistinctConfigs {
    /// Folds of one trial stand together, so comparing with the previous one finds nearly all repetitions.
    fn of(folds: &[FoldIdentity<'_>]) -> Self {
        let mut distinct =
            Self { settings: Vec::new(), methods: Vec::new(), index: Vec::with_capacity(folds.len()) };
        let mut previous: Option<&TrialConfig> = None;
        for fold in folds {
            if previous != Some(fold.config) {
                distinct.settings.push(settings_of(fold.config));
                distinct.methods.push(fold.config.method());
                previous = Some(fold.config);
            }
            distinct.index.push(distinct.settings.len() - 1);
        }
        distinct
    }

    /// What a declared setting holds, by its values.
    fn kind(&self, name: &str) -> ColumnKind {
        let values = || self.settings.iter().filter_map(|settings| settings.get(name));
        match () {
            () if values().all(Value::is_boolean) => ColumnKind::Flag,
            () if values().all(Value::is_u64) => ColumnKind::Count,
            () if values().all(Value::is_number) => ColumnKind::Number,
            () => ColumnKind::Text,
        }
    }

    fn setting(&self, name: &str, kind: ColumnKind) -> Column {
        let get = |at: &usize| self.settings[*at].get(name);
        match kind {
            ColumnKind::Text => column(name, &self.index, |at| get(at).map(plain_text)),
            ColumnKind::Count => column(name, &self.index, |at| get(at).and_then(Value::as_u64)),
            ColumnKind::Number => column(name, &self.index, |at| get(at).and_then(Value::as_f64)),
            ColumnKind::Flag => column(name, &self.index, |at| get(at).and_then(Value::as_bool)),
        }
    }
}

fn settings_of(config: &TrialConfig) -> Map<String, Value> {
    let mut settings = match serde_json::to_value(config) {
        Ok(Value::Object(settings)) => settings,
        _ => Map::new(), // a struct of numbers and words always serialises to an object
    };
    // A program's setting that is called as one of ours shares its column.
    settings.extend(config.program.iter().flat_map(|program| program.settings.clone()));
    settings
}

fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A stored value as the label of a table, spelt as [`TrialConfig::show`] does.
pub fn label(value: &AnyValue<'_>) -> String {
    match value {
        AnyValue::Null => String::new(),
        AnyValue::String(text) => (*text).to_owned(),
        AnyValue::StringOwned(text) => text.to_string(),
        AnyValue::Float64(number) => Value::from(*number).to_string(),
        other => other.to_string(),
    }
}

/// The labels of one row of a grouped frame.
pub fn labels(data: &DataFrame, names: &[String], row: usize) -> Result<Vec<String>> {
    names.iter().map(|name| Ok(label(&data.column(name)?.get(row)?))).collect()
}

/// The place of each row in its sweep or import.
pub fn positions(data: &DataFrame) -> Result<Vec<u64>> {
    Ok(counts(data.column("position")?.u64()?))
}

/// The fold of each row. Folds of one trial stand together, so most identities need not be read again.
pub fn keys(data: &DataFrame) -> Result<Vec<FoldKey>> {
    let trials = data.column("trial")?.str()?;
    let (splits, seeds) = (counts(data.column("split")?.u64()?), counts(data.column("seed")?.u64()?));
    let mut keys = Vec::with_capacity(trials.len());
    let mut last: Option<(&str, TrialId)> = None;
    for ((trial, split), seed) in trials.iter().zip(splits).zip(seeds) {
        let text = trial.unwrap_or_default();
        let trial = match last {
            Some((same, trial)) if same == text => trial,
            _ => text.parse().map_err(|error| refuse("trial", format!("{error}")))?,
        };
        last = Some((text, trial));
        let split = u32::try_from(split).map_err(|_| refuse("split", format!("{split} is too large")))?;
        keys.push(FoldKey { trial, split, seed });
    }
    Ok(keys)
}

/// Whole numbers, 0 where there is none. Copied chunk by chunk, which is far faster than one by one.
pub fn counts(column: &UInt64Chunked) -> Vec<u64> {
    if column.null_count() > 0 {
        return column.iter().map(Option::unwrap_or_default).collect();
    }
    let mut numbers = Vec::with_capacity(column.len());
    column.downcast_iter().for_each(|chunk| numbers.extend_from_slice(chunk.values().as_slice()));
    numbers
}

/// Whether all rows of a column have the same value; may say no where it would be long to find out.
pub fn is_constant(column: &Column) -> Result<bool> {
    if matches!(column, Column::Scalar(_)) {
        return Ok(true); // and it is not spread out to find that
    }
    if column.null_count() > 0 {
        return Ok(column.null_count() == column.len());
    }
    Ok(match column.dtype() {
        DataType::String => {
            // A view is a short text itself, or the place of a long one. Equal texts may stand in two places.
            let texts = column.str()?;
            let uniform = texts.downcast_iter().all(|chunk| {
                let views = chunk.views().as_slice();
                views.windows(2).all(|pair| pair[0] == pair[1])
            });
            let mut firsts =
                texts.downcast_iter().filter(|chunk| chunk.len() > 0).map(|chunk| chunk.value(0));
            let first = firsts.next();
            uniform && firsts.all(|text| Some(text) == first)
        }
        DataType::Boolean => {
            let trues = column.bool()?.sum().unwrap_or_default() as usize;
            trues == 0 || trues == column.len()
        }
        _ => counts(column.u64()?).windows(2).all(|pair| pair[0] == pair[1]),
    })
}

fn refuse(column: &str, reason: String) -> Error {
    Error::bad_column("the frame", column, reason)
}

/// Whether a label is one of these values. Numbers compare as numbers, however they are written: 4, 4.0 and 4e0 are one.
pub fn is_among(label: &str, values: &[String]) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    values
        .iter()
        .any(|value| value == label || number(value).is_some_and(|value| number(label) == Some(value)))
}

/// Which rows have one of the given values in each of the given settings.
pub fn matching(data: &DataFrame, filter: &[(String, Vec<String>)]) -> Result<BooleanChunked> {
    let mut kept = vec![true; data.height()];
    for (name, values) in filter {
        let Ok(column) = data.column(name) else {
            check_label(name)?;
            continue;
        };
        let mut last: Option<(AnyValue<'_>, bool)> = None;
        for (row, kept) in kept.iter_mut().enumerate() {
            let value = column.get(row)?;
            let holds = match &last {
                Some((same, holds)) if *same == value => *holds,
                _ => is_among(&label(&value), values),
            };
            *kept &= holds;
            last = Some((value, holds));
        }
    }
    Ok(BooleanChunked::from_slice("kept".into(), &kept))
}

#[cfg(test)]
mod tests {
    use polars::prelude::DataFrame;
    use serde_json::json;
    use togl_sweeps::trial::Position;

    use super::*;

    #[test]
    fn labels_are_spelt_as_trials_spell_their_settings() {
        let mut config =
            TrialConfig { dataset: "DD".to_owned(), lr: 7e-4, lr_min: 1e-6, ..TrialConfig::default() };
        config.weight_decay = 1.0;
        config.togl_position = Position::Last;
        let fold = FoldKey { trial: config.id(), split: 3, seed: u64::MAX };
        let identity = FoldIdentity { position: 0, fold, config: &config };
        let data = DataFrame::new(1, identity_columns(&[identity])).unwrap();
        for name in crate::schema::label_names() {
            let ours = label(&data.column(name).unwrap().get(0).unwrap());
            assert_eq!(Some(ours), config.show(name), "{name}");
        }
        assert_eq!(keys(&data).unwrap(), [fold]);
    }

    #[test]
    fn numbers_compare_as_numbers_and_words_as_words() {
        let among = |label: &str, values: &[&str]| {
            is_among(label, &values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
        };
        assert!(among("4", &["2", "4.0"]) && among("0.0007", &["7e-4"]) && among("last", &["last"]));
        assert!(!among("4", &["4.5", "40", ""]) && !among("last", &["Last"]) && !among("", &["0"]));
    }

    #[test]
    fn a_column_of_one_value_is_seen_however_it_is_stored() {
        let column = |texts: [&str; 3]| Column::new("x".into(), texts);
        let mut other = column(["a text that is longer than twelve bytes"; 3]);
        other.append(&column(["a text that is longer than twelve bytez"; 3])).unwrap();
        assert!(!is_constant(&other).unwrap() && !is_constant(&column(["cpu", "cpu", "cuda"])).unwrap());
        assert!(is_constant(&column(["cpu"; 3])).unwrap() && is_constant(&column([""; 3])).unwrap());
        for (flags, same) in [([true, true], true), ([false, false], true), ([true, false], false)] {
            assert_eq!(is_constant(&Column::new("x".into(), flags)).unwrap(), same, "{flags:?}");
        }
        let numbers = |numbers: [Option<u64>; 2]| is_constant(&Column::new("x".into(), numbers)).unwrap();
        assert!(numbers([Some(1), Some(1)]) && numbers([None, None]));
        assert!(!numbers([Some(1), Some(2)]) && !numbers([Some(0), None]));
    }

    #[test]
    fn a_number_in_a_text_setting_is_kept_as_its_digits() {
        assert_eq!(plain_text(&json!(2)), "2");
        assert_eq!(plain_text(&json!("last")), "last");
    }
}
