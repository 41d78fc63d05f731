//! Builders of folds for this crate's tests: what a test does not say is the same everywhere.

use togl_sweeps::trial::Backbone;
use togl_sweeps::{FoldKey, TrialConfig, result};

use crate::frame::{FoldFrame, FoldRow};
use crate::plan::Plan;

/// A trial of the small sweep that the tests are about.
pub fn trial(dataset: &str, model: Backbone, depth: u32) -> TrialConfig {
    TrialConfig { dataset: dataset.to_owned(), model, depth, ..TrialConfig::default() }
}

/// A finished fold with seed 0 and the given accuracy everywhere.
pub fn fold(position: u64, config: &TrialConfig, split: u32, accuracy: f64) -> FoldRow {
    FoldRow {
        position,
        fold: FoldKey { trial: config.id(), split, seed: 0 },
        config: config.clone(),
        attempt: 1,
        worker: "w1".to_owned(),
        result: result::example(accuracy),
    }
}

/// Finished folds of splits 0, 1, ... with these accuracies.
pub fn folds(position: u64, config: &TrialConfig, accuracies: &[f64]) -> Vec<FoldRow> {
    (0..).zip(accuracies).map(|(split, accuracy)| fold(position, config, split, *accuracy)).collect()
}

/// A plan of splits 0..`splits` for each trial, at positions 0, 1, ...
pub fn plan(trials: &[(&TrialConfig, u32)]) -> Plan {
    let key = |config: &TrialConfig, split| FoldKey { trial: config.id(), split, seed: 0 };
    let folds = |config: &TrialConfig, splits| (0..splits).map(|split| key(config, split)).collect();
    let trials: Vec<_> = trials.iter().map(|(config, splits)| (*config, folds(config, *splits))).collect();
    plan_of(&trials)
}

/// A plan of these folds of each trial, at positions 0, 1, ...
pub fn plan_of(trials: &[(&TrialConfig, Vec<FoldKey>)]) -> Plan {
    let mut plan = Plan::empty("small sweep");
    for (position, (config, folds)) in (0..).zip(trials) {
        plan.add(position, config.id(), (*config).clone(), folds.iter().copied());
    }
    plan.sort();
    plan
}

/// A frame of these rows.
pub fn frame(rows: impl IntoIterator<Item = FoldRow>) -> FoldFrame {
    FoldFrame::from_rows(rows).unwrap()
}
