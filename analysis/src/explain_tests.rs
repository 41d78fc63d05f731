//! Requirements of explanations: every fold behind a number, with its origin, and cells that can be named.

use togl_sweeps::TrialConfig;
use togl_sweeps::spec::TableSpec;
use togl_sweeps::trial::Backbone;

use super::*;
use crate::test_folds::{folds, frame, plan, trial};

fn two_rates() -> (Table, FoldFrame) {
    let (fast, slow) =
        (trial("DD", Backbone::Gcn, 4), TrialConfig { lr: 1e-4, ..trial("DD", Backbone::Gcn, 4) });
    let mut rows = folds(0, &fast, &[0.5, 0.6]);
    rows.extend(folds(1, &slow, &[0.7]));
    rows[1].result.provenance.commit = "abc".to_owned();
    rows[1].result.provenance.dirty = true;
    let frame = frame(rows);
    let plan = plan(&[(&fast, 2), (&slow, 2)]);
    let spec = Table::separated(&TableSpec::default(), &plan).unwrap();
    (Table::make(&frame, &spec, &plan).unwrap(), frame)
}

#[test]
fn every_fold_behind_a_number_is_listed_with_its_origin() {
    let (table, frame) = two_rates();
    let explanation = CellExplanation::of(&table, &frame, "GCN-4, 0.001", "DD").unwrap();
    insta::assert_snapshot!(explanation.text(), @"
    GCN-4, 0.001 / DD: 55.0000 ± 7.0711 (n=2/2), median 55.0000, interquartile range 5.0000
    ! folds of different code versions

    trial                             split  seed  value    commit       worker  device  data  origin
    131178607643dcf45caeb4621274065a  0      0     50.0000  ?            w1      cpu     data
    131178607643dcf45caeb4621274065a  1      0     60.0000  abc+changes  w1      cpu     data
    version: 0.1.0 (2 folds)
    ");
    let second = &explanation.folds[1];
    assert_eq!((second.commit.as_str(), second.dirty, second.attempt), ("abc", Some(true), Some(1)));
    assert!(explanation.json().contains(r#""data_digest": "data""#));
}

#[test]
fn folds_of_a_program_name_the_interpreter_and_the_packages_that_ran_them() {
    let config = trial("DD", Backbone::Gcn, 4);
    let mut rows = folds(0, &config, &[0.5, 0.6, 0.7]);
    for row in &mut rows[..2] {
        row.result.provenance.code_version =
            "CPython 3.12.1, torch 2.13.0, 40 packages 0123456789ab".to_owned();
    }
    let (frame, plan) = (frame(rows), plan(&[(&config, 3)]));
    let table = Table::make(&frame, &TableSpec::default(), &plan).unwrap();
    let text = CellExplanation::of(&table, &frame, "GCN-4", "DD").unwrap().text();
    assert!(
        text.contains("\nversion: CPython 3.12.1, torch 2.13.0, 40 packages 0123456789ab (2 folds)\n"),
        "{text}"
    );
}

#[test]
fn a_row_may_be_named_by_the_labels_that_tell_it_apart() {
    let (table, frame) = two_rates();
    let by = |row: &str| CellExplanation::of(&table, &frame, row, "DD");
    assert_eq!(by("0.0001").unwrap().n, 1);
    assert_eq!(by("GCN-4,0.0001").unwrap().warnings, ["1 of 2 planned folds have finished"]);
    insta::assert_snapshot!(by("GCN-4").unwrap_err(), @"no single row `GCN-4` in the table; 2 rows fit: `GCN-4, 0.001`; `GCN-4, 0.0001`");
    assert!(by("GIN-4").unwrap_err().to_string().starts_with("no single row `GIN-4` in the table; "));
}

#[test]
fn an_unknown_column_gets_a_hint_and_a_foreign_frame_is_noticed() {
    let (table, full) = two_rates();
    let error = CellExplanation::of(&table, &full, "0.001", "D").unwrap_err();
    assert!(error.to_string().starts_with("no single column `D` in the table; "), "{error}");
    let error = CellExplanation::of(&table, &frame([]), "0.001", "DD").unwrap_err();
    assert!(matches!(error, Error::Empty { .. }), "{error}");
}
