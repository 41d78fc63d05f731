//! The paper as sweeps: every printed cell is there, every printed label means some of the sweep's trials, and every data
//! set is one that the sweep trains.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use togl_sweeps::SweepSpec;
use togl_sweeps::spec::PlannedTrial;

mod files;

fn paper() -> Vec<(String, SweepSpec, Vec<PlannedTrial>)> {
    let paths = files::shipped().into_iter().filter(|path| path.starts_with(files::root().join("paper")));
    let read = |path: std::path::PathBuf| {
        let spec = SweepSpec::parse(&fs::read_to_string(&path).unwrap()).unwrap();
        let trials = spec.trials.clone();
        (path.file_stem().unwrap().display().to_string(), spec, trials)
    };
    paths.map(read).collect()
}

#[test]
fn every_printed_cell_is_there() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for published in paper().iter().flat_map(|(_, spec, _)| &spec.published) {
        counts.insert(published.table.clone(), published.cells.len());
    }
    let expected = [
        ("benchmark-more-layers", 24),
        ("benchmark-static", 96),
        ("figure1", 90),
        ("placement", 96),
        ("placement-necklaces", 8),
        ("spheres-torus", 4),
        ("structural-extended", 252),
        ("structural-more-layers", 24),
        ("structural-static", 54),
        ("table1", 36),
        ("table2", 64),
        ("table3", 19),
    ];
    assert_eq!(counts, expected.map(|(table, cells)| (table.to_owned(), cells)).into());
}

#[test]
fn every_label_means_some_trials() {
    for (file, spec, trials) in paper() {
        for published in &spec.published {
            for (label, condition) in &published.methods {
                assert!(trials.iter().any(|trial| condition.holds(&trial.config)), "{file}: {label}");
            }
            let known: BTreeSet<&str> = published.methods.iter().map(|(label, _)| label.as_str()).collect();
            for cell in &published.cells {
                assert!(known.contains(cell.method.as_str()), "{file}: {}", cell.method);
            }
        }
    }
}

/// A cell of ours that print has: its label and data set lead to a trial.
#[test]
fn every_printed_cell_has_a_trial() {
    for (file, spec, trials) in paper() {
        for published in &spec.published {
            for cell in &published.cells {
                let Some((_, condition)) = published.methods.iter().find(|(label, _)| *label == cell.method)
                else {
                    continue;
                };
                let renamed = published.datasets.iter().find(|(printed, _)| *printed == cell.dataset);
                let dataset = renamed.map_or(cell.dataset.as_str(), |(_, ours)| ours);
                let found = trials.iter().any(|trial| {
                    condition.holds(&trial.config)
                        && trial.config.dataset == dataset
                        && cell.depth.is_none_or(|depth| depth == trial.config.depth)
                        && cell.position.is_none_or(|place| trial.config.layers_around_togl().0 == place)
                });
                assert!(found, "{file}, {}: {} on {}", published.table, cell.method, cell.dataset);
            }
        }
    }
}
