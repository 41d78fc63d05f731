//! Requirements of scores in tables, choices, ranks and figures: what is better decides, and what is printed says so.

use proptest::prelude::*;
use togl_sweeps::TrialConfig;
use togl_sweeps::spec::{Per, Selection, TableSpec};
use togl_sweeps::trial::Backbone;

use super::*;
use crate::best::Best;
use crate::figure;
use crate::frame::FoldRow;
use crate::render;
use crate::table::Table;
use crate::test_folds::{fold, frame, plan, trial};

fn mae() -> Scale {
    Scale { goal: Goal::Min, high: None, low: None, name: "MAE".into() }
}

fn scored(mut row: FoldRow, scale: Option<&Scale>, by: f64) -> FoldRow {
    row.result.version = if scale.is_some() { 2 } else { 1 };
    row.result.score = scale.cloned();
    row.result.confusion.clear();
    let result = &mut row.result;
    for metrics in [&mut result.test, &mut result.validation, &mut result.train, &mut result.last_validation]
    {
        metrics.accuracy *= by;
    }
    result.history.clear();
    row
}

/// Trials that differ in the learning rate, each with its values on three splits of two data sets.
fn rows(values: &[[f64; 6]]) -> (Vec<TrialConfig>, Vec<FoldRow>) {
    let mut configs = Vec::new();
    let mut rows = Vec::new();
    for (at, values) in (0_u32..).zip(values) {
        for (of, dataset) in (0_u32..).zip(["DD", "MUTAG"]) {
            let rate = f64::from(at + 1) / 100.0;
            let config = TrialConfig { lr: rate, ..trial(dataset, Backbone::Gcn, 4) };
            for split in 0..3 {
                let value = values[(of * 3 + split) as usize];
                let mut row = fold(u64::from(at * 2 + of), &config, split, value);
                row.result.validation.accuracy = values[((of * 3 + split + 1) % 6) as usize];
                rows.push(row);
            }
            configs.push(config);
        }
    }
    (configs, rows)
}

/// What is decided about these folds: who is bold, who is chosen, in which order, and the ranks.
fn decided(configs: &[TrialConfig], rows: Vec<FoldRow>) -> (Vec<bool>, Vec<String>, Vec<String>, Vec<f64>) {
    let plan = plan(&configs.iter().map(|config| (config, 3)).collect::<Vec<_>>());
    let frame = frame(rows);
    let spec =
        TableSpec { rows: vec!["lr".to_owned()], columns: "dataset".to_owned(), ..TableSpec::default() };
    let table = Table::of_block(&frame, &plan, &spec, None).unwrap();
    let bold = table.cells().map(|(_, _, cell)| cell.best).collect();
    let by = Metric::ValidationAccuracy;
    let mut chosen = Vec::new();
    for per in [Per::Split, Per::Config] {
        let spec = TableSpec { rows: vec!["model".to_owned()], ..spec.clone() };
        let selection = Selection { among: Some(vec!["lr".to_owned()]), by, per };
        let table = Table::of_block(&frame, &plan, &spec, Some(&selection)).unwrap();
        chosen.extend(table.cells().flat_map(|(_, _, cell)| cell.folds.iter().map(ToString::to_string)));
    }
    let best = Best::of(&frame, &plan, by, Metric::TestAccuracy).unwrap();
    let order = best.trials.into_iter().map(|trial| trial.trial).collect();
    let ranks = figure::ranking(&table).map(|ranking| ranking.friedman.ranks).unwrap_or_default();
    (bold, chosen, order, ranks)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn with_all_values_negated_and_the_goal_turned_everything_is_decided_alike(
        values in proptest::collection::vec(proptest::array::uniform6((0_u32..20).prop_map(|v| f64::from(v) / 8.0)), 3..5)
    ) {
        let up = Scale { goal: Goal::Max, ..mae() };
        let (configs, rows) = rows(&values);
        let more: Vec<FoldRow> = rows.iter().cloned().map(|row| scored(row, Some(&up), 1.0)).collect();
        let less: Vec<FoldRow> = rows.into_iter().map(|row| scored(row, Some(&mae()), -1.0)).collect();
        prop_assert_eq!(decided(&configs, more), decided(&configs, less));
    }
}

/// Two learning rates with two folds each; the first has the lower error.
fn two_rates() -> ([TrialConfig; 2], Vec<FoldRow>) {
    let configs = [0.1, 0.01].map(|lr| TrialConfig { lr, ..trial("DD", Backbone::Gcn, 4) });
    let values = [[1.25, 1.5], [2.25, 2.5]];
    let rows: Vec<FoldRow> = (0..2)
        .flat_map(|at| (0..2).map(move |split| (at, split)))
        .map(|(at, split)| fold(at as u64, &configs[at], split as u32, values[at][split]))
        .map(|row| scored(row, Some(&mae()), 1.0))
        .collect();
    (configs, rows)
}

fn by_rate() -> TableSpec {
    TableSpec { rows: vec!["lr".to_owned()], columns: "dataset".to_owned(), ..TableSpec::default() }
}

#[test]
fn the_lowest_mean_is_bold_where_lower_is_better_and_all_words_say_so() {
    let (configs, rows) = two_rates();
    let plan = plan(&[(&configs[0], 2), (&configs[1], 2)]);
    let frame = frame(rows);
    let spec = by_rate();
    let table = Table::of_block(&frame, &plan, &spec, None).unwrap();
    insta::assert_snapshot!(render::markdown(&table), @"
    ### small sweep

    | lr ↓ dataset → | DD |
    | :-- | --: |
    | 0.1 | **1.375 ± 0.177** |
    | 0.01 | 2.375 ± 0.177 |

    Test MAE of the best checkpoint, lower is better, mean ± sample standard deviation (divisor n - 1) over 2 folds.

    - bold: best (lowest) mean of its column. Among rows that differ in lr only this is a choice by test values, which flatters it; choose by validation
    ");
    let json = render::json(&table);
    assert!(json.contains(r#""score":"MAE","goal":"min""#) && json.contains(r#""mean":1.375"#), "{json}");
    let best = Best::of(&frame, &plan, Metric::ValidationAccuracy, Metric::TestAccuracy).unwrap();
    insta::assert_snapshot!(best.text() + &best.caption(), @"
    rank  method  lr    validation     test           n  trial
    1     GCN-4   0.1   1.375 ± 0.177  1.375 ± 0.177  2  c8152c009416
    2     GCN-4   0.01  2.375 ± 0.177  2.375 ± 0.177  2  84ffb537cb6b
    From best to worst by the mean validation MAE of the best checkpoint; beside it the value of each choice: Test MAE of the best checkpoint. Lower is better, mean ± sample standard deviation over n folds.
    ");
    let drawn = figure::fold_heat_maps(&table).unwrap()[0].svg();
    assert!(drawn.contains("1.250") && drawn.contains("lower is better"), "{drawn}");
    let curves = figure::against(&table, "lr").unwrap().svg();
    assert!(curves.contains("Test MAE") && !curves.contains('%'), "{curves}");
}

#[test]
fn folds_of_several_scores_are_refused_in_one_table_with_what_to_do() {
    let (configs, rows) = two_rates();
    let plan = plan(&[(&configs[0], 2), (&configs[1], 2)]);
    let spec = by_rate();
    let mixed = rows.into_iter().enumerate().map(|(at, mut row)| {
        if at == 0 {
            row.result.score = Some(Scale { name: "RMSE".into(), ..mae() });
        }
        row
    });
    let mixed = FoldFrame::from_rows(mixed).unwrap();
    insta::assert_snapshot!(Table::of_block(&mixed, &plan, &spec, None).unwrap_err(), @"these folds have values of several scores, `RMSE, goal min, any number` and `MAE, goal min, any number`, which have no mean; keep those of one with `--filter`, such as `--filter method=NAME`");
}

#[test]
fn folds_that_were_saved_before_there_were_scores_are_shares() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/folds-6.parquet");
    let frame = FoldFrame::read(&path).unwrap();
    assert_eq!((frame.len(), frame.scale(Metric::TestAccuracy).unwrap()), (4, Scale::SHARE));
    assert_eq!(frame.remark(), None, "its digest still holds");
}

#[test]
fn a_frame_keeps_what_its_values_are_and_refuses_those_beyond_their_range() {
    let config = trial("DD", Backbone::Gcn, 4);
    let share = fold(0, &config, 0, 0.5);
    let positive = Scale { low: Some(0.0), ..mae() };
    let rows = [share, scored(fold(0, &config, 1, 3.5), Some(&positive), 1.0)];
    let folder = tempfile::tempdir().unwrap();
    for name in ["folds.parquet", "folds.csv"] {
        let path = folder.path().join(name);
        frame(rows.clone()).write(&path).unwrap();
        let again = FoldFrame::read(&path).unwrap();
        let scales = Scales::of(again.data()).unwrap();
        assert_eq!([scales.at(0), scales.at(1)], [Ok(Scale::SHARE), Ok(positive.clone())], "{name}");
        assert!(again.scale(Metric::TestAccuracy).is_err() && again.scale(Metric::TestF1).is_ok());
    }
    let with = |name: &str, column: polars::prelude::Column| {
        let mut data = frame(rows.clone()).data().clone();
        data.with_column(column).unwrap();
        let path = folder.path().join(name);
        FoldFrame::from_data(&data, "written").unwrap().write(&path).unwrap();
        let message = FoldFrame::read(&path).unwrap_err().to_string();
        message.split_once("column ").unwrap().1.to_owned()
    };
    let column = |name: &str, values: [f64; 2]| polars::prelude::Column::new(name.into(), values);
    insta::assert_snapshot!(with("a.parquet", column("test_accuracy", [0.5, -3.5])), @"`test_accuracy`: row 2 has -3.5, which is no MAE (0 or more)");
    insta::assert_snapshot!(with("b.parquet", column("test_accuracy", [1.5, 3.5])), @"`test_accuracy`: row 1 has 1.5, which is no share from 0 to 1");
    let goals = polars::prelude::Column::new("score_goal".into(), ["", "up"]);
    insta::assert_snapshot!(with("c.parquet", goals), @"`score`: row 2 has no score: its goal is `up`, not max or min");
}
