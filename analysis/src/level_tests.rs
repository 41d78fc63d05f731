//! Requirements of cells without a plan: what another cell of the same data set has is missed, and nothing else.

use togl_sweeps::TrialConfig;
use togl_sweeps::spec::TableSpec;
use togl_sweeps::trial::Backbone;

use super::*;
use crate::frame::FoldRow;
use crate::table::{Mark, Table};
use crate::test_folds::{fold, folds, frame, plan, trial};

/// The table of folds that were saved, without a word about what was planned.
fn saved(rows: Vec<FoldRow>) -> Table {
    let frame = frame(rows);
    let plan = Plan::of_frame("saved", &frame).unwrap();
    Table::of_block(&frame, &plan, &TableSpec::default(), None).unwrap()
}

fn counts(table: &Table) -> Vec<(usize, usize)> {
    table.cells().map(|(_, _, cell)| (cell.n, cell.planned)).collect()
}

#[test]
fn a_run_that_crashed_is_missed_because_the_others_have_its_split() {
    let (gcn, gin) = (trial("DD", Backbone::Gcn, 4), trial("DD", Backbone::Gin, 4));
    let mut rows = folds(0, &gcn, &[0.5, 0.6, 0.7]);
    rows.extend([fold(1, &gin, 0, 0.9), fold(1, &gin, 2, 0.9)]);
    let table = saved(rows);
    assert_eq!(counts(&table), [(3, 3), (2, 3)]);
    assert!(table.rows[1].cells[0].marks.contains(&Mark::Incomplete));
    assert!(table.cells().all(|(_, _, cell)| !cell.best), "90 percent over fewer folds beats nobody");
    assert!(table.notes.iter().any(|note| note == REMARK), "{:?}", table.notes);
}

/// Runs on the only split of a data set.
fn seeded(position: u64, config: &TrialConfig, seeds: std::ops::Range<u64>) -> Vec<FoldRow> {
    let run = |seed| {
        let mut row = fold(position, config, 0, 0.5);
        row.fold.seed = seed;
        row
    };
    seeds.map(run).collect()
}

#[test]
fn a_run_with_fewer_seeds_than_the_others_is_missed_as_well() {
    let (gcn, gin) = (trial("MNIST", Backbone::Gcn, 4), trial("MNIST", Backbone::Gin, 4));
    // Seeds need not be the same ones: published logs have other seeds for each run.
    let rows = [seeded(0, &gcn, 0..4), seeded(1, &gin, 10..13)].concat();
    assert_eq!(counts(&saved(rows)), [(4, 4), (3, 4)]);
}

#[test]
fn data_sets_and_designs_of_their_own_are_measured_against_themselves() {
    let (small, large) = (trial("ENZYMES", Backbone::Gcn, 4), trial("DD", Backbone::Gcn, 4));
    let mut rows = folds(0, &small, &[0.5, 0.6]);
    rows.extend(folds(1, &large, &[0.5, 0.6, 0.7]));
    let table = saved(rows);
    let there: Vec<(usize, usize)> = counts(&table);
    assert_eq!(there, [(2, 2), (3, 3)]);
    assert!(!table.notes.iter().any(|note| note == REMARK));
}

#[test]
fn the_cells_of_a_sweep_keep_their_plan() {
    let (gcn, gin) = (trial("DD", Backbone::Gcn, 4), trial("DD", Backbone::Gin, 4));
    let frame = frame(folds(0, &gcn, &[0.5, 0.6, 0.7]).into_iter().chain(folds(1, &gin, &[0.5])));
    let table = Table::of_block(&frame, &plan(&[(&gcn, 3), (&gin, 1)]), &TableSpec::default(), None).unwrap();
    assert_eq!(counts(&table), [(3, 3), (1, 1)]);
}
