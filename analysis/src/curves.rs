//! The learning curves of a sweep's folds: which folds make one line of a figure, and one row an epoch for files. Owns
//! the rule that a line is one trial, or says that it is more; draws nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use polars::prelude::DataFrame;
use togl_sweeps::result::EpochRecord;
use togl_sweeps::settings;
use togl_sweeps::{Scale, TrialConfig};

use crate::atomic;
use crate::columns::{FoldIdentity, column, declared_columns, identity_columns};
use crate::distinct::Distinct;
use crate::error::{Error, Result};
use crate::figure::MOST_CURVES;
use crate::files;
use crate::frame::FoldRow;

/// The folds of one line of a figure, on one data set.
#[derive(Debug, Clone, PartialEq)]
pub struct CurveGroup {
    /// The data set: each has panels of its own.
    pub dataset: String,
    /// What the line is called: the method, what tells its trial from others, and how many folds it is the mean of.
    pub label: String,
    /// The epochs of each fold.
    pub histories: Vec<Vec<EpochRecord>>,
    /// What their values are.
    pub scale: Scale,
}

/// All lines of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct CurveGroups {
    /// In the order of the sweep.
    pub groups: Vec<CurveGroup>,
    /// The settings in which trials of one line differ; empty where each line is one trial.
    pub mixed: Vec<String>,
}

/// The curves of each trial, or of each method where there are more trials than lines that can be told apart.
pub fn grouped(rows: &[FoldRow]) -> CurveGroups {
    let mut ordered: Vec<&FoldRow> = rows.iter().filter(|row| !row.result.history.is_empty()).collect();
    ordered.sort_by_key(|row| (row.position, row.fold.split, row.fold.seed));
    let differ = settings_that_differ(&ordered);
    let by_trial = gathered(&ordered, |config| name(config, &differ));
    match Distinct::of(by_trial.iter().map(|group| group.label.as_str())).len() {
        lines if lines <= MOST_CURVES => CurveGroups { groups: counted(by_trial), mixed: Vec::new() },
        _ => CurveGroups { groups: counted(gathered(&ordered, TrialConfig::method)), mixed: differ },
    }
}

/// The method and what tells a trial from others of that method.
pub fn name(config: &TrialConfig, differ: &[String]) -> String {
    let settings = differ.iter().filter_map(|name| Some(format!("{name} {}", config.show(name)?)));
    std::iter::once(config.method()).chain(settings).collect::<Vec<_>>().join(", ")
}

/// The settings in which trials with one method and data set differ.
pub fn settings_that_differ(rows: &[&FoldRow]) -> Vec<String> {
    let mut configs: Vec<&TrialConfig> = rows.iter().map(|row| &row.config).collect();
    configs.dedup();
    let differs = |name: &str| {
        let mut values: BTreeMap<(String, &str), String> = BTreeMap::new();
        configs.iter().any(|config| {
            let value = config.show(name).unwrap_or_default();
            let known = values.entry((config.method(), &config.dataset)).or_insert_with(|| value.clone());
            *known != value
        })
    };
    let names = settings::names_of(configs.iter().copied()).into_iter();
    names.filter(|name| name != "dataset").filter(|name| differs(name)).collect()
}

fn gathered(rows: &[&FoldRow], label: impl Fn(&TrialConfig) -> String) -> Vec<CurveGroup> {
    let lines = rows.iter().map(|row| ((row.config.dataset.clone(), label(&row.config)), *row));
    let groups = Distinct::grouped(lines).into_iter();
    groups
        .map(|((dataset, label), folds)| CurveGroup {
            dataset,
            label,
            scale: folds.first().map(|row| row.result.scale().clone()).unwrap_or_default(),
            histories: folds.iter().map(|row| row.result.history.clone()).collect(),
        })
        .collect()
}

/// Puts the number of folds behind each label; a label looks the same on all data sets.
fn counted(mut groups: Vec<CurveGroup>) -> Vec<CurveGroup> {
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for group in &groups {
        let n = group.histories.len();
        let range = counts.entry(group.label.clone()).or_insert((n, n));
        *range = (range.0.min(n), range.1.max(n));
    }
    for group in &mut groups {
        group.label = match counts[&group.label] {
            (few, many) if few == many => format!("{} (n={many})", group.label),
            (few, many) => format!("{} (n={few} to {many})", group.label),
        };
    }
    groups
}

/// Writes all curves, one row an epoch with the settings of its trial, in the format that the file's name promises.
pub fn write(rows: &[FoldRow], path: &Path) -> Result<PathBuf> {
    let mut ordered: Vec<&FoldRow> = rows.iter().collect();
    ordered.sort_by_key(|row| (row.position, row.fold.split, row.fold.seed, row.fold.trial));
    let epochs: Vec<(&FoldRow, EpochRecord)> =
        ordered.iter().flat_map(|row| row.result.history.iter().map(|epoch| (*row, *epoch))).collect();
    if epochs.is_empty() {
        return Err(Error::NoValues { what: "the file of learning curves".to_owned(), column: "epoch" });
    }
    let identities: Vec<FoldIdentity<'_>> = epochs.iter().map(|(row, _)| row.identity()).collect();
    let mut columns = identity_columns(&identities);
    columns.extend([
        column("epoch", &epochs, |(_, epoch)| u64::from(epoch.epoch)),
        column("learning_rate", &epochs, |(_, epoch)| epoch.lr),
        column("train_loss", &epochs, |(_, epoch)| epoch.train.loss),
        column("train_accuracy", &epochs, |(_, epoch)| epoch.train.accuracy),
        column("validation_loss", &epochs, |(_, epoch)| epoch.validation.loss),
        column("validation_accuracy", &epochs, |(_, epoch)| epoch.validation.accuracy),
    ]);
    columns.extend(declared_columns(&identities));
    atomic::publish(files::draft(&DataFrame::new(epochs.len(), columns)?, path)?)
}

#[cfg(test)]
mod tests {
    use togl_sweeps::trial::Backbone;

    use super::*;
    use crate::test_folds::{folds, trial};

    /// Two folds for each of so many learning rates.
    fn rates(count: u32) -> Vec<FoldRow> {
        let base = trial("DD", Backbone::Gcn, 4);
        let config = |at: u32| TrialConfig { lr: f64::from(at + 1) / 1000.0, ..base.clone() };
        (0..count).flat_map(|at| folds(u64::from(at), &config(at), &[0.5, 0.7])).collect()
    }

    #[test]
    fn trials_that_differ_in_a_setting_have_a_line_each_that_says_so() {
        let mut rows = rates(2);
        rows.extend(folds(9, &trial("DD", Backbone::Gin, 4), &[0.5]));
        let curves = grouped(&rows);
        let labels: Vec<&str> = curves.groups.iter().map(|group| group.label.as_str()).collect();
        assert_eq!(labels, ["GCN-4, lr 0.001 (n=2)", "GCN-4, lr 0.002 (n=2)", "GIN-4, lr 0.001 (n=1)"]);
        assert!(curves.mixed.is_empty());
    }

    #[test]
    fn more_trials_than_lines_are_named_groups() {
        let curves = grouped(&rates(30));
        assert_eq!((curves.groups.len(), curves.groups[0].label.as_str()), (1, "GCN-4 (n=60)"));
        assert_eq!(curves.mixed, ["lr"]);
    }

    #[test]
    fn a_file_of_curves_has_a_row_an_epoch_with_the_settings_of_its_trial() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(&rates(2), &folder.path().join("curves.csv")).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        let (header, lines) = text.split_once('\n').unwrap();
        assert!(header.starts_with("position,trial,split,seed,method,dataset,"), "{header}");
        assert!(
            header.ends_with(
                ",epoch,learning_rate,train_loss,train_accuracy,validation_loss,validation_accuracy"
            )
        );
        assert_eq!(lines.lines().count(), 4, "the example has one epoch: {lines}");
        assert!(lines.lines().next().unwrap().ends_with(",0,0.001,0.5,0.5,0.5,0.5"), "{lines}");
        assert!(
            write(&rates(1), &folder.path().join("curves.parquet")).unwrap().metadata().unwrap().len() > 0
        );
        let mut without = rates(1);
        without.iter_mut().for_each(|row| row.result.history.clear());
        assert!(matches!(write(&without, &folder.path().join("x.parquet")), Err(Error::NoValues { .. })));
    }
}
