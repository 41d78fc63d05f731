//! Typed Polars columns from plain values: the keys and settings of folds, for frames and plans alike. Owns the
//! one way in which a [`TrialConfig`] becomes columns and a stored value becomes the label of a table.

use polars::prelude::{
    AnyValue, BooleanChunked, Column, DataFrame, NamedFrom, NewChunkedArray, Series, StringChunked,
    UInt64Chunked,
};
use serde_json::{Map, Value};
use togl_sweeps::{FoldKey, TrialConfig, TrialId};

use crate::error::{Error, Result};
use crate::schema::{Kind, SETTINGS, check_label};

/// What identifies one fold and says what was (or will be) trained.
#[derive(Debug, Clone, Copy)]
pub struct Identity<'a> {
    /// The trial's place in its sweep.
    pub position: u64,
    /// Which fold.
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
pub fn identity_columns(folds: &[Identity<'_>]) -> Vec<Column> {
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

/// Configurations taken apart once each, although many folds share one.
struct DistinctConfigs {
    settings: Vec<Map<String, Value>>,
    methods: Vec<String>,
    /// For each fold, which of them it has.
    index: Vec<usize>,
}

impl DistinctConfigs {
    /// Folds of one trial stand together, so comparing with the previous one finds nearly all repetitions.
    fn of(folds: &[Identity<'_>]) -> Self {
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

    fn setting(&self, name: &str, kind: Kind) -> Column {
        let get = |at: &usize| self.settings[*at].get(name);
        match kind {
            Kind::Text => column(name, &self.index, |at| get(at).map(plain_text)),
            Kind::Count => column(name, &self.index, |at| get(at).and_then(Value::as_u64)),
            Kind::Number => column(name, &self.index, |at| get(at).and_then(Value::as_f64)),
            Kind::Flag => column(name, &self.index, |at| get(at).and_then(Value::as_bool)),
        }
    }
}

fn settings_of(config: &TrialConfig) -> Map<String, Value> {
    match serde_json::to_value(config) {
        Ok(Value::Object(settings)) => settings,
        _ => Map::new(), // a struct of numbers and words always serialises to an object
    }
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

/// The columns that say which folds the rows of a frame are.
pub struct FoldColumns<'a> {
    positions: &'a UInt64Chunked,
    trials: &'a StringChunked,
    splits: &'a UInt64Chunked,
    seeds: &'a UInt64Chunked,
}

impl<'a> FoldColumns<'a> {
    /// The columns of a frame.
    pub fn of(data: &'a DataFrame) -> Result<Self> {
        Ok(Self {
            positions: data.column("position")?.u64()?,
            trials: data.column("trial")?.str()?,
            splits: data.column("split")?.u64()?,
            seeds: data.column("seed")?.u64()?,
        })
    }

    /// The place of each row in its sweep or import.
    pub fn positions(&self) -> Result<Vec<u64>> {
        Ok(self.positions.iter().map(Option::unwrap_or_default).collect())
    }

    /// The fold of each row. Folds of one trial stand together, so most identities need not be read again.
    pub fn keys(&self) -> Result<Vec<FoldKey>> {
        let mut keys = Vec::with_capacity(self.trials.len());
        let mut last: Option<(&str, TrialId)> = None;
        for ((trial, split), seed) in self.trials.iter().zip(self.splits.iter()).zip(self.seeds.iter()) {
            let text = trial.unwrap_or_default();
            let trial = match last {
                Some((same, trial)) if same == text => trial,
                _ => text.parse().map_err(|error| refuse("trial", format!("{error}")))?,
            };
            last = Some((text, trial));
            let split = split.unwrap_or_default();
            let split = u32::try_from(split).map_err(|_| refuse("split", format!("{split} is too large")))?;
            keys.push(FoldKey { trial, split, seed: seed.unwrap_or_default() });
        }
        Ok(keys)
    }
}

fn refuse(column: &str, reason: String) -> Error {
    Error::BadColumn { origin: "the frame".to_owned(), column: column.to_owned(), reason }
}

/// Which rows have one of the given values in each of the given settings.
pub fn matching(data: &DataFrame, filter: &[(String, Vec<String>)]) -> Result<BooleanChunked> {
    let mut kept = vec![true; data.height()];
    for (name, values) in filter {
        check_label(name)?;
        let column = data.column(name)?;
        let mut last: Option<(AnyValue<'_>, bool)> = None;
        for (row, kept) in kept.iter_mut().enumerate() {
            let value = column.get(row)?;
            let holds = match &last {
                Some((same, holds)) if *same == value => *holds,
                _ => values.contains(&label(&value)),
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
        let identity = Identity { position: 0, fold, config: &config };
        let data = DataFrame::new(1, identity_columns(&[identity])).unwrap();
        for name in crate::schema::label_names() {
            let ours = label(&data.column(name).unwrap().get(0).unwrap());
            assert_eq!(Some(ours), config.show(name), "{name}");
        }
        assert_eq!(FoldColumns::of(&data).unwrap().keys().unwrap(), [fold]);
    }

    #[test]
    fn a_number_in_a_text_setting_is_kept_as_its_digits() {
        assert_eq!(plain_text(&json!(2)), "2");
        assert_eq!(plain_text(&json!("last")), "last");
    }
}
