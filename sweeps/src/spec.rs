//! A sweep file: YAML text in, a checked [`SweepSpec`] out. Owns every rule about the file and the wording of
//! its errors: line, column, key, and the nearest known name. Reads no files itself.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use serde_yaml::{Location, Spanned};

use crate::grid::{Axis, Grid, PointError};
use crate::ids::{FoldKey, SweepName, TrialId};
use crate::nearest;
use crate::trial::{self, TrialConfig};

/// The version of the sweep language.
pub const SPEC_VERSION: u32 = 1;

/// Folds a sweep may have unless its `limits` say otherwise: a guard against accidents.
pub const DEFAULT_MAX_FOLDS: u64 = 100_000;

/// A sweep file that was understood and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepSpec {
    /// What people call it.
    pub name: SweepName,
    /// A sentence for people.
    pub description: String,
    /// Settings and axes.
    pub grid: Grid,
    /// Which splits of the data set.
    pub splits: Vec<u32>,
    /// Training seeds.
    pub seeds: Vec<u64>,
    /// Guards.
    pub limits: Limits,
    /// Higher runs first.
    pub priority: i32,
    /// The table at the end.
    pub table: TableSpec,
}

/// Guards of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The sweep is refused if it has more folds.
    pub max_folds: u64,
    /// Attempts of one fold, whatever the reason, before it counts as failed.
    pub attempts: u32,
    /// Seconds that one attempt may train; none if absent.
    pub fold_seconds: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_folds: DEFAULT_MAX_FOLDS, attempts: 10, fold_seconds: None }
    }
}

/// A column of the fold frame that a table can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Test metric of the best checkpoint.
    TestAccuracy,
    /// Validation metric of the best checkpoint.
    ValidationAccuracy,
    /// Validation metric of the last epoch.
    LastValidationAccuracy,
    /// Training metric of the best checkpoint's epoch.
    TrainAccuracy,
}

/// What the table of a sweep shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TableSpec {
    /// Settings (or `method`) that make a row.
    pub rows: Vec<String>,
    /// The setting that makes the columns.
    pub columns: String,
    /// What is averaged.
    pub metric: Metric,
}

impl Default for TableSpec {
    fn default() -> Self {
        Self { rows: vec!["method".to_owned()], columns: "dataset".to_owned(), metric: Metric::TestAccuracy }
    }
}

/// What is wrong with a sweep file. Shown as `line:column: message`; the caller puts the file name in front.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", place(*.at))]
pub struct SpecError {
    /// Line and column, from 1, where known.
    pub at: Option<(u64, u64)>,
    /// What is wrong and what would be right.
    pub message: String,
}

fn place(at: Option<(u64, u64)>) -> String {
    at.map_or_else(String::new, |(line, column)| format!("{line}:{column}: "))
}

impl SpecError {
    fn new(message: impl Into<String>) -> Self {
        Self { at: None, message: message.into() }
    }

    fn at(location: Location, message: impl Into<String>) -> Self {
        let known = location != Location::UNKNOWN;
        Self { at: known.then(|| (location.line(), location.column())), message: message.into() }
    }
}

/// A trial of a sweep at its place in the order of the grid.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTrial {
    /// Place in the grid's order; points that are the same trial share the first one's.
    pub position: u64,
    /// The settings as written.
    pub config: TrialConfig,
    /// Its identity.
    pub id: TrialId,
}

impl SweepSpec {
    /// Reads and checks the text of a sweep file.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let file: File = serde_yaml::from_str_with_options(text, options()).map_err(|e| explain(&e))?;
        file.check()
    }

    /// Folds that the grid's points would make, before equal trials are merged; saturates.
    pub fn count_folds(&self) -> u128 {
        let per_trial = (self.splits.len() as u128).saturating_mul(self.seeds.len() as u128);
        self.grid.count().saturating_mul(per_trial)
    }

    /// The distinct trials, in order.
    pub fn trials(&self) -> Result<Vec<PlannedTrial>, PointError> {
        let mut seen = HashSet::new();
        let mut trials = Vec::new();
        for (position, point) in self.grid.points().enumerate() {
            let config = point?;
            let id = config.id();
            if seen.insert(id) {
                trials.push(PlannedTrial { position: position as u64, config, id });
            }
        }
        Ok(trials)
    }

    /// The folds of one trial, in order: splits, then seeds.
    pub fn folds_of(&self, trial: TrialId) -> impl Iterator<Item = FoldKey> + '_ {
        let splits = self.splits.iter();
        splits.flat_map(move |split| {
            self.seeds.iter().map(move |seed| FoldKey { trial, split: *split, seed: *seed })
        })
    }
}

/// The file as written; [`File::check`] makes the checked form of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: Spanned<u32>,
    name: Spanned<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    base: Ordered<Value>,
    grid: Option<Spanned<Ordered<Vec<Value>>>>,
    splits: Option<Spanned<Vec<u32>>>,
    seeds: Option<Spanned<Vec<u64>>>,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    priority: i32,
    table: Option<Spanned<TableSpec>>,
}

impl File {
    fn check(self) -> Result<SweepSpec, SpecError> {
        if self.version.value != SPEC_VERSION {
            let message =
                format!("version {} is not known; this program reads {SPEC_VERSION}", self.version.value);
            return Err(SpecError::at(self.version.referenced, message));
        }
        let name =
            self.name.value.parse().map_err(|e| SpecError::at(self.name.referenced, format!("name: {e}")))?;
        let spec = SweepSpec {
            name,
            description: self.description,
            grid: Grid { base: check_base(self.base)?, axes: check_axes(self.grid)? },
            splits: check_list("splits", self.splits, 0)?,
            seeds: check_list("seeds", self.seeds, 0)?,
            limits: self.limits,
            priority: self.priority,
            table: check_table(self.table)?,
        };
        check_size(&spec)?;
        spec.trials().map_err(|error| SpecError::new(error.to_string()))?;
        Ok(spec)
    }
}

fn check_base(base: Ordered<Value>) -> Result<Map<String, Value>, SpecError> {
    for (key, value) in &base.0 {
        check_value(key, value, "base")?;
    }
    Ok(base.0.into_iter().map(|(key, value)| (key.value, value.value)).collect())
}

fn check_axes(grid: Option<Spanned<Ordered<Vec<Value>>>>) -> Result<Vec<Axis>, SpecError> {
    let Some(grid) = grid else { return Ok(Vec::new()) };
    if grid.value.0.is_empty() {
        let message =
            "grid is empty; give it at least one axis, such as `depth: [2, 3]`, or leave `grid` out";
        return Err(SpecError::at(grid.referenced, message));
    }
    grid.value.0.into_iter().map(|(name, values)| check_axis(&name, values)).collect()
}

fn check_axis(name: &Spanned<String>, values: Spanned<Vec<Value>>) -> Result<Axis, SpecError> {
    if values.value.is_empty() {
        let message =
            format!("grid.{} has no values, so the grid is empty; give it at least one", name.value);
        return Err(SpecError::at(values.referenced, message));
    }
    for value in &values.value {
        check_value(name, &Spanned::new(value.clone(), values.referenced, values.defined), "grid")?;
    }
    Ok(Axis { name: name.value.clone(), values: values.value })
}

fn check_value(name: &Spanned<String>, value: &Spanned<Value>, block: &str) -> Result<(), SpecError> {
    let known = trial::setting_names();
    if !known.contains(&name.value) {
        let hint = nearest::hint(&name.value, known.iter().map(String::as_str));
        return Err(SpecError::at(
            name.referenced,
            format!("{block}.{}: no such setting; {hint}", name.value),
        ));
    }
    trial::check_setting(&name.value, &value.value)
        .map_err(|error| SpecError::at(value.referenced, format!("{block}.{}: {}", name.value, error.reason)))
}

fn check_list<T: Copy + Ord + fmt::Display>(
    key: &str,
    list: Option<Spanned<Vec<T>>>,
    default: T,
) -> Result<Vec<T>, SpecError> {
    let Some(list) = list else { return Ok(vec![default]) };
    if list.value.is_empty() {
        return Err(SpecError::at(
            list.referenced,
            format!("{key} is empty; give at least one, such as [0]"),
        ));
    }
    let mut sorted = list.value.clone();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(SpecError::at(list.referenced, format!("{key} names {} twice", twice[0])));
    }
    Ok(list.value)
}

fn check_table(table: Option<Spanned<TableSpec>>) -> Result<TableSpec, SpecError> {
    let Some(table) = table else { return Ok(TableSpec::default()) };
    let mut known = trial::setting_names();
    known.push("method".to_owned());
    for name in table.value.rows.iter().chain([&table.value.columns]) {
        if !known.contains(name) {
            let hint = nearest::hint(name, known.iter().map(String::as_str));
            return Err(SpecError::at(table.referenced, format!("table: no setting `{name}`; {hint}")));
        }
    }
    Ok(table.value)
}

fn check_size(spec: &SweepSpec) -> Result<(), SpecError> {
    let (folds, most) = (spec.count_folds(), spec.limits.max_folds);
    if folds > most.into() {
        return Err(SpecError::new(format!(
            "the sweep has {folds} folds ({} grid points x {} splits x {} seeds), more than limits.max_folds = {most}; \
             shorten an axis, or raise `limits: {{max_folds: ...}}` if it is meant",
            spec.grid.count(),
            spec.splits.len(),
            spec.seeds.len()
        )));
    }
    Ok(())
}

fn options() -> serde_yaml::Options {
    serde_yaml::options! { with_snippet: false, strict_booleans: true, }
}

/// Turns the parser's errors into ours, with the nearest known key where a name is unknown.
fn explain(error: &serde_yaml::Error) -> SpecError {
    use serde_yaml::Error;
    let error = error.without_snippet();
    let at = error.location().unwrap_or(Location::UNKNOWN);
    match error {
        Error::SerdeUnknownField { field, expected, .. } => {
            let hint = nearest::hint(field, expected.iter().copied());
            SpecError::at(at, format!("unknown key `{field}`; {hint}"))
        }
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            let hint = nearest::hint(variant, expected.iter().copied());
            SpecError::at(at, format!("unknown word `{variant}`; {hint}"))
        }
        Error::SerdeMissingField { field, .. } => {
            SpecError::at(at, format!("the key `{field}` is missing{}", example_of(field)))
        }
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or("?");
            SpecError::at(at, format!("the key `{key}` is given twice; keep one of them"))
        }
        other => SpecError::at(at, other.to_string()),
    }
}

fn example_of(field: &str) -> &'static str {
    match field {
        "version" => "; begin the file with `version: 1`",
        "name" => "; call the sweep something, such as `name: my-sweep`",
        _ => "",
    }
}

/// A mapping in the order of the file, with the place of each key and value.
struct Ordered<V>(Vec<(Spanned<String>, Spanned<V>)>);

impl<V> Default for Ordered<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Ordered<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for Entries<V> {
            type Value = Ordered<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping of settings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered<V>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }

            fn visit_unit<E>(self) -> Result<Ordered<V>, E> {
                Ok(Ordered::default())
            }
        }

        deserializer.deserialize_map(Entries(PhantomData))
    }
}

#[cfg(test)]
#[path = "spec_tests.rs"]
mod tests;
