//! Tables and figures as a user meets them: saved folds in every format, the options of `togl table` and
//! `togl plot`, and bad input, which gets a message, an exit code and no half-written file.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod desk;

use std::fs;

use desk::Desk;

#[test]
fn folds_of_every_format_make_the_same_table() {
    let desk = Desk::new();
    let mut tables = Vec::new();
    for name in ["folds.parquet", "folds.arrow", "folds.csv", "folds.ndjson"] {
        desk.import(name);
        let said = desk.togl(&["table", "--from", name, "--format", "json"]);
        assert_eq!(said.code, 0, "{name}: {}", said.err);
        tables.push(said.out);
    }
    assert!(tables.iter().all(|table| *table == tables[0]));
    fs::write(desk.path("saved.json"), &tables[0]).unwrap();
    let said = desk.togl(&["table", "--from", "folds.arrow", "--verify", "saved.json"]);
    assert_eq!((said.code, said.out.as_str()), (0, "6 of 6 cells are as saved\n"));
}

#[test]
fn a_fold_in_two_files_is_refused_with_both_named() {
    let desk = Desk::new();
    desk.import("a.parquet");
    desk.import("b.arrow");
    let said = desk.togl(&["table", "--from", "a.parquet", "b.arrow"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(
        said.err.contains("the same fold twice: ") && said.err.contains("(a.parquet and b.arrow)"),
        "{}",
        said.err
    );
}

#[test]
fn rows_columns_group_and_choice_come_from_the_command_line() {
    let desk = Desk::new();
    desk.import("folds.parquet");
    let said = desk.togl(&[
        "table",
        "--from",
        "folds.parquet",
        "--rows",
        "togl",
        "--columns",
        "depth",
        "--group",
        "dataset",
        "--select",
        "deepset",
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
    insta::assert_snapshot!(said.out, @"
    folds

                dataset, depth
           ────────────────────────
                      DD
           ────────────────────────
    togl             2            4
    ─────  ───────────  ───────────
    false  61.0 ± 1.0   71.0 ± 1.0▲
    true   67.7 ± 6.7▲  67.7 ± 6.7

    Test accuracy of the best checkpoint in percent, mean ± sample standard deviation (divisor n - 1) over 3 folds.
    ▲ best mean of its column
    chosen: in each split the best of deepset by validation accuracy of the last epoch, of equal runs the last; only where all of them have finished
    ");
}

#[test]
fn a_filter_leaves_some_trials_and_misspelt_words_get_a_hint() {
    let desk = Desk::new();
    desk.import("folds.parquet");
    let said = desk.togl(&[
        "table",
        "--from",
        "folds.parquet",
        "--filter",
        "depth=4",
        "--filter",
        "togl=false",
        "--format",
        "csv",
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(said.out.lines().count(), 2, "{}", said.out);
    for (arguments, hint) in [
        (["--rows", "dpeth"], "no setting `dpeth`; did you mean `depth`?"),
        (["--filter", "depth"], "`depth` is not a setting with its values"),
        (["--by", "validation_accuracy"], "--by decides a choice"),
        (["--metric", "accuracy"], "no metric `accuracy`"),
        (["--select", "dataset"], "cannot be `dataset`; it is what `select` chooses among"),
    ] {
        let said = desk.togl(&[&["table", "--from", "folds.parquet"][..], &arguments].concat());
        assert_eq!(said.code, 2, "{arguments:?}");
        assert!(said.err.contains(hint), "{arguments:?}: {}", said.err);
    }
}

#[test]
fn a_search_is_listed_by_validation() {
    let desk = Desk::new();
    desk.import("folds.parquet");
    let best = |more: &[&str]| desk.togl(&[&["best", "--from", "folds.parquet"][..], more].concat());
    let by = ["--by", "last_validation_accuracy", "--filter", "togl=true"];
    let said = best(&by);
    assert_eq!(said.code, 0, "{}", said.err);
    insta::assert_snapshot!(said.out, @"
    rank  method                  depth  deepset  validation   test        n  trial
    1     GCN-4-TOGL-1 (DeepSet)  4      true     63.3 ± 46.2  71.0 ± 1.0  3  2b77fb93cb20
    2     GCN-2-TOGL-1 (DeepSet)  2      true     63.3 ± 46.2  71.0 ± 1.0  3  4fe44c52690b
    3     GCN-4-TOGL-1            4      false    36.7 ± 46.2  61.0 ± 1.0  3  91180956b15b
    4     GCN-2-TOGL-1            2      false    36.7 ± 46.2  61.0 ± 1.0  3  e2318e64e33e
    ");
    assert!(
        said.err.starts_with("From best to worst by the mean validation accuracy of the last epoch;"),
        "{}",
        said.err
    );
    let json: serde_json::Value =
        serde_json::from_str(&best(&[&by[..], &["--top", "1", "--format", "json"]].concat()).out).unwrap();
    assert_eq!(
        (json.as_array().unwrap().len(), &json[0]["settings"]["deepset"]),
        (1, &serde_json::Value::Bool(true))
    );
    let csv = best(&[&by[..], &["--format", "csv"]].concat()).out;
    assert!(csv.starts_with("rank,trial,method,depth,deepset,validation_mean,"), "{csv}");
    let said = best(&[]);
    said.fails(1, "no fold has a value of `validation_accuracy`");
}

#[test]
fn one_configuration_is_shown_and_explained() {
    let desk = Desk::new();
    desk.import("folds.parquet");
    let by = ["--by", "last_validation_accuracy"];
    let table =
        ["table", "--from", "folds.parquet", "--rows", "togl", "--columns", "depth", "--select", "config"];
    let said = desk.togl(&[&table[..], &by].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.contains("chosen: for each cell one configuration, the best of deepset by the mean"),
        "{}",
        said.out
    );
    let said = desk.togl(&[&table[..], &by, &["--explain", "true", "4"]].concat());
    assert_eq!(said.out.matches("deepset=true").count(), 3, "{}", said.out);
    let said = desk.togl(&table);
    said.fails(2, "call it `best_val_acc`");
}

#[test]
fn a_table_is_ready_for_a_paper() {
    let desk = Desk::new();
    desk.import("folds.parquet");
    let options =
        ["--order", "depth=4,2", "--decimals", "2", "--caption", "Deeper is better", "--label", "tab:deep"];
    let table =
        ["table", "--from", "folds.parquet", "--rows", "method", "--columns", "depth", "--format", "latex"];
    let said = desk.togl(&[&table[..], &options].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.contains(r"\caption{Deeper is better: Test accuracy")
            && said.out.contains(r".}\label{tab:deep}")
    );
    let (four, two) = (said.out.find(r"\multicolumn{3}{c}{4}"), said.out.find(r"\multicolumn{3}{c}{2}"));
    assert!(four.is_some() && four < two, "{}", said.out);
    let compare =
        ["table", "--from", "folds.parquet", "--layout", "structural-extended", "--compare", "paper"];
    let said = desk.togl(&[&compare[..], &["--format", "latex"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.contains(r"row & column & ours & published & difference & within 1 std & within 2 SE \\"),
        "{}",
        said.out
    );
    assert!(said.out.contains(r"\bottomrule") && !said.out.contains("U+"), "{}", said.out);
    for what in [&compare[..], &compare[..5]] {
        let paper = ["--format", "latex", "--caption", "Ours → α", "--label", "tab:ours"];
        let said = desk.togl(&[what, &paper].concat());
        assert!(said.out.contains(r"\caption{Ours $\to$ $\alpha$: "), "{}", said.out);
        assert!(said.out.contains(r"\label{tab:ours}"), "{}", said.out);
    }
}

/// Filtrations on two graphs, as a worker really writes them: whoever changes it there, changes it here.
fn learn(desk: &Desk) {
    let trial = "version: 1\nname: tiny\nsplits: [0]\nseeds: [0]\nbase: {dataset: necklaces, togl: true, depth: 1, \
                 hidden_dim: 8, max_epochs: 1, num_filtrations: 2, filtration_hidden: 4}\n";
    fs::write(desk.path("tiny.yaml"), trial).unwrap();
    let learn = [
        "worker",
        "filtrations",
        "--trial",
        "tiny.yaml",
        "--graph",
        "3",
        "7",
        "--data-dir",
        "data",
        "--state",
        "w",
    ];
    let said = desk.togl(&learn);
    assert_eq!(said.code, 0, "{}", said.err);
    fs::write(desk.path("learnt.json"), said.out).unwrap();
}

#[test]
fn figures_are_drawn_from_saved_folds_and_from_filtrations() {
    let desk = Desk::new();
    desk.import("folds.parquet");
    learn(&desk);
    let said = desk.togl(&["plot", "--from", "learnt.json", "--figure", "filtrations", "--out", "graph.png"]);
    assert_eq!((said.code, said.err.as_str()), (0, "wrote graph-1.png\nwrote graph-2.png\n"));
    for (name, arguments) in [
        ("depth.svg", &["--from", "folds.parquet"][..]),
        (
            "folds.png",
            &["--from", "folds.parquet", "--figure", "heat-map", "--layout", "structural-extended"],
        ),
        ("plain.png", &["--from", "folds.parquet", "--figure", "heat-map"]),
        (
            "by-depth.svg",
            &["--from", "folds.parquet", "--figure", "heat-map", "--rows", "method", "--columns", "depth"],
        ),
        ("work.svg", &["--from", "folds.parquet", "--figure", "timeline"]),
        (
            "validation.svg",
            &["--from", "folds.parquet", "--filter", "depth=2.0,4", "--metric", "last_validation_accuracy"],
        ),
    ] {
        let said = desk.togl(&[&["plot", "--out", name][..], arguments].concat());
        assert_eq!((said.code, said.err.as_str()), (0, format!("wrote {name}\n").as_str()));
        assert!(fs::metadata(desk.path(name)).unwrap().len() > 500, "{name}");
    }
    let said = desk.togl(&["plot", "--from", "folds.parquet", "--out", "x.svg", "--filter", "depth=99"]);
    said.fails(2, "no trial is left where `depth` is 99");
    let said = desk.togl(&["plot", "--from", "learnt.json", "--out", "x.svg", "--figure", "learning-curves"]);
    assert_eq!(said.code, 2, "a JSON file holds no folds: {}", said.err);
    let absent = ["plot", "--from", "folds.parquet", "--out", "x.svg", "--metric", "validation_accuracy"];
    let said = desk.togl(&absent);
    said.fails(1, "no fold has a value of `validation_accuracy`");
}

#[test]
fn a_figure_for_a_paper_has_no_title_inside_and_an_axis_along_which_something_changes() {
    let desk = Desk::new();
    desk.import("folds.parquet");
    let paper = ["plot", "--from", "folds.parquet", "--out", "paper.pdf", "--no-title"];
    let said = desk.togl(&paper);
    assert_eq!((said.code, said.err.as_str()), (0, "wrote paper.pdf\n"));
    assert!(
        said.out.starts_with(
            "Test accuracy against depth. Test accuracy of the best checkpoint: mean over folds;"
        )
    );
    assert!(fs::read(desk.path("paper.pdf")).unwrap().starts_with(b"%PDF-"));
    let said = desk.togl(&["plot", "--from", "folds.parquet", "--out", "x.svg", "--against", "lr"]);
    assert!(
        said.code == 2
            && said.err.contains("so there is nothing to draw against it; what changes is `depth`"),
        "{}",
        said.err
    );
}

/// The CSV of folds with something changed.
fn spoilt(desk: &Desk, change: impl Fn(&str) -> String) {
    desk.import("good.csv");
    let text = fs::read_to_string(desk.path("good.csv")).unwrap();
    fs::write(desk.path("bad.csv"), change(&text)).unwrap();
}

/// The text with one column of every line replaced.
fn with_column(text: &str, name: &str, value: &str) -> String {
    let at = text.lines().next().unwrap().split(',').position(|column| column == name).unwrap();
    let change = |(line, row): (usize, &str)| {
        let mut fields: Vec<&str> = row.split(',').collect();
        if line > 0 {
            fields[at] = value;
        }
        fields.join(",") + "\n"
    };
    text.lines().enumerate().map(change).collect()
}

/// Makes a table of `bad.csv` with files asked for; nothing may be written.
fn refused(desk: &Desk, code: i32, message: &str) {
    let before = desk.files();
    let said = desk.togl(&["table", "--from", "bad.csv", "--out", "results"]);
    said.fails(code, message);
    assert!(!said.err.contains("panicked"), "{}", said.err);
    assert_eq!(desk.files(), before, "nothing is written");
}

#[test]
fn bad_folds_get_a_message_and_an_exit_code_and_leave_no_file() {
    let desk = Desk::new();
    spoilt(&desk, |text| text.lines().next().unwrap().to_owned() + "\n");
    refused(&desk, 1, "has no folds; is it the right one");
    spoilt(&desk, |text| text.replacen("seed", "sead", 1));
    refused(&desk, 2, "lacks the column");
    spoilt(&desk, |text| with_column(text, "schema_version", "99"));
    refused(&desk, 2, "has schema version 99, this program knows up to");
    spoilt(&desk, |text| with_column(text, "depth", "deep"));
    refused(&desk, 2, "cannot read `bad.csv`");
    spoilt(&desk, |text| format!("{text}too,short\n"));
    refused(&desk, 2, "bad.csv");
    spoilt(&desk, |_| String::new());
    refused(&desk, 2, "cannot read `bad.csv`");
}

#[test]
fn a_metric_without_any_value_is_said_and_is_a_negative_outcome() {
    let desk = Desk::new();
    spoilt(&desk, |text| with_column(text, "test_accuracy", "NaN"));
    let said = desk.togl(&["table", "--from", "bad.csv"]);
    said.fails(1, "none of 18 folds has a value of this metric");
}

#[test]
fn one_fold_has_no_deviation_and_older_rows_mix_with_newer_ones() {
    let desk = Desk::new();
    spoilt(&desk, |text| text.lines().take(2).collect::<Vec<_>>().join("\n"));
    let said = desk.togl(&["table", "--from", "bad.csv"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.contains("60.0 ± n/a") && said.out.contains("one fold has no standard deviation"),
        "{}",
        said.out
    );
    // Rows of an older schema beside rows of this one.
    spoilt(&desk, |text| {
        let lines: Vec<&str> = text.lines().collect();
        let old = with_column(&lines[..3].join("\n"), "schema_version", "1");
        format!("{old}{}\n", lines[3..].join("\n"))
    });
    let said = desk.togl(&["table", "--from", "bad.csv", "--format", "csv"]);
    assert_eq!(said.code, 0, "{}", said.err);
}

#[test]
fn folders_missing_files_and_places_that_cannot_be_written_are_told_once_with_a_hint() {
    let desk = Desk::new();
    desk.import("folds.parquet");
    for folder in ["folder.parquet", "folder.csv", "folder.json", "folder.svg"] {
        fs::create_dir(desk.path(folder)).unwrap();
    }
    let before = desk.files();
    let read = "hint: check the name";
    let write = "hint: name a file in a folder";
    for (arguments, message, hint) in [
        (&["table", "--from", "folder.parquet"][..], "cannot read `folder.parquet`", read),
        (&["table", "--from", "folder.csv"], "cannot read `folder.csv`", read),
        (&["table", "--from", "none.parquet"], "cannot read `none.parquet`", read),
        (&["import", "wandb", "folder.csv", "--out", "x.parquet"], "cannot read `folder.csv`", read),
        (
            &["plot", "--from", "folder.json", "--figure", "filtrations", "--out", "x.svg"],
            "cannot read `folder.json`",
            read,
        ),
        (&["import", "wandb", "runs.csv", "--out", "no/x.parquet"], "cannot write `no/x.parquet`", write),
        (&["import", "wandb", "runs.csv", "--out", "folder.parquet"], "cannot write `folder.parquet`", write),
        (&["plot", "--from", "folds.parquet", "--out", "no/x.svg"], "cannot write `no/x.svg`", write),
        (&["plot", "--from", "folds.parquet", "--out", "folder.svg"], "cannot write `folder.svg`", write),
        (&["plot", "--from", "folds.parquet", "--out", "x.gif"], "use .svg, .png or .pdf", ""),
        (
            &["table", "--from", "folds.parquet", "--out", "runs.csv"],
            "cannot make the folder",
            "hint: choose a writable",
        ),
    ] {
        let said = desk.togl(arguments);
        assert_eq!(said.code, 2, "{arguments:?}: {}", said.err);
        assert!(said.err.contains(message) && said.err.contains(hint), "{arguments:?}: {}", said.err);
        assert!(said.err.matches("(os error").count() <= 1, "said twice: {}", said.err);
        assert_eq!(desk.files(), before, "{arguments:?}");
    }
}

#[test]
fn names_that_a_terminal_would_obey_or_a_spreadsheet_run_are_only_shown() {
    let desk = Desk::new();
    let runs = fs::read_to_string(desk.path("runs.csv")).unwrap();
    fs::write(desk.path("runs.csv"), runs.replace(",DD,", ",=\u{1b}[2J\u{202e},")).unwrap();
    desk.import("folds.csv");
    let said = desk.togl(&["table", "--from", "folds.csv"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("=\\u{1b}[2J\\u{202e}") && !said.out.contains('\u{1b}'), "{}", said.out);
    let said = desk.togl(&["table", "--from", "folds.csv", "--format", "csv"]);
    assert!(said.out.contains("'=\u{1b}[2J"), "data stays as it is, with a guard: {}", said.out);
    let said = desk.togl(&["table", "--from", "folds.csv", "--filter", "dataset=\u{1b}[31mDD"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("\\u{1b}[31mDD") && !said.err.contains('\u{1b}'), "{}", said.err);
    let said = desk.togl(&["table", "--nonsense\u{202e}\u{1b}[2J"]);
    assert!(
        said.err.contains("--nonsense\\u{202e}") && !said.err.contains(['\u{1b}', '\u{202e}']),
        "{}",
        said.err
    );
}
