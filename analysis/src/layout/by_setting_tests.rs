//! The published cells must come out of the published logs, to the last printed digit.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use polars::prelude::{Column, DataType};
use togl_sweeps::TrialConfig;
use togl_sweeps::trial::{Backbone, Features};

use super::*;
use crate::error::Error;
use crate::import::wandb::{self, Mapping};
use crate::layout::Layout;
use crate::table::Mark;
use crate::test_folds::{folds, frame};

fn structural(deepset: bool, static_variant: bool) -> TrialConfig {
    TrialConfig {
        dataset: "DD".to_owned(),
        features: Features::Random,
        togl: true,
        deepset,
        static_variant,
        ..TrialConfig::default()
    }
}

#[test]
fn general_chooses_the_embedding_per_fold_by_validation_only() {
    let mut rows = folds(0, &structural(false, false), &[0.8, 0.2]);
    rows.extend(folds(1, &structural(true, false), &[0.3, 0.7]));
    rows.iter_mut().for_each(|row| row.result.test.accuracy = 1.0 - row.result.test.accuracy);
    let table = Layout::StructuralExtended.make(&frame(rows)).unwrap();
    let cell = find(std::slice::from_ref(&table), &["DD".to_owned(), "4".to_owned()], GENERAL);
    assert_eq!(cell.n, 2);
    assert!((cell.mean.unwrap() - 25.0).abs() < 1e-9, "tests 0.2 and 0.3 belong to validations 0.8 and 0.7");
}

#[test]
fn of_equal_runs_the_last_in_the_frames_order_is_chosen_however_they_arrive() {
    let with_test = |position, deepset, test| {
        let mut rows = folds(position, &structural(deepset, false), &[0.8]);
        rows[0].result.test.accuracy = test;
        rows
    };
    let rows = [with_test(0, true, 0.1), with_test(1, false, 0.2)].concat();
    for rows in [rows.clone(), rows.into_iter().rev().collect()] {
        let table = Layout::StructuralExtended.make(&frame(rows)).unwrap();
        let cell = find(std::slice::from_ref(&table), &["DD".to_owned(), "4".to_owned()], GENERAL);
        assert_eq!(cell.mean, Some(20.0), "arrival must not decide");
    }
}

#[test]
fn a_choice_for_which_no_run_has_a_value_is_named() {
    let data = frame(folds(0, &structural(false, false), &[0.5]));
    let nothing = Column::full_null("last_validation_accuracy".into(), 1, &DataType::Float64);
    let mut data = data.data().clone();
    data.with_column(nothing).unwrap();
    let frame = FoldFrame::from_data(&data, "test").unwrap();
    let error = Layout::StructuralExtended.make(&frame).unwrap_err();
    insta::assert_snapshot!(error, @"cannot choose in group (dataset=DD, depth=4, static=false, split=0): no fold has a value of `last_validation_accuracy`; exports of Weights & Biases call it `val_acc`");
}

#[test]
fn a_general_number_that_was_chosen_among_fewer_runs_says_so_and_wins_nothing() {
    let mut rows = folds(0, &structural(false, false), &[0.8, 0.9]);
    rows.extend(folds(1, &structural(true, false), &[0.7]));
    let table = Layout::StructuralExtended.make(&frame(rows)).unwrap();
    let cell = find(std::slice::from_ref(&table), &["DD".to_owned(), "4".to_owned()], GENERAL);
    assert_eq!((cell.n, cell.planned), (2, 2), "the number is as published");
    assert!(cell.marks.contains(&Mark::FewerCandidates) && !cell.best);
    assert!(table.notes.iter().any(|note| note.contains("among fewer candidates")), "{:?}", table.notes);
}

#[test]
fn rows_that_do_not_belong_to_the_layout_make_no_table() {
    let original = TrialConfig { features: Features::Original, ..structural(false, false) };
    let gated = TrialConfig { model: Backbone::GatedGcn, togl: false, ..structural(false, false) };
    let mut rows = folds(0, &original, &[0.5]);
    rows.extend(folds(1, &gated, &[0.5]));
    assert!(matches!(Layout::StructuralExtended.make(&frame(rows)).unwrap_err(), Error::Empty { .. }));
}

#[test]
fn only_the_two_static_columns_are_printed_under_another_name() {
    let table = Layout::StructuralExtended.make(&frame(folds(0, &structural(false, true), &[0.5]))).unwrap();
    let swapped: Vec<(&str, &str)> = table
        .columns
        .iter()
        .map(|column| (column.label.as_str(), column.printed_as.as_deref().unwrap()))
        .filter(|(label, printed)| label != printed)
        .collect();
    assert_eq!(swapped, [(STATIC_COORDINATES, STATIC_DEEPSET), (STATIC_DEEPSET, STATIC_COORDINATES)]);
    assert!(table.notes.iter().any(|note| note.contains("swapped")));
}

/// The shared data, if this machine has it.
fn shared_data() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let folder = std::env::var_os("TOGL_DATA").map_or(beside, PathBuf::from);
    if folder.join("paper-logs").is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: no paper-logs in {} (set TOGL_DATA to a folder that has them)", folder.display());
    None
}

/// Printed mean and deviation by (data set, depth, method) as published.
fn published(folder: &Path) -> BTreeMap<(String, String, String), (String, String)> {
    let text = fs::read_to_string(folder.join("paper-tables/cells.csv")).unwrap();
    let lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<String>>());
    lines
        .filter(|fields| fields[0] == "structural-extended")
        .map(|fields| {
            let [_, method, dataset, depth, _, mean, std, ..] = <[String; 10]>::try_from(fields).unwrap();
            ((dataset, depth, method), (mean, std))
        })
        .collect()
}

/// All exports of runs, in the order of their names.
fn exports(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("paper-logs")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| !path.to_string_lossy().ends_with("_summary.csv")).collect();
    files.sort();
    files
}

#[test]
fn the_published_cells_come_out_of_the_published_logs() {
    let Some(folder) = shared_data() else { return };
    let imported = wandb::read(&exports(&folder), &Mapping::default()).unwrap();
    for run in ["DD.csv:160: ", "ENZYMES.csv:106: "] {
        assert!(imported.skipped.iter().any(|skipped| skipped.starts_with(run)), "{:?}", imported.skipped);
    }
    let stored = tempfile::tempdir().unwrap();
    let file = stored.path().join("folds.parquet");
    imported.frame.write(&file).unwrap();
    let table = Layout::StructuralExtended.make(&FoldFrame::read(&file).unwrap()).unwrap();
    let published = published(&folder);
    let mut same: BTreeMap<&str, usize> = BTreeMap::new();
    let mut different = Vec::new();
    for (row, column, cell) in table.cells().filter(|(_, _, cell)| cell.n > 0) {
        let printed_as = column.printed_as.clone().unwrap();
        // A deviation that is not defined, because a cell is one run, was published as 0.0.
        let rounded = |value: Option<f64>| format!("{:.1}", value.unwrap_or_default());
        let ours = (rounded(cell.mean), rounded(cell.std));
        let theirs = &published[&(row.labels[0].clone(), row.labels[1].clone(), printed_as.clone())];
        if ours == *theirs {
            *same.entry(row.labels[0].as_str()).or_default() += 1;
        } else {
            different.push(format!(
                "{} {} {printed_as}: {ours:?}, published {theirs:?}",
                row.labels[0], row.labels[1]
            ));
        }
    }
    let all_but_one = [("CLUSTER", 36), ("DD", 45), ("ENZYMES", 44), ("PATTERN", 36), ("PROTEINS", 15)];
    assert_eq!(same, BTreeMap::from(all_but_one), "{different:#?}");
    let unexplained = r#"ENZYMES 1 GCN-TOGL (General - Static): ("23.5", "6.2"), published ("23.0", "6.3")"#;
    assert_eq!(different, [unexplained]);
}

/// The cells with a mark, with their finished and planned folds.
fn marked(table: &Table, mark: Mark) -> String {
    let cells = table.cells().filter(|(_, _, cell)| cell.n > 0 && cell.marks.contains(&mark));
    let lines = cells.map(|(row, column, cell)| {
        format!("{} {} {}/{}", row.labels.join(" "), column.label, cell.n, cell.planned)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Some runs crashed or have no test value. The publication chose and averaged without them; the numbers stay, and say so.
#[test]
fn what_the_published_logs_lack_is_marked() {
    let Some(folder) = shared_data() else { return };
    let imported = wandb::read(&exports(&folder), &Mapping::default()).unwrap();
    let table = Layout::StructuralExtended.make(&imported.frame).unwrap();
    insta::assert_snapshot!(marked(&table, Mark::FewerCandidates), @"
    DD 1 GCN-TOGL (General - Static) 10/10
    ENZYMES 1 GCN-TOGL (General - Static) 10/10
    PATTERN 3 GCN-TOGL (General) 1/1
    ");
    insta::assert_snapshot!(marked(&table, Mark::Incomplete), @"
    CLUSTER 2 GCN 3/4
    DD 1 GCN-TOGL (Static - No Interaction) 9/10
    ENZYMES 1 GCN-TOGL (Static - Interaction) 9/10
    PATTERN 2 GAT 3/4
    PATTERN 3 GIN 2/4
    PATTERN 3 GCN-TOGL (No Interaction) 1/4
    ");
}

#[test]
fn a_summary_among_the_published_logs_is_not_taken_for_runs() {
    let Some(folder) = shared_data() else { return };
    let outcome = wandb::read(&[folder.join("paper-logs/GCN_summary.csv")], &Mapping::default());
    assert!(matches!(outcome, Err(Error::MissingColumns { .. })));
}

#[test]
fn the_published_main_table_comes_out_of_the_published_logs_too() {
    let Some(folder) = shared_data() else { return };
    let imported = wandb::read(&exports(&folder), &Mapping::default()).unwrap();
    let table = Layout::Table1.make(&imported.frame).unwrap();
    let comparison = crate::Comparison::with(&table, &imported.frame, "table1").unwrap();
    let exact = |cell: &&crate::compare::ComparedCell| {
        let rounded = |value: Option<f64>| value.map(|value| format!("{value:.1}"));
        let published =
            cell.published.as_ref().map(|cell| (Some(format!("{:.1}", cell.mean)), rounded(cell.std)));
        published == Some((rounded(cell.mean), rounded(cell.std)))
    };
    let same: Vec<String> = comparison
        .cells
        .iter()
        .filter(exact)
        .map(|cell| format!("{} {}", cell.row[0], cell.column))
        .collect();
    insta::assert_snapshot!(same.join("\n"), @"
    GCN-4 DD
    GCN-4 ENZYMES
    GCN-4 PROTEINS
    GCN-4-TOGL-1 (General) DD
    GCN-4-TOGL-1 (General) ENZYMES
    GIN-4 DD
    GIN-4 ENZYMES
    GIN-4 PROTEINS
    GIN-4 PATTERN
    GAT-4 DD
    GAT-4 ENZYMES
    GAT-4 PROTEINS
    ");
}
