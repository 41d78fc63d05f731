//! Requirements of comparing with the publication: the right counterpart or none, and honest words about it.

use togl_sweeps::TrialConfig;
use togl_sweeps::trial::{Backbone, Features};

use super::*;
use crate::layout::Layout;
use crate::test_folds::{folds, frame};

fn structural(model: Backbone, accuracies: &[f64]) -> Vec<crate::FoldRow> {
    let config = TrialConfig {
        dataset: "DD".to_owned(),
        features: Features::Random,
        model,
        depth: 4,
        ..TrialConfig::default()
    };
    folds(model as u64, &config, accuracies)
}

fn comparison() -> Comparison {
    let mut rows = structural(Backbone::Gcn, &[0.66, 0.70, 0.71]);
    rows.extend(structural(Backbone::Gin, &[0.1, 0.2, 0.3]));
    let frame = frame(rows);
    Comparison::with(&Layout::Table1.make(&frame).unwrap(), &frame, "table1").unwrap()
}

#[test]
fn each_cell_stands_beside_its_published_value_with_the_difference() {
    let comparison = comparison();
    assert_eq!(counted(&comparison), (1, 1, 2));
    assert_eq!(comparison.missing.len(), 34);
    insta::assert_snapshot!(comparison.text(), @"
    row    column  ours         published         difference  within 1 std  within 2 SE
    GCN-4  DD      69.0 ± 2.6   68.0 ± 3.6 GCN-4  +1.0        yes           yes
    GIN-4  DD      20.0 ± 10.0  75.6 ± 2.8 GIN-4  -55.6       NO            NO

    Ours beside table1 as published, in percent (mean ± sample standard deviation). 1 of 2 cells lie within one published standard deviation, 1 of 2 within two standard errors of the difference, which takes a published mean to be over as many folds as ours is planned to be (allowing for the rounding of print); 34 published cells have no counterpart here.

    of            cells  within 1 std  within 2 SE  mean difference
    method GCN-4  1      1 of 1        1 of 1       +1.0
    method GIN-4  1      0 of 1        0 of 1       -55.6
    ");
    assert!(
        comparison.markdown().contains("| GCN-4 | DD | 69.0 ± 2.6 | 68.0 ± 3.6 GCN-4 | +1.0 | yes | yes |")
    );
    assert!(comparison.markdown().contains("| method GIN-4 | 1 | 0 of 1 | 0 of 1 | -55.6 |"));
    assert!(comparison.latex(None, None).contains(r"& $-$55.6 & NO & NO \\"), "a minus sign, not a hyphen");
    let latex = comparison.latex(None, None);
    let counted = |words: &str| latex.matches(words).count();
    assert_eq!(
        (counted(r"\begin{table}"), counted(r"\documentclass"), counted(r"\fi")),
        (2, 1, 2),
        "{latex}"
    );
    assert!(
        latex.find(r"\expandafter\toglEnd") > latex.rfind(r"\end{table}"),
        "both are there when it stands alone"
    );
    assert_eq!(comparison.csv().lines().count(), 3);
    assert!(comparison.csv().lines().next().unwrap().ends_with(",within_one_std,within_two_standard_errors"));
    assert!(comparison.json().contains(r#""within_one_std": false"#));
}

#[test]
fn a_table_that_fits_several_published_ones_must_be_told_which() {
    let frame = frame(structural(Backbone::Gcn, &[0.5, 0.6]));
    let table = Layout::Table1.make(&frame).unwrap();
    let message = Comparison::find(&table, &frame).unwrap_err().to_string();
    insta::assert_snapshot!(message, @"cannot compare with a published table: several tables fit it equally well; name one of table1, table2");
    let error = Comparison::with(&table, &frame, "table9").unwrap_err();
    assert!(error.to_string().contains("there is no table `table9`"), "{error}");
}

#[test]
fn depth_decides_which_published_cell_is_meant() {
    let rows = structural(Backbone::Gcn, &[0.68, 0.68]);
    let frame = frame(rows);
    let table = Layout::StructuralExtended.make(&frame).unwrap();
    let comparison = Comparison::find(&table, &frame).unwrap();
    assert_eq!(comparison.published_table, "structural-extended");
    let published = comparison.cells[0].published.as_ref().unwrap();
    assert_eq!((published.depth, published.mean), (Some(4), 68.0));
    assert!(comparison.cells[0].difference.unwrap().abs() < 1e-9);
}

const SWEEP: &str = "version: 1
name: mine
base: {features: random}
grid: {dataset: [DD], depth: [2, 3], togl: [false, true], deepset: {values: [false, true], when: {togl: true}}}
splits: [0, 1]
seeds: [0]
table: {rows: [togl], columns: depth, select: {among: [deepset]}}
published:
  table: my-table
  metric: last_validation_accuracy
  methods: {Plain: {togl: false}, TOGL: {togl: true}}
  datasets: {Proteins: DD}
  columns: [method, dataset, depth, mean, std]
  cells:
    - [Plain, Proteins, 2, 60.0, 1.0]
    - [TOGL, Proteins, 2, 50.0, 30.0]
    - [TOGL, Proteins, 9, 1.0, 1.0]
    - [Forest, Proteins, 2, 1.0, null]
";

/// A sweep that trains everything it plans, with the same numbers everywhere.
fn trained(text: &str) -> (SweepSpec, FoldFrame, Plan) {
    let sweep = SweepSpec::parse(text).unwrap();
    let trials = &sweep.trials;
    let rows = trials.iter().flat_map(|trial| folds(trial.position, &trial.config, &[0.6, 0.62]));
    let (frame, plan) = (frame(rows), Plan::of_sweep(&sweep));
    (sweep, frame, plan)
}

#[test]
fn the_last_place_of_the_topological_layer_is_a_printed_one() {
    let text = "version: 1\nname: mine\nbase: {dataset: DD, depth: 4, togl: true}\n\
                grid: {togl_position: [1, last]}\nsplits: [0, 1]\nseeds: [0]\n\
                table: {rows: [togl_position], columns: dataset}\npublished:\n  table: placement\n  \
                methods: {\"GCN-3-TOGL-1 (no interaction)\": {deepset: false}}\n";
    let (sweep, frame, plan) = trained(text);
    let comparison = &Comparison::of_sweep(&frame, &plan, &sweep).unwrap()[0];
    let places: Vec<_> =
        comparison.cells.iter().map(|cell| cell.published.as_ref().unwrap().position).collect();
    assert_eq!(places, [Some(1), Some(4)]);
    assert_eq!(comparison.cells.len() + comparison.missing.len(), 96, "the cells that the program knows");
    let named = SweepSpec::parse(&text.replace("columns: dataset", "columns: method")).unwrap();
    let table = Table::of_block(&frame, &plan, &named.table, None).unwrap();
    let printed_as = Some("GCN-3-TOGL-1 (no interaction)".to_owned());
    let rows = table.rows.iter().map(|row| TableRow { printed_as: printed_as.clone(), ..row.clone() });
    let labels = vec!["togl_position".to_owned(), "dataset".to_owned()];
    let rows = rows.map(|row| TableRow { labels: vec![row.labels[0].clone(), "DD".to_owned()], ..row });
    let table = Table { rows: rows.collect(), row_settings: labels, ..table.clone() };
    let comparison = Comparison::with(&table, &frame, "placement").unwrap();
    let by_name: Vec<_> =
        comparison.cells.iter().map(|cell| cell.published.as_ref().unwrap().position).collect();
    assert_eq!(by_name, places, "names find the same cells as settings");
}

#[test]
fn what_is_within_two_standard_errors_depends_on_how_many_folds_there_are() {
    let few = structural(Backbone::Gcn, &[0.63, 0.67]);
    let many = structural(Backbone::Gcn, &[0.63, 0.67, 0.63, 0.67, 0.63, 0.67, 0.63, 0.67, 0.63, 0.67]);
    let [few, many] = [few, many].map(|rows| {
        let frame = frame(rows);
        Comparison::with(&Layout::Table1.make(&frame).unwrap(), &frame, "table1").unwrap()
    });
    // 65.0 beside 68.0 ± 3.6: three points off.
    assert_eq!((counted(&few), counted(&many)), ((1, 1, 1), (1, 0, 1)));
}

/// Cells within one deviation, within two errors, and all that are compared.
fn counted(comparison: &Comparison) -> (usize, usize, usize) {
    let all = comparison.agreement();
    assert_eq!((all.of_std, all.of_errors), (all.cells, all.cells));
    (all.within_one_std, all.within_two_standard_errors, all.cells)
}

#[test]
fn a_sweep_is_compared_with_its_own_published_numbers_by_what_labels_mean() {
    let (sweep, frame, plan) = trained(SWEEP);
    let comparisons = Comparison::of_sweep(&frame, &plan, &sweep).unwrap();
    let [comparison] = comparisons.as_slice() else { panic!("{} comparisons", comparisons.len()) };
    assert_eq!((comparison.published_table.as_str(), counted(comparison)), ("my-table", (2, 2, 2)));
    assert_eq!(comparison.cells.len(), 4, "two depths, with and without TOGL");
    let missing: Vec<&str> = comparison.missing.iter().map(|cell| cell.method.as_str()).collect();
    assert_eq!(
        missing,
        ["TOGL", "Forest"],
        "a depth that was not trained, and a label that means nothing here"
    );
    let without = SweepSpec::parse(SWEEP.split("published:").next().unwrap()).unwrap();
    let error = Comparison::of_sweep(&frame, &plan, &without).unwrap_err();
    insta::assert_snapshot!(error, @"cannot compare with a published table: the sweep `mine` has no `published` block; compare with the published tables (`--compare paper`), or add the block");
}
