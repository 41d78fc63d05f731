//! Requirements of the choice in a table block: by validation only, within a split, among the named settings only,
//! nothing chosen where there is no alternative, and no choice among fewer candidates than planned.

use togl_sweeps::TrialConfig;
use togl_sweeps::trial::Backbone;

use super::*;
use crate::frame::FoldRow;
use crate::table::{Mark, Table};
use crate::test_folds::{fold, frame, plan, trial};

fn selection() -> Selection {
    Selection { among: Some(vec!["deepset".to_owned()]), by: Metric::LastValidationAccuracy, per: Per::Split }
}

fn pair() -> (TrialConfig, TrialConfig) {
    let plain = TrialConfig { togl: true, ..trial("DD", Backbone::Gcn, 4) };
    (plain.clone(), TrialConfig { deepset: true, ..plain })
}

/// A fold with this validation accuracy in the last epoch and this test accuracy.
fn judged(position: u64, config: &TrialConfig, split: u32, validation: f64, test: f64) -> FoldRow {
    let mut row = fold(position, config, split, test);
    row.result.last_validation.accuracy = validation;
    row
}

fn table(rows: Vec<FoldRow>, plan: &Plan) -> Table {
    Table::of_block(&frame(rows), plan, &TableSpec::default(), Some(&selection())).unwrap()
}

#[test]
fn in_each_split_the_better_validation_is_shown_whatever_the_test_says() {
    let (plain, deepset) = pair();
    let rows = vec![
        judged(0, &plain, 0, 0.9, 0.1),
        judged(0, &plain, 1, 0.2, 0.8),
        judged(1, &deepset, 0, 0.3, 0.7),
        judged(1, &deepset, 1, 0.6, 0.3),
    ];
    let table = table(rows, &plan(&[(&plain, 2), (&deepset, 2)]));
    assert_eq!(table.rows.len(), 1);
    assert_eq!(table.rows[0].labels, ["GCN-4-TOGL-1 [best of deepset]"]);
    let cell = &table.rows[0].cells[0];
    assert_eq!((cell.n, cell.planned, cell.values.clone()), (2, 2, vec![10.0, 30.0]));
    assert!(table.notes.iter().any(|note| note.starts_with("chosen: in each split the best of deepset")));
}

#[test]
fn of_equal_runs_the_last_is_chosen() {
    let (plain, deepset) = pair();
    let rows = vec![judged(0, &plain, 0, 0.5, 0.1), judged(1, &deepset, 0, 0.5, 0.7)];
    assert_eq!(table(rows, &plan(&[(&plain, 1), (&deepset, 1)])).rows[0].cells[0].values, [70.0]);
}

#[test]
fn a_split_with_an_unfinished_candidate_counts_as_missing() {
    let (plain, deepset) = pair();
    let rows = vec![
        judged(0, &plain, 0, 0.9, 0.1),
        judged(0, &plain, 1, 0.9, 0.8),
        judged(1, &deepset, 0, 0.3, 0.7),
    ];
    let table = table(rows, &plan(&[(&plain, 2), (&deepset, 2)]));
    let cell = &table.rows[0].cells[0];
    assert_eq!((cell.n, cell.planned), (1, 2));
    assert!(cell.marks.contains(&Mark::Incomplete));
    assert_eq!(table.unplanned, 0);
}

#[test]
fn a_trial_without_an_alternative_keeps_all_its_seeds() {
    let gcn = trial("MNIST", Backbone::Gcn, 4);
    let mut rows: Vec<FoldRow> = (0..3).map(|_| judged(0, &gcn, 0, 0.5, 0.5)).collect();
    rows.iter_mut().zip(0..).for_each(|(row, seed)| row.fold.seed = seed);
    let frame = frame(rows);
    let plan = Plan::of_frame("seeds", &frame).unwrap();
    let table = Table::of_block(&frame, &plan, &TableSpec::default(), Some(&selection())).unwrap();
    assert_eq!((table.rows[0].labels[0].as_str(), table.rows[0].cells[0].n), ("GCN-4", 3));
}

#[test]
fn runs_of_one_split_are_one_choice_even_over_seeds() {
    let (plain, deepset) = pair();
    let mut rows = Vec::new();
    for seed in 0..4 {
        for (position, config) in [(0, &plain), (1, &deepset)] {
            let mut row = judged(position, config, 0, 0.1 * (seed + position) as f64, 0.2 * seed as f64);
            row.fold.seed = seed;
            rows.push(row);
        }
    }
    let frame = frame(rows);
    let plan = Plan::of_frame("one split", &frame).unwrap();
    let table = Table::of_block(&frame, &plan, &TableSpec::default(), Some(&selection())).unwrap();
    let cell = &table.rows[0].cells[0];
    assert_eq!((cell.n, cell.planned, cell.std), (1, 1, None), "the best of eight runs is one run");
    assert!((cell.values[0] - 60.0).abs() < 1e-9, "{:?}", cell.values);
}

/// An import has no plan: that a candidate is missing shows only where its rival has the split.
#[test]
fn of_saved_folds_a_split_with_one_candidate_counts_as_missing() {
    let (plain, deepset) = pair();
    let mut rows: Vec<FoldRow> = (0..4).map(|split| judged(0, &plain, split, 0.5, 0.1)).collect();
    rows.extend([0, 3].map(|split| judged(1, &deepset, split, 0.9, 0.7)));
    rows.extend((0..5).map(|split| judged(2, &trial("DD", Backbone::Gin, 4), split, 0.5, 0.6)));
    let frame = frame(rows);
    let plan = Plan::of_frame("saved", &frame).unwrap();
    let table = Table::of_block(&frame, &plan, &TableSpec::default(), Some(&selection())).unwrap();
    let cell = &table.rows[0].cells[0];
    assert_eq!((cell.n, cell.planned), (2, 5), "two of four splits were a choice, and GIN has a fifth");
    assert!(cell.values.iter().all(|value| (value - 70.0).abs() < 1e-9), "{:?}", cell.values);
    assert!(cell.marks.contains(&Mark::Incomplete) && !cell.best);
    assert!(table.rows[1].cells[0].is_complete());
}

/// The same folds as an export without `val_acc` gives them, from this row on.
fn silent_from(row: usize, frame: &FoldFrame) -> FoldFrame {
    let mut data = frame.data().clone();
    let name = "last_validation_accuracy";
    let values: Vec<Option<f64>> = data.column(name).unwrap().f64().unwrap().iter().take(row).collect();
    let values = values.into_iter().chain(std::iter::repeat(None)).take(frame.len());
    data.with_column(polars::prelude::Column::new(name.into(), values.collect::<Vec<_>>())).unwrap();
    FoldFrame::from_data(&data, "silent").unwrap()
}

#[test]
fn what_decides_is_named_where_it_is_missing() {
    let (plain, deepset) = pair();
    let deeper = [TrialConfig { depth: 5, ..plain.clone() }, TrialConfig { depth: 5, ..deepset.clone() }];
    let rows = [&plain, &deepset, &deeper[0], &deeper[1]].into_iter().zip(0..);
    let frame = frame(rows.map(|(config, position)| judged(position, config, 0, 0.5, 0.6)));
    let of = |frame: &FoldFrame| {
        let plan = Plan::of_frame("saved", frame).unwrap();
        Table::of_block(frame, &plan, &TableSpec::default(), Some(&selection()))
    };
    let error = of(&silent_from(0, &frame)).unwrap_err();
    insta::assert_snapshot!(error, @"cannot choose in group (best of deepset): no fold has a value of `last_validation_accuracy`; exports of Weights & Biases call it `val_acc`");
    let notes = of(&silent_from(2, &frame)).unwrap().notes.join("\n");
    insta::assert_snapshot!(notes, @"
    – folds have finished, but without the values that this cell needs
    ± n/a: one fold has no standard deviation
    chosen: in each split the best of deepset by validation accuracy of the last epoch, of equal runs the last; only where all of them have finished
    no choice in splits where `last_validation_accuracy` is missing (2 finished folds lack it)
    ");
}

#[test]
fn what_is_chosen_among_cannot_label_a_row() {
    let (plain, deepset) = pair();
    let plan = plan(&[(&plain, 1), (&deepset, 1)]);
    let spec = TableSpec { rows: vec!["deepset".to_owned()], ..TableSpec::default() };
    let frame = frame(vec![judged(0, &plain, 0, 0.9, 0.1)]);
    let error = Table::of_block(&frame, &plan, &spec, Some(&selection())).unwrap_err();
    insta::assert_snapshot!(error, @"a row or column of a table with a choice cannot be `deepset`; it is what `select` chooses among; leave it out of rows, columns and group");
}

#[test]
fn a_choice_by_a_test_metric_cannot_be_made() {
    let (plain, _) = pair();
    let frame = frame(vec![judged(0, &plain, 0, 0.9, 0.1)]);
    let by_test = Selection { by: Metric::TestAccuracy, ..selection() };
    assert!(choose(&frame, &plan(&[(&plain, 1)]), &by_test, &TableSpec::default()).is_err());
}

/// Three learning rates: one good in one split only, one best on average, one whose test values are best.
fn rates() -> Vec<TrialConfig> {
    [0.1, 0.01, 0.001].map(|lr| TrialConfig { lr, ..trial("DD", Backbone::Gcn, 4) }).to_vec()
}

fn rate_rows() -> Vec<FoldRow> {
    let values = [[(0.95, 0.5), (0.5, 0.5)], [(0.8, 0.6), (0.82, 0.7)], [(0.6, 0.99), (0.6, 0.99)]];
    let fold = |position: usize, split: usize| {
        let (validation, test) = values[position][split];
        let mut row = fold(position as u64, &rates()[position], split as u32, test);
        row.result.validation.accuracy = validation;
        row
    };
    (0..3).flat_map(|position| (0..2).map(move |split| fold(position, split))).collect()
}

fn one_config() -> Selection {
    Selection { among: None, by: Per::Config.usual_metric(), per: Per::Config }
}

#[test]
fn one_configuration_is_chosen_by_its_mean_validation_over_all_splits() {
    let rates = rates();
    let plan = plan(&[(&rates[0], 2), (&rates[1], 2), (&rates[2], 2)]);
    let frame = frame(rate_rows());
    let table = Table::of_block(&frame, &plan, &TableSpec::default(), Some(&one_config())).unwrap();
    let cell = &table.rows[0].cells[0];
    assert_eq!((table.rows.len(), cell.n, cell.mean.map(f64::round)), (1, 2, Some(65.0)));
    assert!(cell.folds.iter().all(|fold| fold.trial == rates[1].id()), "the same trial in both splits");
    assert!(
        table
            .notes
            .iter()
            .any(|note| note.starts_with("chosen: for each cell one configuration, the best of lr by"))
    );
    let explained = crate::CellExplanation::of(&table, &frame, "GCN-4", "DD").unwrap();
    assert_eq!(explained.folds[1].chosen["lr"], "0.01");
    assert!(explained.text().contains("lr=0.01"), "{}", explained.text());
    assert!(explained.json().contains(r#""lr": "0.01""#), "{}", explained.json());
}

#[test]
fn a_configuration_that_has_not_finished_is_no_candidate_and_the_cell_says_that_there_were_fewer() {
    let rates = rates();
    let plan = plan(&[(&rates[0], 2), (&rates[1], 2), (&rates[2], 2)]);
    let without = |lost: usize| {
        let rows = rate_rows().into_iter().filter(|row| row.fold.split == 0 || row.position as usize != lost);
        Table::of_block(&frame(rows), &plan, &TableSpec::default(), Some(&one_config())).unwrap()
    };
    let cell = &without(1).rows[0].cells[0];
    assert_eq!((cell.n, cell.folds[0].trial), (2, rates[0].id()), "0.725 on average, the best that is left");
    assert!(cell.marks.contains(&Mark::FewerCandidates) && !cell.is_complete());
    let rows = rate_rows().into_iter().filter(|row| row.fold.split == 0);
    let table = Table::of_block(&frame(rows), &plan, &TableSpec::default(), Some(&one_config())).unwrap();
    assert_eq!(
        (table.rows[0].cells[0].n, table.rows[0].cells[0].planned),
        (0, 2),
        "nothing can be chosen yet"
    );
}

#[test]
fn a_configuration_is_chosen_for_each_label_of_the_table_and_each_data_set() {
    let trials: Vec<TrialConfig> = [("DD", 2, 0.1), ("DD", 2, 0.01), ("DD", 4, 0.1), ("MNIST", 2, 0.1)]
        .map(|(dataset, depth, lr)| TrialConfig { lr, ..trial(dataset, Backbone::Gcn, depth) })
        .to_vec();
    let rows = (0..).zip(&trials).map(|(position, trial)| fold(position, trial, 0, 0.5));
    let planned: Vec<(&TrialConfig, u32)> = trials.iter().map(|trial| (trial, 1)).collect();
    let spec =
        TableSpec { rows: vec!["togl".to_owned()], columns: "depth".to_owned(), ..TableSpec::default() };
    let table = Table::of_block(&frame(rows), &plan(&planned), &spec, Some(&one_config())).unwrap();
    assert_eq!(table.row_settings, ["togl", "dataset"], "data sets are told apart, not chosen among");
    let of = |row: usize, column: usize| table.rows[row].cells[column].folds.first().map(|fold| fold.trial);
    assert_eq!(of(0, 0), Some(trials[1].id()), "of equal ones the last");
    assert_eq!((of(0, 1), of(1, 0), of(1, 1)), (Some(trials[2].id()), Some(trials[3].id()), None));
}

#[test]
fn a_filter_before_the_choice_leaves_the_others_to_be_chosen_among() {
    let (plain, deepset) = pair();
    let rows = vec![judged(0, &plain, 0, 0.9, 0.1), judged(1, &deepset, 0, 0.8, 0.2)];
    let filter = vec![("deepset".to_owned(), vec!["true".to_owned()])];
    let spec = TableSpec { filter, ..TableSpec::default() };
    let table =
        Table::of_block(&frame(rows), &plan(&[(&plain, 1), (&deepset, 1)]), &spec, Some(&selection()))
            .unwrap();
    assert_eq!(table.rows[0].cells[0].mean.map(f64::round), Some(20.0));
}
