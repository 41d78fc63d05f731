//! Requirements of tables: honest cells, winners, and independence of the order of arrival.

use togl_sweeps::trial::Backbone;
use togl_sweeps::{SweepSpec, TrialConfig};

use super::*;
use crate::test_folds::{fold, folds, frame, plan, trial};

fn gcn() -> TrialConfig {
    trial("DD", Backbone::Gcn, 4)
}

fn gin() -> TrialConfig {
    trial("DD", Backbone::Gin, 4)
}

#[test]
fn a_complete_cell_has_mean_and_sample_deviation_in_percent() {
    let frame = frame(folds(0, &gcn(), &[0.5, 0.6, 0.7]));
    let table = Table::make(&frame, &TableSpec::default(), &plan(&[(&gcn(), 3)])).unwrap();
    let cell = &table.rows[0].cells[0];
    assert_eq!((table.rows[0].labels[0].as_str(), table.columns[0].label.as_str()), ("GCN-4", "DD"));
    assert!((cell.mean.unwrap() - 60.0).abs() < 1e-12 && (cell.std.unwrap() - 10.0).abs() < 1e-12);
    assert_eq!((cell.n, cell.planned, cell.marks.len(), cell.best), (3, 3, 0, false));
    assert_eq!(cell.folds, frame.keys().unwrap());
    insta::assert_snapshot!(table.caption, @"Test accuracy of the best checkpoint in percent, mean ± sample standard deviation (divisor n - 1) over 3 folds.");
}

#[test]
fn a_table_does_not_depend_on_the_order_of_arrival() {
    let accuracies: Vec<f64> = (1..=10).map(|n| 1.0 / f64::from(n + 2)).collect();
    let mut rows = folds(0, &gcn(), &accuracies);
    rows.extend(folds(1, &gin(), &accuracies));
    let plan = plan(&[(&gcn(), 10), (&gin(), 10)]);
    let table = Table::make(&frame(rows.clone()), &TableSpec::default(), &plan).unwrap();
    rows.reverse();
    rows.rotate_left(7);
    assert_eq!(Table::make(&frame(rows), &TableSpec::default(), &plan).unwrap(), table);
}

#[test]
fn an_incomplete_cell_is_marked_and_does_not_compete() {
    let mut rows = folds(0, &gcn(), &[0.9, 0.9]);
    rows.extend(folds(1, &gin(), &[0.5, 0.5, 0.5]));
    rows.extend(folds(2, &trial("DD", Backbone::Gat, 4), &[0.4, 0.4, 0.4]));
    let plan = plan(&[(&gcn(), 3), (&gin(), 3), (&trial("DD", Backbone::Gat, 4), 3)]);
    let table = Table::make(&frame(rows), &TableSpec::default(), &plan).unwrap();
    let cells: Vec<&Cell> = table.rows.iter().map(|row| &row.cells[0]).collect();
    assert_eq!((cells[0].n, cells[0].planned, cells[0].best), (2, 3, false));
    assert!(cells[0].marks.contains(&Mark::Incomplete));
    assert_eq!((cells[1].best, cells[2].best), (true, false));
}

#[test]
fn a_planned_cell_without_results_is_there_and_empty() {
    let table = Table::make(&frame([]), &TableSpec::default(), &plan(&[(&gcn(), 3)])).unwrap();
    let cell = &table.rows[0].cells[0];
    assert_eq!((cell.mean, cell.std, cell.n, cell.planned), (None, None, 0, 3));
    assert_eq!(table.notes, ["– planned, but no fold has finished"]);
}

#[test]
fn one_fold_has_no_deviation_and_the_caption_says_so() {
    let table =
        Table::make(&frame(folds(0, &gcn(), &[0.5])), &TableSpec::default(), &plan(&[(&gcn(), 1)])).unwrap();
    assert_eq!((table.rows[0].cells[0].mean, table.rows[0].cells[0].std), (Some(50.0), None));
    insta::assert_snapshot!(table.caption, @"Test accuracy of the best checkpoint in percent, of one fold each (no standard deviation).");
}

#[test]
fn equal_means_win_together_and_nearly_equal_ones_do_not() {
    let gat = trial("DD", Backbone::Gat, 4);
    let mut rows = folds(0, &gcn(), &[0.1, 0.2, 0.6]);
    rows.extend(folds(1, &gin(), &[0.6, 0.2, 0.1]));
    rows.extend(folds(2, &gat, &[0.6, 0.2, 0.099_99]));
    let plan = plan(&[(&gcn(), 3), (&gin(), 3), (&gat, 3)]);
    let table = Table::make(&frame(rows), &TableSpec::default(), &plan).unwrap();
    let best: Vec<bool> = table.rows.iter().map(|row| row.cells[0].best).collect();
    assert_eq!(best, [true, true, false], "although all three print 30.0");
}

#[test]
fn a_cell_of_different_code_data_devices_or_numerics_is_marked() {
    let marks_after = |change: fn(&mut togl_sweeps::FoldResult)| {
        let mut rows = folds(0, &gcn(), &[0.5, 0.6]);
        change(&mut rows[1].result);
        let table = Table::make(&frame(rows), &TableSpec::default(), &plan(&[(&gcn(), 2)])).unwrap();
        table.rows[0].cells[0].marks.iter().copied().collect::<Vec<_>>()
    };
    assert_eq!(marks_after(|_| ()), []);
    assert_eq!(marks_after(|result| result.provenance.code_version = "0.2.0".to_owned()), [Mark::MixedCode]);
    assert_eq!(marks_after(|result| result.provenance.commit = "abc".to_owned()), [Mark::MixedCode]);
    assert_eq!(marks_after(|result| result.provenance.dirty = true), [Mark::MixedCode]);
    assert_eq!(marks_after(|result| result.data_digest = "other".to_owned()), [Mark::MixedData]);
    assert_eq!(marks_after(|result| result.provenance.device = "cuda".to_owned()), [Mark::MixedDevices]);
    let other_processor = marks_after(|result| result.provenance.processor = "avx2".to_owned());
    assert_eq!(other_processor, [Mark::MixedDevices]);
    assert_eq!(marks_after(|result| result.numerics += 1), [Mark::MixedNumerics]);
}

#[test]
fn trials_that_fall_into_one_cell_are_refused_with_the_setting_to_add() {
    let (fast, slow) = (gcn(), TrialConfig { lr: 1e-4, ..gcn() });
    let plan = plan(&[(&fast, 2), (&slow, 2)]);
    let mut rows = folds(0, &fast, &[0.5, 0.6]);
    rows.extend(folds(1, &slow, &[0.7, 0.8]));
    let frame = frame(rows);
    let error = Table::make(&frame, &TableSpec::default(), &plan).unwrap_err();
    insta::assert_snapshot!(error, @"cell (GCN-4, DD) mixes 2 trials, which differ in `lr`; add what tells them apart to the table's `rows`, or keep one value of it with a `filter`");
    let spec = Table::separated(&TableSpec::default(), &plan).unwrap();
    assert_eq!(spec.rows, ["method", "lr"]);
    let table = Table::make(&frame, &spec, &plan).unwrap();
    let labels: Vec<&[String]> = table.rows.iter().map(|row| row.labels.as_slice()).collect();
    assert_eq!(labels, [["GCN-4", "0.001"], ["GCN-4", "0.0001"]]);
    assert_eq!(Table::separated(&spec, &plan).unwrap(), spec, "nothing is added twice");
}

#[test]
fn rows_and_columns_come_in_the_order_of_the_sweep() {
    let trials =
        [trial("ENZYMES", Backbone::Gin, 2), trial("DD", Backbone::Gin, 2), trial("DD", Backbone::Gcn, 1)];
    let planned: Vec<_> = trials.iter().map(|trial| (trial, 1)).collect();
    let table = Table::make(&frame([]), &TableSpec::default(), &plan(&planned)).unwrap();
    let columns: Vec<&str> = table.columns.iter().map(|column| column.label.as_str()).collect();
    let rows: Vec<&str> = table.rows.iter().map(|row| row.labels[0].as_str()).collect();
    assert_eq!((columns, rows), (vec!["ENZYMES", "DD"], vec!["GIN-2", "GCN-1"]));
    assert_eq!(table.rows[1].cells[0].planned, 0, "ENZYMES with GCN-1 is not planned");
}

#[test]
fn results_outside_the_plan_are_left_out_and_said_to_be() {
    let rows = folds(0, &gcn(), &[0.5, 0.6]).into_iter().chain([fold(1, &gin(), 0, 0.9)]);
    let table = Table::make(&frame(rows), &TableSpec::default(), &plan(&[(&gcn(), 2)])).unwrap();
    assert_eq!(table.rows.len(), 1);
    assert_eq!(table.notes, ["1 finished fold is not part of the plan and is left out"]);
}

#[test]
fn the_metric_is_the_one_asked_for() {
    let mut rows = folds(0, &gcn(), &[0.5, 0.5]);
    rows.iter_mut().for_each(|row| row.result.last_validation.accuracy = 0.25);
    let spec = TableSpec { metric: Metric::LastValidationAccuracy, ..TableSpec::default() };
    let table = Table::make(&frame(rows), &spec, &plan(&[(&gcn(), 2)])).unwrap();
    assert_eq!(table.rows[0].cells[0].mean, Some(25.0));
    assert!(table.caption.starts_with("Validation accuracy of the last epoch in percent"));
}

#[test]
fn a_fold_whose_metric_is_unknown_counts_as_not_finished() {
    use polars::prelude::*;
    let known = frame(folds(0, &gcn(), &[0.5, 0.6]));
    let hole = when(col("split").eq(lit(1_u64))).then(lit(f64::NAN)).otherwise(col("test_accuracy"));
    let data = known.data().clone().lazy().with_column(hole.alias("test_accuracy")).collect().unwrap();
    let frame = FoldFrame::from_data(&data, "test").unwrap();
    let table = Table::make(&frame, &TableSpec::default(), &plan(&[(&gcn(), 2)])).unwrap();
    let cell = &table.rows[0].cells[0];
    assert_eq!((cell.mean, cell.n, cell.planned, cell.folds.len()), (Some(50.0), 1, 2, 1));
}

#[test]
fn a_sweep_is_its_own_plan() {
    let text = "version: 1\nname: two-depths\nbase: {dataset: DD}\ngrid: {depth: [2, 3]}\nsplits: [0, 1, 2]\n\
                seeds: [0, 1]\ntable: {rows: [depth], columns: dataset}\n";
    let sweep = SweepSpec::parse(text).unwrap();
    let table = Table::make(&frame([]), &sweep.table, &Plan::of_sweep(&sweep)).unwrap();
    assert_eq!(table.title, "two-depths");
    let planned: Vec<usize> = table.cells().map(|(_, _, cell)| cell.planned).collect();
    assert_eq!(planned, [6, 6]);
}

#[test]
fn an_unknown_setting_and_an_empty_plan_are_refused() {
    let spec = TableSpec { rows: vec!["metod".to_owned()], ..TableSpec::default() };
    let error = Table::make(&frame([]), &spec, &plan(&[(&gcn(), 1)])).unwrap_err();
    insta::assert_snapshot!(error, @"no setting `metod`; did you mean `method`?");
    let error = Table::make(&frame([]), &TableSpec::default(), &plan(&[])).unwrap_err();
    insta::assert_snapshot!(error, @"the plan of `small sweep` has no folds; is it the right one, and has anything finished yet?");
}

#[test]
fn a_setting_named_as_row_and_as_column_only_makes_columns() {
    let spec = TableSpec { rows: vec!["dataset".to_owned()], ..TableSpec::default() };
    let table = Table::make(&frame([]), &spec, &plan(&[(&gcn(), 1)])).unwrap();
    assert!(table.row_settings.is_empty());
    assert_eq!((table.rows.len(), table.columns.len()), (1, 1));
}

#[test]
fn after_a_choice_only_what_was_chosen_among_may_differ_within_a_cell() {
    let (fast, slow) = (gcn(), TrialConfig { lr: 1e-4, ..gcn() });
    let deep = TrialConfig { hidden_dim: 64, ..gin() };
    let frame = frame([
        fold(0, &fast, 0, 0.5),
        fold(1, &slow, 1, 0.7),
        fold(2, &gin(), 0, 0.1),
        fold(3, &deep, 1, 0.1),
    ]);
    let plan = Plan::of_frame("chosen", &frame).unwrap();
    let make = |among: &[&str]| {
        let among: Vec<String> = among.iter().map(|name| (*name).to_owned()).collect();
        Table::make_after_choice(&frame, &TableSpec::default(), &plan, &among)
    };
    let table = make(&["lr", "hidden_dim"]).unwrap();
    assert_eq!((table.rows[0].cells[0].n, table.rows[0].cells[0].mean), (2, Some(60.0)));
    let error = make(&["lr"]).unwrap_err();
    assert!(
        error.to_string().starts_with("cell (GIN-4, DD) mixes 2 trials, which differ in `hidden_dim`"),
        "{error}"
    );
}

#[test]
fn a_filter_leaves_only_trials_with_these_settings_and_counts_nothing_as_unplanned() {
    let (shallow, deep) = (trial("DD", Backbone::Gcn, 2), trial("DD", Backbone::Gcn, 4));
    let mut rows = folds(0, &shallow, &[0.5, 0.6]);
    rows.extend(folds(1, &deep, &[0.7, 0.8]));
    let spec = TableSpec { filter: vec![("depth".to_owned(), vec!["4".to_owned()])], ..TableSpec::default() };
    let plan = plan(&[(&shallow, 2), (&deep, 2)]);
    let table = Table::of_block(&frame(rows.clone()), &plan, &spec, None).unwrap();
    let labels: Vec<&str> = table.rows.iter().map(|row| row.labels[0].as_str()).collect();
    assert_eq!((labels, table.unplanned), (vec!["GCN-4"], 0));
    let misspelt = TableSpec { filter: vec![("dpth".to_owned(), Vec::new())], ..TableSpec::default() };
    let error = Table::of_block(&frame(rows), &plan, &misspelt, None).unwrap_err();
    insta::assert_snapshot!(error, @"no setting `dpth`; did you mean `depth`?");
}

#[test]
fn a_filter_compares_numbers_as_numbers_and_one_that_leaves_nothing_is_refused() {
    let (shallow, deep) = (trial("DD", Backbone::Gcn, 2), trial("DD", Backbone::Gcn, 4));
    let plan = plan(&[(&shallow, 2), (&deep, 2)]);
    let rows = frame(folds(1, &deep, &[0.7, 0.8]));
    let filtered = |value: &str| {
        let filter = vec![("depth".to_owned(), vec![value.to_owned()])];
        Table::of_block(&rows, &plan, &TableSpec { filter, ..TableSpec::default() }, None)
    };
    assert_eq!(filtered("4.0").unwrap(), filtered("4").unwrap());
    assert_eq!(filtered("4.0").unwrap().rows.len(), 1);
    assert!(filtered("2").is_ok(), "planned, but not finished");
    insta::assert_snapshot!(filtered("5").unwrap_err(), @"no trial is left where `depth` is 5; here it is 2, 4");
}

#[test]
fn a_group_puts_a_common_header_over_its_columns() {
    let mut rows = Vec::new();
    let mut trials = Vec::new();
    for (position, (dataset, depth)) in (0..).zip([("DD", 2), ("MNIST", 2), ("DD", 4), ("MNIST", 4)]) {
        let config = trial(dataset, Backbone::Gcn, depth);
        rows.extend(folds(position, &config, &[0.5, 0.1 * depth as f64]));
        trials.push(config);
    }
    let planned: Vec<(&TrialConfig, u32)> = trials.iter().map(|config| (config, 2)).collect();
    let spec = TableSpec {
        rows: vec!["model".to_owned()],
        columns: "depth".to_owned(),
        group: Some("dataset".to_owned()),
        ..TableSpec::default()
    };
    let table = Table::of_block(&frame(rows), &plan(&planned), &spec, None).unwrap();
    insta::assert_snapshot!(crate::render::terminal(&table, false), @"
    small sweep

                            dataset, depth
           ────────────────────────────────────────────────
                     DD                      MNIST
           ───────────────────────  ───────────────────────
    model            2           4            2           4
    ─────  ───────────  ──────────  ───────────  ──────────
    gcn    35.0 ± 21.2  45.0 ± 7.1  35.0 ± 21.2  45.0 ± 7.1

    Test accuracy of the best checkpoint in percent, mean ± sample standard deviation (divisor n - 1) over 2 folds.
    ");
    let header = crate::render::markdown(&table).lines().nth(2).unwrap().to_owned();
    assert_eq!(header, "| model ↓ dataset, depth → | DD: 2 | DD: 4 | MNIST: 2 | MNIST: 4 |");
    let json: Vec<serde_json::Value> = serde_json::from_str(&crate::render::json(&table)).unwrap();
    assert_eq!((&json[1]["dataset"], &json[1]["depth"]), (&"DD".into(), &4.into()));
    assert!(crate::render::html(&table).contains("colspan=\"2\">MNIST</th>"));
    assert!(crate::render::latex(&table).contains(r"\multicolumn{6}{c}{MNIST}"));
}

#[test]
fn rows_and_columns_stand_in_the_order_asked_for_and_others_follow() {
    let trials: Vec<TrialConfig> = [("DD", 2), ("DD", 4), ("MNIST", 2), ("MNIST", 4), ("MNIST", 8)]
        .map(|(dataset, depth)| trial(dataset, Backbone::Gcn, depth))
        .to_vec();
    let rows = (0..)
        .zip(&trials)
        .flat_map(|(position, config)| folds(position, config, &[0.1 * f64::from(config.depth)]));
    let planned: Vec<(&TrialConfig, u32)> = trials.iter().map(|config| (config, 1)).collect();
    let order = [("depth", ["8.0", "4"]), ("dataset", ["MNIST", "there is none"])];
    let order = order.map(|(name, values)| (name.to_owned(), values.map(str::to_owned).to_vec())).to_vec();
    let (frame, plan) = (frame(rows), plan(&planned));
    let made = |rows: &[&str], columns: &str| {
        let rows = rows.iter().map(|name| (*name).to_owned()).collect();
        let spec = TableSpec {
            rows,
            columns: columns.to_owned(),
            order: order.clone(),
            decimals: Some(2),
            caption: Some("Mine".to_owned()),
            ..TableSpec::default()
        };
        Table::of_block(&frame, &plan, &spec, None).unwrap()
    };
    let across = made(&["dataset"], "depth");
    let labels: Vec<&str> = across.columns.iter().map(|column| column.label.as_str()).collect();
    assert_eq!((labels, across.rows[0].labels[0].as_str()), (vec!["8", "4", "2"], "MNIST"));
    assert_eq!(across.rows[0].cells[0].mean.map(f64::round), Some(80.0), "cells move with their columns");
    assert_eq!((across.decimals, across.title.as_str()), (2, "Mine"));
    let down = made(&["dataset", "depth"], "model");
    let labels: Vec<String> = down.rows.iter().map(|row| row.labels.join(" ")).collect();
    assert_eq!(labels, ["MNIST 8", "MNIST 4", "MNIST 2", "DD 4", "DD 2"]);
}

#[test]
fn a_table_can_show_f1_where_results_have_a_confusion_matrix_and_roc_auc_where_data_is_scored_by_it() {
    let (plain, scored) = (trial("DD", Backbone::Gcn, 4), trial("ogbg-molhiv", Backbone::Gcn, 4));
    let mut rows = folds(0, &plain, &[0.5, 0.6]);
    rows[1].result.confusion = Vec::new();
    rows.extend(folds(1, &scored, &[0.75, 0.75]));
    let (frame, plan) = (frame(rows), plan(&[(&plain, 2), (&scored, 2)]));
    let cells = |metric: Metric| {
        let table = Table::make(&frame, &TableSpec { metric, ..TableSpec::default() }, &plan).unwrap();
        let cells = table.rows[0].cells.iter().map(|cell| (cell.n, cell.mean.map(|mean| mean.round())));
        (cells.collect::<Vec<_>>(), table.caption)
    };
    let (f1, caption) = cells(Metric::TestF1);
    assert_eq!(f1, [(1, Some(33.0)), (2, Some(73.0))]);
    assert!(
        caption.starts_with("Test F1 of the best checkpoint (mean over classes) in percent"),
        "{caption}"
    );
    assert_eq!(cells(Metric::TestRocAuc).0, [(0, None), (2, Some(75.0))]);
}
