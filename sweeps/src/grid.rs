//! A grid: fixed settings and axes, their product counted before it is enumerated and enumerated lazily, in
//! one defined order (axes as written, the last one fastest).

use serde_json::{Map, Value};

use crate::trial::{SettingError, TrialConfig};

/// One axis: a setting and the values it takes, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Name of the setting.
    pub name: String,
    /// At least one value.
    pub values: Vec<Value>,
}

/// Fixed settings and the axes that vary.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// Settings that all points share.
    pub base: Map<String, Value>,
    /// Axes, slowest first. None: the grid is the one point `base`.
    pub axes: Vec<Axis>,
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

impl Grid {
    /// Number of points; saturates instead of overflowing.
    pub fn count(&self) -> u128 {
        self.axes.iter().fold(1, |product: u128, axis| product.saturating_mul(axis.values.len() as u128))
    }

    /// The settings of point `index`; the last axis moves fastest.
    fn settings(&self, index: u128) -> Map<String, Value> {
        let mut settings = self.base.clone();
        let mut rest = index;
        for axis in self.axes.iter().rev() {
            let size = axis.values.len().max(1) as u128;
            if let Some(value) = axis.values.get((rest % size) as usize) {
                settings.insert(axis.name.clone(), value.clone());
            }
            rest /= size;
        }
        settings
    }

    fn describe(&self, settings: &Map<String, Value>) -> String {
        let varying = self.axes.iter().filter_map(|axis| Some((&axis.name, settings.get(&axis.name)?)));
        let words: Vec<String> = varying.map(|(name, value)| format!("{name}={value}")).collect();
        if words.is_empty() { "base".to_owned() } else { words.join(", ") }
    }

    /// All points in order, made one at a time.
    pub fn points(&self) -> impl Iterator<Item = Result<TrialConfig, PointError>> + '_ {
        (0..self.count()).map(|index| {
            let settings = self.settings(index);
            TrialConfig::from_settings(&settings)
                .map_err(|source| PointError { point: self.describe(&settings), source })
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn grid(base: Value, axes: &[(&str, Value)]) -> Grid {
        let Value::Object(base) = base else { panic!("base is an object") };
        let axes = axes
            .iter()
            .map(|(name, values)| Axis {
                name: (*name).to_owned(),
                values: values.as_array().expect("a list").clone(),
            })
            .collect();
        Grid { base, axes }
    }

    #[test]
    fn the_last_axis_moves_fastest() {
        let grid = grid(json!({"dataset": "x"}), &[("togl", json!([false, true])), ("depth", json!([1, 2]))]);
        let names: Vec<String> = grid.points().map(|p| p.unwrap().method()).collect();
        assert_eq!(names, ["GCN-1", "GCN-2", "GCN-1-TOGL-1", "GCN-2-TOGL-1"]);
    }

    #[test]
    fn a_huge_grid_is_counted_without_being_made() {
        let values: Vec<u32> = (0..1000).collect();
        let axes: Vec<(&str, Value)> =
            ["depth", "lr_patience", "hidden_dim"].map(|n| (n, json!(values))).to_vec();
        let grid = grid(json!({"dataset": "x"}), &axes);
        assert_eq!(grid.count(), 1_000_000_000);
        assert!(grid.points().next().is_some());
    }

    #[test]
    fn a_point_that_does_not_fit_is_named() {
        let axes = [("depth", json!([1, 3])), ("togl_position", json!([3]))];
        let grid = grid(json!({"dataset": "x", "togl": true}), &axes);
        let error = grid.points().find_map(Result::err).expect("position 3 of depth 1");
        assert!(
            error.to_string().starts_with("grid point depth=1, togl_position=3: setting `togl_position`")
        );
    }

    proptest! {
        #[test]
        fn as_many_points_come_out_as_were_counted(depths in 1usize..6, patiences in 1usize..5, seeds in 1usize..4) {
            let list = |n: usize| json!((1..=n).collect::<Vec<_>>());
            let axes =
                [("depth", list(depths)), ("lr_patience", list(patiences)), ("data_seed", list(seeds))];
            let grid = grid(json!({"dataset": "x"}), &axes);
            let ids: std::collections::BTreeSet<_> = grid.points().map(|p| p.unwrap().id()).collect();
            prop_assert_eq!(ids.len() as u128, grid.count());
            let mut reordered = grid.clone();
            reordered.axes.reverse();
            let again: std::collections::BTreeSet<_> = reordered.points().map(|p| p.unwrap().id()).collect();
            prop_assert_eq!(ids, again, "the order of keys must not change identities");
        }
    }
}
