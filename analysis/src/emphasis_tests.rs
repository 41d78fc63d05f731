//! Requirements of what is set off: no winner by chance, and no test where none is honest.

use togl_sweeps::spec::TableSpec;
use togl_sweeps::trial::Backbone;

use super::*;
use crate::frame::FoldRow;
use crate::plan::Plan;
use crate::render;
use crate::test_folds::{folds, frame};

const BEST: [f64; 5] = [0.80, 0.82, 0.78, 0.81, 0.79];
const NEAR: [f64; 5] = [0.79, 0.83, 0.77, 0.80, 0.79];
const FAR: [f64; 5] = [0.50, 0.51, 0.49, 0.52, 0.48];

fn trial(model: Backbone) -> togl_sweeps::TrialConfig {
    crate::test_folds::trial("DD", model, 4)
}

fn rows() -> Vec<FoldRow> {
    let mut rows = folds(0, &trial(Backbone::Gcn), &BEST);
    rows.extend(folds(1, &trial(Backbone::Gin), &NEAR));
    rows.extend(folds(2, &trial(Backbone::Gat), &FAR));
    rows
}

fn made(rows: Vec<FoldRow>, emphasis: Emphasis) -> Table {
    let frame = frame(rows);
    let plan = Plan::of_frame("sweep", &frame).unwrap();
    Table::make(&frame, &TableSpec::default(), &plan).unwrap().with_emphasis(emphasis, &frame).unwrap()
}

fn standing_out(table: &Table) -> Vec<bool> {
    table.cells().map(|(_, _, cell)| cell.stands_out()).collect()
}

#[test]
fn what_a_test_cannot_tell_from_the_best_is_set_off_too() {
    let table = made(rows(), "not-significantly-worse".parse().unwrap());
    assert_eq!(standing_out(&table), [true, true, false]);
    assert_eq!(table.cells().map(|(_, _, cell)| cell.best).collect::<Vec<_>>(), [true, false, false]);
    let text = render::terminal(&table, false);
    assert!(text.contains("▲ best mean of its column, and all that are not significantly worse"), "{text}");
    assert!(render::json(&table).contains(r#""not_significantly_worse":true"#));
    assert!(render::csv(&table).lines().nth(2).unwrap().ends_with(",true"));
    assert_eq!(standing_out(&made(rows(), Emphasis::Best)), [true, false, false]);
}

#[test]
fn training_seeds_on_one_split_leave_only_the_best_and_a_reason() {
    let mut seeds = rows();
    for row in &mut seeds {
        row.fold.seed = u64::from(row.fold.split);
        row.fold.split = 0;
    }
    let table = made(seeds, Emphasis::NotSignificantlyWorse);
    assert_eq!(standing_out(&table), [true, false, false]);
    let note = table.notes.last().unwrap();
    assert!(note.starts_with("not tested: DD: all 5 values come from one split"), "{note}");
}

#[test]
fn unknown_sizes_and_different_splits_are_not_tested() {
    let mut unknown = rows();
    unknown.iter_mut().for_each(|row| row.result.part_sizes = [0; 3]);
    let table = made(unknown, Emphasis::NotSignificantlyWorse);
    assert!(table.notes.last().unwrap().contains("sizes of the training and test parts are not known"));
    let mut different = rows();
    different[6].result.split_digest = "another".to_owned();
    let table = made(different, Emphasis::NotSignificantlyWorse);
    assert!(table.notes.last().unwrap().contains("split 1 is not the same on both sides"));
}

#[test]
fn an_unknown_emphasis_gets_the_known_ones() {
    let error = "bets".parse::<Emphasis>().unwrap_err();
    insta::assert_snapshot!(error, @"what is bold cannot be `bets`; did you mean `best`?");
}
