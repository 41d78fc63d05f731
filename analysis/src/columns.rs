//! Typed Polars columns from plain values: the keys and settings of folds, for frames and plans alike. Owns the
//! one way in which a [`TrialConfig`] becomes columns and a stored value becomes the label of a table.

use polars::prelude::{AnyValue, Column, DataFrame, NamedFrom, Series};
use serde_json::{Map, Value};
use togl_sweeps::{FoldKey, TrialConfig};

use crate::error::{Error, Result};
use crate::schema::{Kind, SETTINGS};

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

/// The folds named by three columns of equal length.
pub fn fold_keys(trials: &Series, splits: &Series, seeds: &Series) -> Result<Vec<FoldKey>> {
    let columns = trials.str()?.iter().zip(splits.u64()?.iter()).zip(seeds.u64()?.iter());
    columns.map(|((trial, split), seed)| fold_key(trial, split, seed)).collect()
}

fn fold_key(trial: Option<&str>, split: Option<u64>, seed: Option<u64>) -> Result<FoldKey> {
    let refuse = |column: &str, reason: String| Error::BadColumn {
        origin: "the frame".to_owned(),
        column: column.to_owned(),
        reason,
    };
    let trial = trial.unwrap_or_default().parse().map_err(|error| refuse("trial", format!("{error}")))?;
    let split = split.unwrap_or_default();
    let split = u32::try_from(split).map_err(|_| refuse("split", format!("{split} is too large")))?;
    Ok(FoldKey { trial, split, seed: seed.unwrap_or_default() })
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
        let series = |name: &str| data.column(name).unwrap().as_materialized_series();
        assert_eq!(fold_keys(series("trial"), series("split"), series("seed")).unwrap(), [fold]);
    }

    #[test]
    fn a_number_in_a_text_setting_is_kept_as_its_digits() {
        assert_eq!(plain_text(&json!(2)), "2");
        assert_eq!(plain_text(&json!("last")), "last");
    }
}
