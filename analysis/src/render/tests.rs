//! Golden texts of every format, from one table that has every kind of cell.

use std::collections::BTreeSet;

use togl_sweeps::FoldKey;
use togl_sweeps::spec::Labels;

use super::*;
use crate::table::{TableColumn, TableRow};
use crate::test_folds::{folds, frame, trial};

fn cell(mean: f64, std: Option<f64>, n: usize, marks: &[Mark]) -> Cell {
    let folds: Vec<FoldKey> = vec!["00112233445566778899aabbccddeeff/0/7".parse().unwrap()];
    let marks: BTreeSet<Mark> = marks.iter().copied().collect();
    Cell { mean: Some(mean), std, n, planned: 10, marks, best: false, folds, ..Cell::default() }
}

fn best(cell: Cell) -> Cell {
    Cell { best: true, ..cell }
}

fn row(labels: &[&str], cells: [Cell; 3]) -> TableRow {
    TableRow {
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        cells: cells.to_vec(),
        printed_as: None,
    }
}

fn rows_of_every_kind() -> Vec<TableRow> {
    let missing = Cell { planned: 10, marks: BTreeSet::from([Mark::Incomplete]), ..Cell::default() };
    let all_mixed = [Mark::MixedCode, Mark::MixedData, Mark::MixedDevices, Mark::MixedNumerics];
    vec![
        row(
            &["GCN-4", "0.001"],
            [
                best(cell(68.04, Some(3.64), 10, &[])),
                cell(72.25, Some(10.0), 7, &[Mark::Incomplete]),
                missing.clone(),
            ],
        ),
        row(
            &["GCN-4-TOGL-1", "0.001"],
            [best(cell(68.04, Some(0.0), 10, &[])), cell(7.0, None, 1, &[Mark::Incomplete]), Cell::default()],
        ),
        row(&["ギン-4", "1e-5"], [cell(9.96, Some(1.0), 10, &all_mixed), missing, cell(50.0, None, 1, &[])]),
    ]
}

/// Complete, tied, incomplete, single, mixed, missing and unplanned cells; names that need escaping.
fn every_kind() -> Table {
    let columns = ["DD", "PROTEINS_full", "100% & <data>|グ"];
    Table {
        scale: togl_sweeps::Scale::SHARE,
        title: "every kind".to_owned(),
        caption: "Test accuracy in percent, mean ± sample standard deviation over 10 folds.".to_owned(),
        notes: vec!["* fewer folds than planned have finished (n=finished/planned)".to_owned()],
        row_settings: vec!["method".to_owned(), "lr".to_owned()],
        column_setting: "dataset".to_owned(),
        group_setting: None,
        columns: columns.map(TableColumn::plain).to_vec(),
        rows: rows_of_every_kind(),
        winners: Winners::PerColumn,
        metric: togl_sweeps::spec::Metric::TestAccuracy,
        spread: crate::spread::Spread::SampleStd,
        emphasis: crate::emphasis::Emphasis::Best,
        remarks: Vec::new(),
        unplanned: 0,
        decimals: 1,
        labels: Vec::new(),
        reference: None,
        chosen: Vec::new(),
    }
}

#[test]
fn terminal_without_colour_points_at_winners() {
    insta::assert_snapshot!(terminal(&every_kind(), false), @"
    every kind

                                                dataset
                         ─────────────────────────────────────────────────────
    method        lr                 DD        PROTEINS_full  100% & <data>|グ
    ────────────  ─────  ──────────────  ───────────────────  ────────────────
    GCN-4         0.001  68.0 ± 3.6▲     72.2 ± 10.0 n=7/10*           –
    GCN-4-TOGL-1  0.001  68.0 ± 0.0▲      7.0 ±  n/a n=1/10*
    ギン-4        1e-5   10.0 ± 1.0†‡§¶     –                       50.0 ± n/a

    Test accuracy in percent, mean ± sample standard deviation over 10 folds.
    ▲ best mean of its column
    * fewer folds than planned have finished (n=finished/planned)
    ");
}

#[test]
fn terminal_with_colour_differs_only_by_bold() {
    let coloured = terminal(&every_kind(), true);
    assert_eq!(coloured.matches("\u{1b}[1m").count(), 2);
    let line = coloured.lines().find(|line| line.starts_with("GCN-4 ")).unwrap();
    assert!(line.contains("\u{1b}[1m68.0 ± 3.6\u{1b}[0m"), "{line:?}");
    assert!(!coloured.contains('▲'));
}

#[test]
fn markdown_is_escaped_and_bold() {
    insta::assert_snapshot!(markdown(&every_kind()), @r#"
    ### every kind

    | method | lr ↓ dataset → | DD | PROTEINS\_full | 100% & \<data\>\|グ |
    | :-- | :-- | --: | --: | --: |
    | GCN-4 | 0.001 | **68.0 ± 3.6** | 72.2 ± 10.0 n=7/10\* | – |
    | GCN-4-TOGL-1 | 0.001 | **68.0 ± 0.0** | 7.0 ± n/a n=1/10\* |  |
    | ギン-4 | 1e-5 | 10.0 ± 1.0†‡§¶ | – | 50.0 ± n/a |

    Test accuracy in percent, mean ± sample standard deviation over 10 folds.

    - bold: best mean of its column
    - \* fewer folds than planned have finished (n=finished/planned)
    "#);
}

#[test]
fn latex_is_escaped_and_uses_booktabs() {
    insta::assert_snapshot!(latex(&every_kind()), @r#"
    % For a paper: \input this file, with \usepackage{booktabs,siunitx,xcolor} in the preamble.
    % By itself it compiles as it is.
    \expandafter\ifx\csname @nodocument\endcsname\relax\else
      \documentclass{article}
      \usepackage[margin=1.5cm, paperwidth=31cm]{geometry}
      \usepackage{booktabs,siunitx,xcolor}
      \begin{document}
      \gdef\toglEnd{\end{document}}
    \fi
    \begin{table}[htbp]
      \centering
      \setlength{\belowcaptionskip}{6pt}
      \caption{every kind: Test accuracy in percent, mean $\pm$ sample standard deviation over 10 folds. Bold: best mean of its column. $^{*}$ fewer folds than planned have finished (n=finished/planned).}
      \sisetup{detect-all, mode=text}
      \setlength{\tabcolsep}{4pt}
      \begin{tabular}{llS[table-format=2.1, table-number-alignment=right]@{\,}c@{\,}S[table-format=1.1, table-number-alignment=left, table-text-alignment=left, table-space-text-post={$^{\dagger\ddagger\S\P}$}]S[table-format=2.1, table-number-alignment=right]@{\,}c@{\,}S[table-format=2.1, table-number-alignment=left, table-text-alignment=left, table-space-text-post={$^{*}$ (n=1/10)}]S[table-format=2.1, table-number-alignment=right]@{\,}c@{\,}S[table-format=1.1, table-number-alignment=left, table-text-alignment=left]}
        \toprule
         &  & \multicolumn{9}{c}{dataset} \\
        \cmidrule(lr){3-11}
        method & lr & \multicolumn{3}{c}{DD} & \multicolumn{3}{c}{PROTEINS\_full} & \multicolumn{3}{c}{\shortstack{100\% \&\\\textless{}data\textgreater{}\textbar{}{[}U+30B0{]}}} \\
        \midrule
        GCN-4 & 0.001 & \bfseries 68.0 & $\pm$ & \bfseries 3.6 & 72.2 & $\pm$ & 10.0 {$^{*}$ (n=7/10)} & \multicolumn{3}{c}{--} \\
        GCN-4-TOGL-1 & 0.001 & \bfseries 68.0 & $\pm$ & \bfseries 0.0 & 7.0 & $\pm$ & {n/a} {$^{*}$ (n=1/10)} & \multicolumn{3}{c}{} \\
        {[}U+30AE{]}{[}U+30F3{]}-4 & 1e-5 & 10.0 & $\pm$ & 1.0 {$^{\dagger\ddagger\S\P}$} & \multicolumn{3}{c}{--} & 50.0 & $\pm$ & {n/a} \\
        \bottomrule
      \end{tabular}
    \end{table}
    \ifdefined\toglEnd\expandafter\toglEnd\fi
    "#);
}

#[test]
fn csv_has_one_line_per_cell_and_unrounded_numbers() {
    insta::assert_snapshot!(csv(&every_kind()), @r#"
    method,lr,dataset,mean,std,n,planned,best,marks
    GCN-4,0.001,DD,68.04,3.64,10,10,true,
    GCN-4,0.001,PROTEINS_full,72.25,10,7,10,false,incomplete
    GCN-4,0.001,100% & <data>|グ,,,0,10,false,incomplete
    GCN-4-TOGL-1,0.001,DD,68.04,0,10,10,true,
    GCN-4-TOGL-1,0.001,PROTEINS_full,7,,1,10,false,incomplete
    GCN-4-TOGL-1,0.001,100% & <data>|グ,,,0,0,false,
    ギン-4,1e-5,DD,9.96,1,10,10,false,mixed-code mixed-data mixed-devices mixed-numerics
    ギン-4,1e-5,PROTEINS_full,,,0,10,false,incomplete
    ギン-4,1e-5,100% & <data>|グ,50,,1,10,false,
    "#);
}

#[test]
fn json_is_a_list_of_cells_with_null_for_what_is_not_defined() {
    let text = json(&every_kind());
    let parsed: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(parsed.len(), 8, "nine places, one of them not planned");
    insta::assert_snapshot!(text, @r#"
    [
    {"method":"GCN-4","lr":0.001,"dataset":"DD","mean":68.04,"std":3.64,"n":10,"planned":10,"best":true,"marks":[],"folds":["00112233445566778899aabbccddeeff/0/7"]},
    {"method":"GCN-4","lr":0.001,"dataset":"PROTEINS_full","mean":72.25,"std":10.0,"n":7,"planned":10,"best":false,"marks":["incomplete"],"folds":["00112233445566778899aabbccddeeff/0/7"]},
    {"method":"GCN-4","lr":0.001,"dataset":"100% & <data>|グ","mean":null,"std":null,"n":0,"planned":10,"best":false,"marks":["incomplete"],"folds":[]},
    {"method":"GCN-4-TOGL-1","lr":0.001,"dataset":"DD","mean":68.04,"std":0.0,"n":10,"planned":10,"best":true,"marks":[],"folds":["00112233445566778899aabbccddeeff/0/7"]},
    {"method":"GCN-4-TOGL-1","lr":0.001,"dataset":"PROTEINS_full","mean":7.0,"std":null,"n":1,"planned":10,"best":false,"marks":["incomplete"],"folds":["00112233445566778899aabbccddeeff/0/7"]},
    {"method":"ギン-4","lr":0.00001,"dataset":"DD","mean":9.96,"std":1.0,"n":10,"planned":10,"best":false,"marks":["mixed-code","mixed-data","mixed-devices","mixed-numerics"],"folds":["00112233445566778899aabbccddeeff/0/7"]},
    {"method":"ギン-4","lr":0.00001,"dataset":"PROTEINS_full","mean":null,"std":null,"n":0,"planned":10,"best":false,"marks":["incomplete"],"folds":[]},
    {"method":"ギン-4","lr":0.00001,"dataset":"100% & <data>|グ","mean":50.0,"std":null,"n":1,"planned":10,"best":false,"marks":[],"folds":["00112233445566778899aabbccddeeff/0/7"]}
    ]
    "#);
}

#[test]
fn html_is_a_whole_page_that_needs_nothing_else() {
    let page = html(&every_kind());
    assert!(
        page.starts_with("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">"),
        "{page}"
    );
    assert!(
        page.contains("<title>every kind</title>")
            && page.contains("<style>\n")
            && page.ends_with("</html>\n")
    );
    assert!(page.contains(&fragment(&every_kind())));
}

#[test]
fn the_setting_of_the_columns_is_named_in_every_format() {
    let table = Table { column_setting: "depth".to_owned(), ..every_kind() };
    let formats =
        [terminal(&table, false), markdown(&table), latex(&table), csv(&table), html(&table), json(&table)];
    for text in formats {
        assert!(text.contains("depth"), "{text}");
    }
}

#[test]
fn labels_stand_for_settings_and_values_where_people_read_and_words_stay_where_programs_do() {
    let labels = |setting: &str, header: Option<&str>, values: &[(&str, &str)]| Labels {
        setting: setting.to_owned(),
        header: header.map(str::to_owned),
        values: values.iter().map(|(value, printed)| ((*value).to_owned(), (*printed).to_owned())).collect(),
    };
    let labels = vec![
        labels("lr", Some("learning rate"), &[]),
        labels("lr", None, &[("1e-3", "fast"), ("0.00001", "slow")]),
        labels("dataset", None, &[("DD", "D&D")]),
    ];
    let table = Table { labels, ..every_kind() };
    for text in [terminal(&table, false), markdown(&table), latex(&table), html(&table)] {
        for wanted in ["learning rate", "fast", "slow"] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        assert!(text.contains("D&D") || text.contains("D&amp;D") || text.contains(r"D\&D"), "{text}");
        assert!(!text.contains("0.001"), "{text}");
    }
    assert_eq!((csv(&table), json(&table)), (csv(&every_kind()), json(&every_kind())));
}

#[test]
fn what_is_best_of_a_search_by_test_values_is_said_to_be() {
    let complete = |lr: &str, mean: f64| row(&["GCN-4", lr], [0; 3].map(|_| cell(mean, None, 10, &[])));
    let rows = vec![complete("0.1", 50.0), complete("0.01", 60.0)];
    let mut searched = Table { rows, ..every_kind() };
    searched.mark_best(Winners::PerColumn);
    let beware = "Among rows that differ in lr only this is a choice by test values";
    for text in [terminal(&searched, false), markdown(&searched), latex(&searched), html(&searched)] {
        assert!(text.contains(beware), "{text}");
    }
    let by_validation = Table { metric: togl_sweeps::spec::Metric::ValidationAccuracy, ..searched.clone() };
    assert!(!terminal(&by_validation, false).contains("test values"));
    let mut methods = searched;
    methods.rows[1].labels[0] = "GIN-4".to_owned();
    assert!(
        !terminal(&methods, false).contains("test values"),
        "methods with rates of their own are compared"
    );
}

#[test]
fn no_sign_of_ours_is_unknown_to_latex_and_a_reference_stands_behind_the_caption() {
    let marks = [
        Mark::Incomplete,
        Mark::MixedCode,
        Mark::MixedData,
        Mark::MixedDevices,
        Mark::MixedNumerics,
        Mark::Stopped,
        Mark::FewerCandidates,
    ];
    let notes = marks.iter().map(|mark| format!("{} {}", mark.sign(), mark.meaning())).collect();
    let rows = vec![row(&["a", "b"], [0; 3].map(|_| cell(1.0, None, 10, &marks)))];
    let columns = ["x", "y", "z"].map(TableColumn::plain).to_vec();
    let table = Table { notes, rows, columns, reference: Some("tab:a b{}%1".to_owned()), ..every_kind() };
    let text = latex(&table);
    assert!(!text.contains("U+"), "{text}");
    assert!(text.contains(r"$^{\diamond}$ chosen among") && text.contains(r".}\label{tab:ab1}"), "{text}");
}

#[test]
fn html_is_escaped_and_bold() {
    insta::assert_snapshot!(fragment(&every_kind()), @r#"
    <figure class="togl-table">
    <table>
    <caption>every kind</caption>
    <thead><tr><td colspan="2"></td><th scope="colgroup" colspan="3">dataset</th></tr><tr><th scope="col" class="label">method</th><th scope="col" class="label">lr</th><th scope="col">DD</th><th scope="col">PROTEINS_full</th><th scope="col">100% &amp; &lt;data&gt;|グ</th></tr></thead>
    <tbody>
    <tr><th scope="row">GCN-4</th><th scope="row">0.001</th><td><strong>68.0 ± 3.6</strong></td><td>72.2 ± 10.0 <small>n=7/10</small><sup>*</sup></td><td>–</td></tr>
    <tr><th scope="row">GCN-4-TOGL-1</th><th scope="row">0.001</th><td><strong>68.0 ± 0.0</strong></td><td>7.0 ± n/a <small>n=1/10</small><sup>*</sup></td><td></td></tr>
    <tr><th scope="row">ギン-4</th><th scope="row">1e-5</th><td>10.0 ± 1.0<sup>†‡§¶</sup></td><td>–</td><td>50.0 ± n/a</td></tr>
    </tbody>
    </table>
    <figcaption>Test accuracy in percent, mean ± sample standard deviation over 10 folds.<br>Bold: best mean of its column<br>* fewer folds than planned have finished (n=finished/planned)</figcaption>
    </figure>
    "#);
}

#[test]
fn decimals_are_as_asked_for() {
    let text = markdown(&Table { decimals: 2, ..every_kind() });
    assert!(text.contains("**68.04 ± 3.64**") && text.contains("72.25 ± 10.00 n=7/10"), "{text}");
}

#[test]
fn machine_readable_formats_say_what_a_publication_prints() {
    let mut table = every_kind();
    table.columns[0].printed_as = Some("Static".to_owned());
    table.columns[1].printed_as = Some("PROTEINS_full".to_owned());
    assert!(json(&table).contains(r#""dataset":"DD","printed_as":"Static""#));
    assert!(json(&table).contains(r#""dataset":"PROTEINS_full","printed_as":"PROTEINS_full""#));
    assert!(csv(&table).starts_with("method,lr,dataset,printed_as,mean"));
}

#[test]
fn a_table_without_row_settings_has_one_row_called_all() {
    let mut table = every_kind();
    table.row_settings.clear();
    table.rows.truncate(1);
    table.rows[0].labels.clear();
    assert!(terminal(&table, false).contains("\nall  "));
    assert!(markdown(&table).contains("\n| all | **68.0"));
}

#[test]
fn all_files_of_a_table_are_written_together() {
    let folder = tempfile::tempdir().unwrap();
    let frame = frame(folds(0, &trial("DD", togl_sweeps::trial::Backbone::Gcn, 4), &[0.5]));
    let dir = folder.path().join("made/when/missing");
    let paths = write_all(&dir, "results", &every_kind(), &frame).unwrap();
    let names: Vec<_> = paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["results.md", "results.tex", "results.csv", "results.parquet"]);
    assert_eq!(fs::read_to_string(&paths[0]).unwrap(), markdown(&every_kind()));
    assert_eq!(FoldFrame::read(&paths[3]).unwrap(), frame);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 4);
}

#[test]
fn a_failure_leaves_no_file_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let frame = frame([]);
    let outcome = write_all(folder.path(), "no/such/folder", &every_kind(), &frame);
    assert!(outcome.is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// The TeX of this machine that can compile our tables, if there is one.
fn tex() -> Option<(&'static str, &'static [&'static str])> {
    let works = |program: &str, arguments: &[&str]| {
        std::process::Command::new(program)
            .args(arguments)
            .output()
            .is_ok_and(|output| output.status.success())
    };
    if works("tectonic", &["--version"]) {
        return Some(("tectonic", &[]));
    }
    let usual: &[&str] = &["-interaction=nonstopmode", "-halt-on-error"];
    (works("pdflatex", &["--version"]) && works("kpsewhich", &["siunitx.sty"])).then_some(("pdflatex", usual))
}

#[test]
fn the_latex_compiles_as_it_is_and_inside_a_paper() {
    let Some((program, arguments)) = tex() else {
        println!("skipped: neither tectonic nor pdflatex with siunitx is installed");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut table = every_kind();
    table.rows[1].cells[1].wins_comparison = true;
    table
        .rows
        .push(row(&["WL", "–"], [Cell::cited(77.7, None), Cell::cited(50.0, Some(1.5)), Cell::default()]));
    for (column, group) in table.columns.iter_mut().zip(["Graphs & more", "Graphs & more", "Vertices"]) {
        column.group = Some(group.to_owned());
    }
    fs::write(folder.path().join("table.tex"), latex(&table)).unwrap();
    let paper = "\\documentclass{article}\n\\usepackage{booktabs,siunitx,xcolor}\n\\begin{document}\nOur results.\n\
                 \\input{table}\nThe end.\n\\end{document}\n";
    fs::write(folder.path().join("paper.tex"), paper).unwrap();
    for file in ["table.tex", "paper.tex"] {
        let mut command = std::process::Command::new(program);
        let output = command.args(arguments).arg(file).current_dir(folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{file}: {said}");
        let pdf = fs::read(folder.path().join(file).with_extension("pdf")).unwrap();
        assert!(pdf.starts_with(b"%PDF") && pdf.len() > 5_000, "{file}");
    }
}

#[test]
fn wide_and_combining_characters_are_counted_as_terminals_show_them() {
    let texts =
        [("GCN-4", 5), ("67.9 ± 3.6", 10), ("グラフ", 6), ("e\u{301}", 1), ("データ-1", 8), ("🙂", 2)];
    for (text, expected) in texts {
        assert_eq!(text.width(), expected, "{text}");
    }
    assert_eq!(right("グ", 4), "  グ");
    assert_eq!(left("±", 3), "±  ");
}
