//! A grid: a base and axes, with conditions and exclusions. Its points are counted before they are enumerated and
//! enumerated lazily, in one defined order (axes as written, the last one fastest). Knows nothing of files.

use serde_json::Value;

use crate::condition::Condition;
use crate::settings::Setting;
use crate::trial::{SettingError, TrialConfig};

#[path = "grid_count.rs"]
mod count;
#[path = "grid_points.rs"]
mod points;

pub use points::Points;

/// One place on an axis: the settings it gives, and where it exists.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Settings and their values; one for a plain axis, several for axes that move together and for presets.
    pub settings: Vec<(&'static Setting, Value)>,
    /// The choice exists only where this holds.
    pub when: Option<Condition>,
}

/// One axis, or several that move together.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The keys as written: names of settings, or `preset`.
    pub names: Vec<String>,
    /// At least one choice, in order.
    pub choices: Vec<Choice>,
    /// The axis exists only where this holds; elsewhere its settings keep their value.
    pub when: Option<Condition>,
}

/// What all points share, the axes that vary, and what is left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// Settings before any axis; the data set may still be missing.
    pub base: TrialConfig,
    /// Axes, slowest first. None: the grid is the one point `base`.
    pub axes: Vec<Axis>,
    /// Points that match one of these are left out.
    pub exclude: Vec<Condition>,
}

/// A point whose settings do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("grid point {point}: {source}")]
pub struct PointError {
    /// The varying settings of the point, as `name=value`.
    pub point: String,
    /// What does not fit.
    pub source: SettingError,
}

impl Choice {
    fn apply(&self, trial: &mut TrialConfig) {
        for (setting, value) in &self.settings {
            setting.set(trial, value);
        }
    }

    fn exists(&self, trial: &TrialConfig) -> bool {
        self.when.as_ref().is_none_or(|when| when.holds(trial))
    }
}

impl Axis {
    /// An axis of one setting whose values were checked.
    pub fn plain(setting: &'static Setting, values: Vec<Value>) -> Self {
        let choice = |value| Choice { settings: vec![(setting, value)], when: None };
        Self {
            names: vec![setting.name.to_owned()],
            choices: values.into_iter().map(choice).collect(),
            when: None,
        }
    }

    /// Where the axis or one of its choices exists.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.when.iter().chain(self.choices.iter().filter_map(|choice| choice.when.as_ref()))
    }

    /// Whether one of its choices gives this setting.
    pub fn gives(&self, name: &str) -> bool {
        self.choices.iter().any(|choice| choice.settings.iter().any(|(setting, _)| setting.name == name))
    }

    /// The settings that its choices give.
    fn given(&self) -> Vec<&'static str> {
        let mut names: Vec<&str> = Vec::new();
        for (setting, _) in self.choices.iter().flat_map(|choice| &choice.settings) {
            if !names.contains(&setting.name) {
                names.push(setting.name);
            }
        }
        names
    }

    /// Whether the axis is there at all for a trial.
    fn exists(&self, trial: &TrialConfig) -> bool {
        self.when.as_ref().is_none_or(|when| when.holds(trial))
            && self.choices.iter().any(|choice| choice.exists(trial))
    }
}

impl Grid {
    /// A grid of one point.
    pub fn single(base: TrialConfig) -> Self {
        Self { base, axes: Vec::new(), exclude: Vec::new() }
    }

    /// Number of combinations before conditions and exclusions; saturates.
    pub fn combinations(&self) -> u128 {
        self.axes.iter().fold(1, |product: u128, axis| product.saturating_mul(axis.choices.len() as u128))
    }

    /// Number of points; saturates instead of overflowing.
    pub fn count(&self) -> u128 {
        count::count(self)
    }

    /// Steps that counting takes: kinds of points that conditions tell apart, times conditions.
    pub(crate) fn counting_steps(&self) -> u128 {
        count::steps(self)
    }

    /// All points in order, made one at a time.
    pub fn points(&self) -> Points<'_> {
        Points::from_base(self, self.base.clone())
    }

    /// The point of one combination, in the order before conditions and exclusions; none if it is not there.
    /// A point that several combinations would make belongs to the first of them.
    pub(crate) fn combination(&self, index: u128) -> Option<TrialConfig> {
        let mut places = vec![0; self.axes.len()];
        let mut rest = index;
        for (place, axis) in places.iter_mut().zip(&self.axes).rev() {
            let size = axis.choices.len().max(1) as u128;
            *place = (rest % size) as usize;
            rest /= size;
        }
        let mut trial = self.base.clone();
        for (place, axis) in places.into_iter().zip(&self.axes) {
            if !axis.exists(&trial) {
                if place != 0 {
                    return None;
                }
                continue;
            }
            let choice = axis.choices.get(place).filter(|choice| choice.exists(&trial))?;
            choice.apply(&mut trial);
        }
        let excluded = self.exclude.iter().any(|condition| condition.holds(&trial));
        (!excluded).then_some(trial)
    }

    /// The point, or what does not fit together in it.
    pub(crate) fn checked(&self, trial: TrialConfig) -> Result<TrialConfig, PointError> {
        match trial.check_combination() {
            Ok(()) => Ok(trial),
            Err(source) => Err(self.misfit(&trial, source)),
        }
    }

    /// What does not fit, together with the point that it is about.
    pub(crate) fn misfit(&self, trial: &TrialConfig, source: SettingError) -> PointError {
        PointError { point: self.describe(trial), source }
    }

    fn describe(&self, trial: &TrialConfig) -> String {
        let names = self.axes.iter().flat_map(|axis| &axis.names);
        let words = names.filter_map(|name| Some(format!("{name}={}", trial.show(name)?)));
        let words: Vec<String> = words.collect();
        if words.is_empty() { "base".to_owned() } else { words.join(", ") }
    }

    /// How many axes must be applied before a condition is decided.
    fn decided_after(&self, condition: &Condition) -> usize {
        let last = |name: &str| self.axes.iter().rposition(|axis| axis.gives(name)).map_or(0, |at| at + 1);
        condition.names().map(last).max().unwrap_or(0)
    }
}

#[cfg(test)]
#[path = "grid_tests.rs"]
mod tests;
