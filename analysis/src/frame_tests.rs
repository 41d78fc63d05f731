//! Requirements of frames: order, uniqueness, honesty about bad results.

use togl_sweeps::trial::Backbone;

use super::*;
use crate::test_folds::{fold, folds, frame, trial};

#[test]
fn a_frame_has_the_columns_of_the_schema_in_their_order() {
    let frame = frame(folds(0, &trial("DD", Backbone::Gcn, 4), &[0.5]));
    let names: Vec<&str> = frame.data().get_column_names().into_iter().map(|name| name.as_str()).collect();
    let expected: Vec<&str> = schema::columns().map(|spec| spec.name).collect();
    assert_eq!(names, expected);
    for spec in schema::columns() {
        assert_eq!(frame.data().column(spec.name).unwrap().dtype(), &spec.kind.data_type(), "{}", spec.name);
    }
}

#[test]
fn rows_are_ordered_by_position_split_and_seed_however_they_arrive() {
    let (gcn, gin) = (trial("DD", Backbone::Gcn, 4), trial("DD", Backbone::Gin, 4));
    let mut rows = folds(0, &gcn, &[0.1, 0.2, 0.3]);
    rows.extend(folds(1, &gin, &[0.4, 0.5]));
    let mut second_seed = fold(0, &gcn, 1, 0.9);
    second_seed.fold.seed = 7;
    rows.push(second_seed);
    let forwards = frame(rows.clone());
    rows.reverse();
    let backwards = frame(rows);
    assert_eq!(forwards, backwards);
    let order: Vec<(u32, u64)> = forwards.keys().unwrap().iter().map(|key| (key.split, key.seed)).collect();
    assert_eq!(order, [(0, 0), (1, 0), (1, 7), (2, 0), (0, 0), (1, 0)]);
}

#[test]
fn the_same_fold_twice_is_refused_and_named() {
    let gcn = trial("DD", Backbone::Gcn, 4);
    let mut again = fold(9, &gcn, 1, 0.9);
    again.attempt = 2;
    let rows = folds(0, &gcn, &[0.1, 0.2]).into_iter().chain([again]);
    let error = FoldFrame::from_rows(rows).unwrap_err();
    assert_eq!(error.to_string(), format!("the same fold twice: {}/1/0; keep one row of each", gcn.id()));
}

#[test]
fn an_impossible_metric_is_refused_and_its_fold_named() {
    let gcn = trial("DD", Backbone::Gcn, 4);
    let error = FoldFrame::from_rows([fold(0, &gcn, 0, f64::NAN)]).unwrap_err();
    assert!(error.to_string().starts_with(&format!("fold {}/0/0: result has test accuracy = NaN", gcn.id())));
}

#[test]
fn no_rows_make_an_empty_frame_with_all_columns() {
    let empty = frame([]);
    assert!(empty.is_empty());
    assert_eq!(empty.data().width(), schema::columns().count());
}

#[test]
fn frames_are_joined_in_their_order_and_a_common_fold_is_refused() {
    let (gcn, gin) = (trial("DD", Backbone::Gcn, 4), trial("DD", Backbone::Gin, 4));
    let (first, second) = (frame(folds(5, &gcn, &[0.1, 0.2])), frame(folds(0, &gin, &[0.3])));
    let both = FoldFrame::concat([first.clone(), second]).unwrap();
    let trials: Vec<_> = both.keys().unwrap().iter().map(|key| key.trial).collect();
    assert_eq!(trials, [gcn.id(), gcn.id(), gin.id()]);
    let error = FoldFrame::concat([first.clone(), first]).unwrap_err();
    assert!(matches!(error, Error::DuplicateFolds { folds } if folds.len() == 2));
    assert!(FoldFrame::concat([]).unwrap().is_empty());
}

#[test]
fn the_folds_behind_a_cell_can_be_picked_out() {
    let frame = frame(folds(0, &trial("DD", Backbone::Gcn, 4), &[0.1, 0.2, 0.3]));
    let keys = frame.keys().unwrap();
    let some = frame.only(&[keys[2], keys[0]]).unwrap();
    assert_eq!(some.keys().unwrap(), [keys[0], keys[2]], "in the frame's order");
}
