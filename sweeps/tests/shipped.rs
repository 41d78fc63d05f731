//! The sweep files that we ship: each is understood, and its identities are pinned, so that an upgrade which would
//! silently train everything again fails here.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::PathBuf;

use togl_sweeps::{PlanCounts, SweepSpec};

mod files;

/// `file: trials, folds, digest of all trial ids`, one line a file.
fn summary() -> String {
    let root = files::root();
    let line = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let spec = SweepSpec::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let trials = &spec.trials;
        let ids: String = trials.iter().map(|trial| trial.id.to_string()).collect();
        let digest = &blake3::hash(ids.as_bytes()).to_hex()[..16];
        let folds: usize = trials.iter().map(|trial| spec.folds_of(trial.id).count()).sum();
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        format!("{name}: {} trials, {folds} folds, {digest}\n", trials.len())
    };
    files::shipped().iter().map(line).collect()
}

#[test]
fn shipped_sweeps_are_understood_and_their_identities_are_pinned() {
    let pinned = fs::read_to_string(files::root().join("tests/shipped.txt")).unwrap();
    assert_eq!(summary(), pinned, "if a change of identities is meant, update sweeps/tests/shipped.txt");
}

/// Sweeps to which methods for comparison were added train the networks that they trained before.
#[test]
fn the_identities_of_networks_do_not_depend_on_what_they_are_compared_with() {
    for (file, pinned) in [
        ("paper/figure1.yaml", "26ab8752203fc554"),
        ("paper/table2-benchmark.yaml", "0a87e318679fb5ce"),
        ("paper/table3-other-methods.yaml", "bac4edde2307da0c"),
    ] {
        let spec = SweepSpec::parse(&fs::read_to_string(files::root().join(file)).unwrap()).unwrap();
        let trials = &spec.trials;
        let networks = trials.iter().filter(|trial| trial.config.model.takes_togl());
        let ids: String = networks.map(|trial| trial.id.to_string()).collect();
        assert_eq!(blake3::hash(ids.as_bytes()).to_hex()[..16], *pinned, "{file}");
    }
}

#[test]
fn every_shipped_sweep_can_be_planned() {
    for path in files::shipped() {
        let spec = SweepSpec::parse(&fs::read_to_string(&path).unwrap()).unwrap();
        let plan = PlanCounts::of(&spec, []);
        let folds: usize = spec.trials.iter().map(|trial| spec.folds_of(trial.id).count()).sum();
        assert_eq!((plan.to_do, plan.folds), (folds as u64, folds as u64), "{}", path.display());
        assert!(u128::from(plan.folds) <= spec.count_folds(), "{}", path.display());
    }
}

/// The blocks of the documentation, with what a fragment leaves out put in front.
#[test]
fn what_the_documentation_shows_is_understood() {
    let Ok(text) = fs::read_to_string(files::root().join("../docs/sweep-files.md")) else {
        return; // the crate alone, without the documentation of the project
    };
    let blocks: Vec<&str> =
        text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 4, "the documentation has lost its examples");
    for block in blocks {
        let head = if block.contains("version:") { "" } else { "version: 1\nname: x\n" };
        let base = if block.contains("dataset") { "" } else { "base: {dataset: cycles}\n" };
        let text = format!("{head}{base}{block}");
        SweepSpec::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}
