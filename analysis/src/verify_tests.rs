//! Requirements of verification: a table that still comes out says so, and every change is named.

use togl_sweeps::TrialConfig;
use togl_sweeps::trial::Backbone;

use super::*;
use crate::frame::FoldRow;
use crate::render;
use crate::test_folds::{folds, frame, plan, trial};

fn slow() -> TrialConfig {
    TrialConfig { lr: 1e-5, ..trial("DD", Backbone::Gcn, 4) }
}

fn rows() -> Vec<FoldRow> {
    let mut rows = folds(0, &trial("DD", Backbone::Gcn, 4), &[0.5, 0.61, 0.1 + 0.2]);
    rows.extend(folds(1, &slow(), &[0.7, 1.0 / 3.0]));
    rows
}

fn table(rows: Vec<FoldRow>, metric: Metric) -> Table {
    let plan = plan(&[(&trial("DD", Backbone::Gcn, 4), 3), (&slow(), 3)]);
    let spec = TableSpec { metric, ..TableSpec::default() };
    let spec = Table::separated(&spec, &plan).unwrap();
    Table::make(&frame(rows), &spec, &plan).unwrap()
}

fn saved(metric: Metric) -> SavedTable {
    SavedTable::parse(&render::json(&table(rows(), metric)), "`saved.json`").unwrap()
}

#[test]
fn a_table_that_still_comes_out_is_verified_to_the_last_digit() {
    let verification = saved(Metric::TestAccuracy).verify(&table(rows(), Metric::TestAccuracy));
    assert!(verification.holds(), "{verification}");
    assert_eq!(verification.same, 2);
}

#[test]
fn the_table_block_is_read_back_from_the_saved_table() {
    let spec = saved(Metric::TrainAccuracy).spec();
    assert_eq!((spec.rows, spec.columns), (vec!["method".to_owned(), "lr".to_owned()], "dataset".to_owned()));
    assert_eq!(spec.metric, Metric::TrainAccuracy);
}

#[test]
fn changed_values_new_folds_and_lost_cells_are_told_apart() {
    let mut changed = rows();
    changed[0].result.test.accuracy = 0.9;
    changed.extend(folds(1, &slow(), &[0.5, 0.5, 0.5]).split_off(2));
    let verification = saved(Metric::TestAccuracy).verify(&table(changed, Metric::TestAccuracy));
    assert!(!verification.holds() && verification.json().contains(r#""added""#));
    insta::assert_snapshot!(verification, @"
    0 of 2 cells are as saved
    (GCN-4, 0.00001, DD): 51.666666666666664 ± 25.927248643506747 (n=2) → 51.11111111111111 ± 18.358568490953676 (n=3); folds added: 1, removed: 0
    (GCN-4, 0.001, DD): 47 ± 15.71623364550171 (n=3) → 60.333333333333336 ± 30.0055550412475 (n=3); same folds, other values
    ");
    let lost = saved(Metric::TestAccuracy);
    let fewer = Table { rows: Vec::new(), ..table(rows(), Metric::TestAccuracy) };
    assert_eq!(lost.verify(&fewer).changes.iter().filter(|change| change.new.is_none()).count(), 2);
}

#[test]
fn the_table_of_a_layout_is_verified_by_what_was_trained_not_by_what_is_printed() {
    let config = TrialConfig { features: togl_sweeps::trial::Features::Random, togl: true, ..slow() };
    let frame = frame(folds(0, &config, &[0.5, 0.75]));
    let layouts = [crate::Layout::Table1, crate::Layout::StructuralExtended];
    for table in layouts.map(|layout| layout.make(&frame).unwrap()) {
        let saved = SavedTable::parse(&render::json(&table), "`saved.json`").unwrap();
        assert!(saved.verify(&table).holds(), "{}", saved.verify(&table));
    }
}

#[test]
fn what_is_not_a_saved_table_is_refused_with_its_name() {
    let refusal = |text: &str| SavedTable::parse(text, "`x.json`").unwrap_err().to_string();
    insta::assert_snapshot!(refusal("[]"), @"`x.json` is not a saved table: it has no cells; save one with `--format json`");
    insta::assert_snapshot!(refusal(r#"[{"dataset":"DD","mean":1.0}]"#), @"`x.json` is not a saved table: cell 1 lacks a value; save one with `--format json`");
    assert!(refusal("{").contains("`x.json` is not a saved table"));
}
