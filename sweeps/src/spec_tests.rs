//! What a sweep file may say and how a wrong one is refused.

use super::*;

const GOOD: &str = "\
version: 1
name: good
base: {dataset: necklaces, hidden_dim: 16}
grid:
  togl: [false, true]
  depth: [2, 3]
splits: [42, 43]
seeds: [0, 1, 2]
";

fn refusal(text: &str) -> String {
    SweepSpec::parse(text).unwrap_err().to_string()
}

#[test]
fn a_good_file_is_understood() {
    let spec = SweepSpec::parse(GOOD).unwrap();
    assert_eq!(spec.count_folds(), 24);
    let trials = &spec.trials;
    assert_eq!(trials.len(), 4);
    assert_eq!(trials[3].config.method(), "GCN-3-TOGL-1");
    assert_eq!(spec.folds_of(trials[0].id).count(), 6);
    assert_eq!(spec.table, TableSpec::default());
}

#[test]
fn points_that_are_the_same_trial_are_merged() {
    let text =
        "version: 1\nname: x\nbase: {dataset: cycles}\ngrid: {togl: [false, true], deepset: [false, true]}\n";
    let spec = SweepSpec::parse(text).unwrap();
    assert_eq!(spec.grid.count(), 4);
    let positions: Vec<u64> = spec.trials.iter().map(|t| t.position).collect();
    assert_eq!(positions, [0, 2, 3], "a plain network has no DeepSet");
}

#[test]
fn anchors_and_merge_keys_work() {
    let text = "\
version: 1
name: x
union:
  - base: &b {dataset: cycles, depth: 2, lr: 0.1}
    splits: &s [7, 8]
  - base: {<<: *b, depth: 3}
    splits: *s
";
    let trials = SweepSpec::parse(text).unwrap().trials;
    let seen: Vec<_> = trials.iter().map(|trial| (trial.config.depth, trial.config.lr)).collect();
    assert_eq!(seen, [(2, 0.1), (3, 0.1)]);
}

#[test]
fn a_misspelt_key_is_refused_with_its_place_and_the_nearest_name() {
    assert_eq!(refusal("version: 1\nname: x\ngird: {}\n"), "3:1: unknown key `gird`; did you mean `grid`?");
    let text = "version: 1\nname: x\nbase: {dataset: cycles}\ngrid:\n  dpeth: [1]\n";
    assert_eq!(refusal(text), "5:3: grid.dpeth: no such setting; did you mean `depth`?");
}

#[test]
fn a_wrong_type_is_refused_with_its_place() {
    let text = "version: 1\nname: x\nbase:\n  dataset: cycles\n  depth: deep\n";
    let message = refusal(text);
    assert!(
        message.starts_with("5:10: base.depth: `deep` does not fit; expected a whole number"),
        "{message}"
    );
    let message = refusal("version: 1\nname: x\nbase: {dataset: cycles}\ngrid:\n  depth: 3\n");
    assert!(message.starts_with("5:10: "), "{message}");
}

#[test]
fn a_duplicate_key_is_refused() {
    let text = "version: 1\nname: x\nbase:\n  dataset: cycles\n  lr: 0.1\n  lr: 0.2\n";
    assert_eq!(refusal(text), "6:3: the key `lr` is given twice; keep one of them");
}

#[test]
fn an_empty_grid_is_refused() {
    for (grid, column) in [("{}", 7), ("{depth: []}", 15)] {
        let message = refusal(&format!("version: 1\nname: x\nbase: {{dataset: cycles}}\ngrid: {grid}\n"));
        assert!(message.contains("grid is empty"), "{message}");
        assert!(message.starts_with(&format!("4:{column}: ")), "{message}");
    }
}

#[test]
fn a_grid_of_a_thousand_million_points_is_refused_at_once() {
    let list: Vec<String> = (1..=1000).map(|n| n.to_string()).collect();
    let list = list.join(", ");
    let text = format!(
        "version: 1\nname: x\nbase: {{dataset: cycles}}\ngrid:\n  data_seed: [{list}]\n  lr_patience: [{list}]\n  max_epochs: [{list}]\n"
    );
    let message = refusal(&text);
    assert!(message.starts_with("the sweep has 1000000000 folds"), "{message}");
    assert!(message.contains("limits.max_folds = 100000"), "{message}");
}

#[test]
fn a_version_that_is_not_known_is_refused() {
    assert_eq!(refusal("version: 9\nname: x\n"), "1:10: version 9 is not known; this program reads 1");
    assert!(refusal("name: x\n").contains("begin the file with `version: 1`"));
}

#[test]
fn a_billion_laughs_are_not_laughed() {
    let mut text =
        "version: 1\nname: x\nbase: {dataset: cycles}\ngrid:\n  a: &a [1,1,1,1,1,1,1,1,1,1]\n".to_owned();
    for (last, next) in "abcdefghij".chars().zip("bcdefghijk".chars()) {
        let aliases = vec![format!("*{last}"); 10].join(",");
        text += &format!("  {next}: &{next} [{aliases}]\n");
    }
    SweepSpec::parse(&text).unwrap_err();
}

#[test]
fn garbage_is_refused_without_a_panic() {
    for text in ["", "[", "{", "\t", "- a\n- b", "version: [1", "\u{0}", "version: 1\nname: \"../x\""] {
        SweepSpec::parse(text).unwrap_err();
    }
}
