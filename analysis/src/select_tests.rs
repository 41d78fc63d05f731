//! Requirements of choices: validation only, ties to the last row, nothing undecided passes.

use togl_sweeps::trial::Backbone;

use super::*;
use crate::frame::FoldRow;
use crate::test_folds::{fold, folds, frame, trial};

/// A fold whose test and validation accuracies differ.
fn judged(position: u64, model: Backbone, split: u32, validation: f64, test: f64) -> FoldRow {
    let mut row = fold(position, &trial("DD", model, 4), split, validation);
    row.result.test.accuracy = test;
    row
}

#[test]
fn a_view_shows_no_test_and_no_training_column() {
    let frame = frame(folds(0, &trial("DD", Backbone::Gcn, 4), &[0.5]));
    let view = frame.validation().unwrap();
    for name in view.data().get_column_names() {
        assert!(!name.starts_with("test_") && !name.starts_with("train_"), "{name}");
    }
}

#[test]
fn per_fold_the_best_last_validation_wins_whatever_the_test_says() {
    let frame = frame([
        judged(0, Backbone::Gcn, 0, 0.8, 0.1),
        judged(0, Backbone::Gcn, 1, 0.6, 0.9),
        judged(1, Backbone::Gin, 0, 0.7, 0.9),
        judged(1, Backbone::Gin, 1, 0.9, 0.1),
    ]);
    let chosen =
        best_by_last_validation(&frame.validation().unwrap(), &["dataset", "depth", "split"]).unwrap();
    assert_eq!(chosen.rows(), [0, 3]);
    assert_eq!(chosen.frame().unwrap().len(), 2);
}

#[test]
fn of_equal_rows_the_last_in_the_frames_order_wins() {
    let rows = [judged(0, Backbone::Gcn, 0, 0.8, 0.1), judged(1, Backbone::Gin, 0, 0.8, 0.2)];
    let mut reversed = rows.to_vec();
    reversed.reverse();
    for rows in [rows.to_vec(), reversed] {
        let frame = frame(rows);
        let chosen = best_by_last_validation(&frame.validation().unwrap(), &["split"]).unwrap();
        assert_eq!(chosen.rows(), [1], "arrival must not decide");
    }
}

#[test]
fn without_groups_one_row_of_the_whole_frame_is_chosen() {
    let frame = frame(folds(0, &trial("MNIST", Backbone::Gcn, 4), &[0.5, 0.7, 0.6]));
    assert_eq!(best_by_validation(&frame.validation().unwrap(), &[]).unwrap().rows(), [1]);
}

#[test]
fn the_trial_with_the_best_mean_validation_keeps_all_its_folds() {
    let mut rows = folds(0, &trial("DD", Backbone::Gcn, 4), &[0.9, 0.1, 0.1]);
    rows.extend(folds(1, &trial("DD", Backbone::Gin, 4), &[0.5, 0.5, 0.5]));
    rows.extend(folds(2, &trial("ENZYMES", Backbone::Gin, 4), &[0.1]));
    let frame = frame(rows);
    let chosen = best_trial_by_validation(&frame.validation().unwrap(), &["dataset"]).unwrap();
    assert_eq!(chosen.rows(), [3, 4, 5, 6]);
}

#[test]
fn a_group_without_any_value_is_named() {
    let data = frame(folds(0, &trial("DD", Backbone::Gcn, 4), &[0.5]));
    let nothing = lit(NULL).cast(DataType::Float64).alias("last_validation_accuracy");
    let data = data.data().clone().lazy().with_column(nothing).collect().unwrap();
    let frame = FoldFrame::from_data(&data, "test").unwrap();
    let error = best_by_last_validation(&frame.validation().unwrap(), &["dataset", "split"]).unwrap_err();
    insta::assert_snapshot!(error, @"cannot choose in group (dataset=DD, split=0): no fold has a value of `last_validation_accuracy`; exports of Weights & Biases call it `val_acc`");
}

#[test]
fn grouping_by_a_test_column_is_refused() {
    let frame = frame(folds(0, &trial("DD", Backbone::Gcn, 4), &[0.5]));
    let error = best_by_validation(&frame.validation().unwrap(), &["test_accuracy"]).unwrap_err();
    assert!(matches!(error, Error::UnknownSetting { name, .. } if name == "test_accuracy"));
}
