//! Which settings of the methods that TOGL is compared with cannot be, and what those methods are called.

use crate::datasets::{self, Scoring};
use crate::trial::{Backbone, SettingError, TrialConfig, WlLabels};

/// Refuses combinations of a baseline's settings that cannot be built.
pub(crate) fn check(trial: &TrialConfig) -> Result<(), SettingError> {
    let (model, word) = (trial.model, trial.model.as_str());
    if trial.togl && !model.takes_togl() {
        let reason = format!("`{word}` cannot have a topological layer; set `togl: false` for it");
        return Err(SettingError::new("togl", reason));
    }
    if model.is_kernel() || model.reads_diagrams() {
        check_task(trial)?;
    }
    if model.is_kernel() && trial.svm_c_min > trial.svm_c_max {
        let reason = format!("{} is above `svm_c_max`, which is {}", trial.svm_c_min, trial.svm_c_max);
        return Err(SettingError::new("svm_c_min", reason));
    }
    check_outer_folds(trial)?;
    if model == Backbone::Wl && trial.as_published && trial.depth == 0 {
        let reason = "leaves out the last of `depth` rounds, so it needs a depth of at least 1";
        return Err(SettingError::new("as_published", reason));
    }
    check_labels(trial)
}

/// Unlike other settings of kernels this one is not passed over for networks: it decides who is tested, and methods
/// beside each other would silently be tested on different graphs.
fn check_outer_folds(trial: &TrialConfig) -> Result<(), SettingError> {
    let reason = match trial.outer_folds {
        0 => return Ok(()),
        1 => "one fold leaves nothing to learn from; use 2 or more, or 0 for the data set's own splits"
            .to_owned(),
        _ if trial.model.is_kernel() => return Ok(()),
        folds => format!(
            "only kernels are tested on folds that seeds draw, and `{}` is a network; write \
             `outer_folds: {{values: [{folds}], when: {{model: [wl, wl-oa, ph]}}}}` in `grid`, or keep kernels in a \
             grid of their own (`union`)",
            trial.model.as_str()
        ),
    };
    Err(SettingError::new("outer_folds", reason))
}

/// Refuses a split that is none of the outer folds; where there are none, the data set decides when it is opened.
pub(crate) fn check_split(trial: &TrialConfig, split: u32) -> Result<(), SettingError> {
    let folds = trial.outer_folds;
    if !trial.model.is_kernel() || folds == 0 || split < folds {
        return Ok(());
    }
    let reason = format!(
        "split {split} is not one of {folds} folds; use splits from 0 to {}",
        folds.saturating_sub(1)
    );
    Err(SettingError::new("outer_folds", reason))
}

fn check_task(trial: &TrialConfig) -> Result<(), SettingError> {
    let metric = Scoring::of(&trial.dataset);
    // ROC-AUC needs scores, which a network that reads diagrams has and a vote of support vector machines has not.
    if metric == Scoring::Accuracy || (metric == Scoring::RocAuc && !trial.model.is_kernel()) {
        return Ok(());
    }
    let (word, name, task) = (trial.model.as_str(), datasets::spelled(&trial.dataset), metric.task());
    let reason =
        format!("`{word}` tells classes of graphs apart, and {name} {task}; leave this data set out for it");
    Err(SettingError::new("model", reason))
}

fn check_labels(trial: &TrialConfig) -> Result<(), SettingError> {
    let asked = trial.model.refines_labels() && trial.wl_labels == WlLabels::Node;
    if asked && datasets::find(&trial.dataset).is_some_and(|known| !known.labels) {
        let reason = format!("the nodes of {} have no labels; use `wl_labels: degree`", trial.dataset);
        return Err(SettingError::new("wl_labels", reason));
    }
    Ok(())
}

/// What a method without graph layers is called: `WL-3`, `WL-OA-0..5 (node labels)`, `PH`.
pub(crate) fn name(trial: &TrialConfig) -> String {
    let kernel = match trial.model {
        Backbone::Wl => "WL",
        Backbone::WlOa => "WL-OA",
        Backbone::Ph => return "PH".to_owned(),
        _ => return "PersLay".to_owned(),
    };
    let rounds = trial.rounds();
    let rounds = if trial.choose_rounds { format!("0..{rounds}") } else { rounds.to_string() };
    let labels = if trial.wl_labels == WlLabels::Node { " (node labels)" } else { "" };
    format!("{kernel}-{rounds}{labels}")
}

#[cfg(test)]
#[path = "baselines_tests.rs"]
mod tests;
