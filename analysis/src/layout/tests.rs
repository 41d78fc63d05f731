//! Requirements of the layouts: named as published, made from rows that belong to them, printed names beside ours.

use togl_sweeps::TrialConfig;
use togl_sweeps::trial::{Backbone, Features, Placement, Position};

use super::*;
use crate::render;
use crate::test_folds::{folds, frame};

fn network(features: Features, model: Backbone, togl: bool) -> TrialConfig {
    TrialConfig { dataset: "DD".to_owned(), features, model, togl, depth: 4, ..TrialConfig::default() }
}

#[test]
fn an_unknown_layout_is_refused_with_the_known_ones() {
    assert_eq!("structural-extended".parse::<Layout>().unwrap(), Layout::StructuralExtended);
    let error = "structural-extnded".parse::<Layout>().unwrap_err();
    insta::assert_snapshot!(error, @"no layout `structural-extnded`; did you mean `structural-extended`?");
    assert!(Layout::WORDS.iter().all(|name| name.parse::<Layout>().unwrap().as_str() == *name));
}

#[test]
fn a_network_stands_under_what_was_built_with_the_printed_name_beside_it() {
    let added = network(Features::Random, Backbone::Gcn, true);
    let deepset = TrialConfig { deepset: true, ..added.clone() };
    let mut rows = folds(0, &network(Features::Random, Backbone::Gcn, false), &[0.5, 0.6]);
    rows.extend(folds(1, &added, &[0.7, 0.2]));
    rows.extend(folds(2, &deepset, &[0.3, 0.8]));
    rows.extend(folds(3, &network(Features::Random, Backbone::Gin, false), &[0.9, 0.9]));
    rows.extend(folds(4, &network(Features::Original, Backbone::Gat, false), &[0.1, 0.1]));
    let table = Layout::Table1.make(&frame(rows)).unwrap();
    insta::assert_snapshot!(render::terminal(&table, false), @"
    table1

                                             dataset
                                           ───────────
    method                                          DD
    ─────────────────────────────────────  ───────────
    GCN-4                                  55.0 ± 7.1
    GCN-4-TOGL-1 (General) [GCN-3-TOGL-1]  75.0 ± 7.1△
    GIN-4                                  90.0 ± 0.0▲

    Test accuracy of the best checkpoint in percent, mean ± sample standard deviation (divisor n - 1) over 2 folds.
    ▲ best mean of its column
    △ best of its comparison (same backbone and size)
    TOGL without a named embedding: per fold the embedding with the highest validation accuracy of the last epoch, of equal ones the last run
    ");
    assert!(
        render::json(&table)
            .contains(r#""method":"GCN-4-TOGL-1 (General)","dataset":"DD","printed_as":"GCN-3-TOGL-1""#)
    );
    assert!(render::latex(&table).contains(r"\itshape 75.0 & $\pm$ & \itshape 7.1"));
}

#[test]
fn runs_without_cycles_are_an_ablation_and_stand_in_no_published_table() {
    let full = TrialConfig {
        dataset: "Necklaces".to_owned(),
        togl_position: Position::After(3),
        ..network(Features::Original, Backbone::Gcn, true)
    };
    let ablation = TrialConfig { dim1: false, ..full.clone() };
    let mut rows = folds(0, &full, &[0.9, 1.0]);
    rows.extend(folds(1, &ablation, &[0.1, 0.2, 0.3]));
    let table = Layout::PlacementNecklaces.make(&frame(rows)).unwrap();
    let text = render::terminal(&table, false);
    assert!(text.contains("95.0 ± 7.1") && !text.contains("20.0"), "{text}");
    assert!(text.contains("3 folds of TOGL without cycles (`dim1: false`) are no part of it"), "{text}");
    let error = Layout::PlacementNecklaces.make(&frame(folds(0, &ablation, &[0.1]))).unwrap_err();
    assert!(error.to_string().contains("1 folds of TOGL without cycles"), "{error}");
}

#[test]
fn a_network_in_which_togl_replaces_a_layer_is_printed_alike() {
    let replaced = TrialConfig {
        placement: Placement::Replace,
        static_variant: true,
        ..network(Features::Original, Backbone::Gin, true)
    };
    let table = Layout::BenchmarkStatic.make(&frame(folds(0, &replaced, &[0.5, 0.6]))).unwrap();
    let trained: Vec<_> = table.rows.iter().filter(|row| !row.is_cited()).collect();
    assert_eq!(trained[0].labels, ["GIN-3-TOGL-1 (General, static)"]);
    assert_eq!(trained[0].printed_as.as_deref(), Some("GIN-3-TOGL-1 (static)"));
    let table = Layout::BenchmarkStatic
        .make(&frame(folds(0, &network(Features::Original, Backbone::Gcn, false), &[0.5])))
        .unwrap();
    let mut trained = table.rows.iter().filter(|row| !row.is_cited());
    assert_eq!(trained.next().unwrap().printed_as.as_deref(), Some("GCN-4 (baseline)"));
}

#[test]
fn kernels_are_not_taken_for_networks_and_have_rows_of_their_own() {
    let kernel = |model| network(Features::Original, model, false);
    let mut rows = folds(0, &kernel(Backbone::Gcn), &[0.5, 0.6]);
    rows.extend(folds(1, &kernel(Backbone::WlOa), &[0.7, 0.8]));
    rows.extend(folds(2, &kernel(Backbone::Wl), &[0.6, 0.7]));
    rows.extend(folds(3, &kernel(Backbone::Ph), &[0.1, 0.1]));
    let table = Layout::Table2.make(&frame(rows)).unwrap();
    let trained: Vec<_> = table.rows.iter().filter(|row| !row.is_cited()).collect();
    let printed: Vec<_> = trained.iter().map(|row| row.printed_as.as_deref().unwrap()).collect();
    assert_eq!(printed, ["WL", "WL-OA", "GCN-4"], "PH is not printed");
    assert!(trained.iter().all(|row| row.cells[0].n == 2));
}

#[test]
fn positions_are_rows_and_the_last_one_is_a_number() {
    let at = |position| TrialConfig {
        togl_position: position,
        ..network(Features::Original, Backbone::Gcn, true)
    };
    let mut rows = folds(0, &at(Position::Last), &[0.5, 0.6]);
    rows.extend(folds(1, &at(Position::After(2)), &[0.7, 0.8]));
    rows.extend(folds(2, &TrialConfig { deepset: true, ..at(Position::After(2)) }, &[0.9, 0.1]));
    let table = Layout::Placement.make(&frame(rows)).unwrap();
    let labels: Vec<&[String]> = table.rows.iter().map(|row| row.labels.as_slice()).collect();
    assert_eq!(labels, [["DD", "2"], ["DD", "4"]]);
    let mean = |row: usize, method: &str| {
        let at = table.columns.iter().position(|column| column.label == method).unwrap();
        table.rows[row].cells[at].mean.map(f64::round)
    };
    assert_eq!(mean(0, "GCN-3-TOGL-1"), Some(85.0), "0.9 and 0.8 were best on validation");
    assert_eq!(mean(0, "GCN-3-TOGL-1 (no interaction)"), Some(75.0));
    assert_eq!(mean(1, "GCN-3-TOGL-1 (static)"), None);
}

#[test]
fn a_frame_without_rows_of_the_layout_is_refused() {
    let rows = folds(0, &network(Features::Original, Backbone::Gcn, false), &[0.5]);
    for layout in [Layout::Table1, Layout::Placement, Layout::Table3] {
        assert!(matches!(layout.make(&frame(rows.clone())), Err(Error::Empty { .. })), "{layout:?}");
    }
}

#[test]
fn rows_that_the_publication_cites_are_grey_and_win_nothing() {
    let rows = folds(0, &network(Features::Original, Backbone::Gcn, false), &[0.5, 0.6]);
    let table = Layout::BenchmarkStatic.make(&frame(rows)).unwrap();
    let cited: Vec<&str> =
        table.rows.iter().filter(|row| row.is_cited()).map(|row| row.labels[0].as_str()).collect();
    assert!(cited.contains(&"WL") && cited.contains(&"GIN-4"), "{cited:?}");
    assert!(table.cells().all(|(_, _, cell)| !(cell.cited && cell.best)));
    assert!(render::latex(&table).contains(r"\color{gray}WL & \color{gray}"));
    assert!(
        render::html(&table)
            .contains(r#"<tr class="cited" style="color: #767676"><th scope="row">WL (cited)</th>"#)
    );
    assert!(render::markdown(&table).contains("| WL (cited) |"));
    assert!(render::terminal(&table, true).contains("\u{1b}[2mWL (cited)"));
    assert!(render::json(&table).contains(r#""cited":true"#));
    assert!(render::csv(&table).lines().next().unwrap().ends_with("marks,cited"));
    assert!(table.notes.iter().any(|note| note.starts_with("cited: ")));
    let saved = crate::SavedTable::parse(&render::json(&table), "`saved.json`").unwrap();
    assert!(saved.verify(&table).holds(), "cited numbers are not ours to verify");
}

#[test]
fn data_sets_of_graphs_and_of_vertices_have_headers_of_their_own() {
    let on = |dataset: &str| TrialConfig {
        dataset: dataset.to_owned(),
        ..network(Features::Random, Backbone::Gcn, false)
    };
    let mut rows = folds(0, &on("PATTERN"), &[0.5, 0.6]);
    rows.extend(folds(1, &on("DD"), &[0.7, 0.8]));
    let table = Layout::Table1.make(&frame(rows)).unwrap();
    let heads: Vec<(Option<&str>, &str)> =
        table.columns.iter().map(|column| (column.group.as_deref(), column.label.as_str())).collect();
    assert_eq!(heads, [(Some("Graph classification"), "DD"), (Some("Node classification"), "PATTERN")]);
}
