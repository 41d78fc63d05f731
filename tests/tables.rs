//! Tables and figures as a user meets them: imported runs, saved folds in every format, the options of `togl table` and
//! `togl plot`, and bad input, which gets a message, an exit code and no half-written file.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

const HEADER: &str =
    "State,Runtime,dataset,deepset,depth,fold,model,training_seed,use_node_attributes,test_acc,val_acc";

/// A folder with an export of runs and the folds imported from it.
struct Desk {
    folder: TempDir,
}

/// What a command said.
struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Desk {
    fn new() -> Self {
        let desk = Self { folder: tempfile::tempdir().unwrap() };
        let mut lines = vec![HEADER.to_owned()];
        for fold in 0..3 {
            for depth in [2, 4] {
                let (by, up) = (0.01 * f64::from(fold), 0.05 * f64::from(depth));
                lines.push(format!(
                    "finished,60,DD,,{depth},{fold},LargerGCN,1,false,{:.3},0.5",
                    0.5 + by + up
                ));
                for (deepset, better) in [("false", fold == 0), ("true", fold != 0)] {
                    let judged = if better { 0.9 } else { 0.1 };
                    let tested = 0.6 + by + if deepset == "true" { 0.1 } else { 0.0 };
                    lines.push(format!(
                        "finished,60,DD,{deepset},{depth},{fold},LargerTopoGNN,1,false,{tested:.3},{judged}"
                    ));
                }
            }
        }
        lines.push("crashed,60,DD,,2,9,LargerGCN,1,false,,".to_owned());
        fs::write(desk.path("runs.csv"), lines.join("\n")).unwrap();
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn togl(&self, arguments: &[&str]) -> Said {
        let output = Command::new(env!("CARGO_BIN_EXE_togl"))
            .args(arguments)
            .current_dir(self.folder.path())
            .env("TOGL_STATE", self.path("state"))
            .env_remove("TOGL_TOKEN")
            .env_remove("TOGL_COORDINATOR")
            .env_remove("RUST_LOG")
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Said { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    fn import(&self, name: &str) {
        let said = self.togl(&["import", "wandb", "runs.csv", "--out", name]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(
            said.err,
            format!("left out: runs.csv:20: its state is crashed\nwrote 18 folds to {name}\n")
        );
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

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
        (["--filter", "depth"], "`depth` is not a filter"),
        (["--metric", "accuracy"], "no metric `accuracy`"),
        (["--select", "dataset"], "cannot be `dataset`; it is what `select` chooses among"),
    ] {
        let said = desk.togl(&[&["table", "--from", "folds.parquet"][..], &arguments].concat());
        assert_eq!(said.code, 2, "{arguments:?}");
        assert!(said.err.contains(hint), "{arguments:?}: {}", said.err);
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
            &["--from", "folds.parquet", "--filter", "depth=2.0,3", "--metric", "last_validation_accuracy"],
        ),
    ] {
        let said = desk.togl(&[&["plot", "--out", name][..], arguments].concat());
        assert_eq!((said.code, said.err.as_str()), (0, format!("wrote {name}\n").as_str()));
        assert!(fs::metadata(desk.path(name)).unwrap().len() > 500, "{name}");
    }
    let said = desk.togl(&["plot", "--from", "folds.parquet", "--out", "x.svg", "--filter", "depth=99"]);
    assert!(said.code == 2 && said.err.contains("no trial is left where `depth` is 99"), "{}", said.err);
    let said = desk.togl(&["plot", "--from", "learnt.json", "--out", "x.svg", "--figure", "learning-curves"]);
    assert_eq!(said.code, 2, "a JSON file holds no folds: {}", said.err);
    let absent = ["plot", "--from", "folds.parquet", "--out", "x.svg", "--metric", "validation_accuracy"];
    let said = desk.togl(&absent);
    assert!(
        said.code == 1 && said.err.contains("no fold has a value of `validation_accuracy`"),
        "{}",
        said.err
    );
}

#[test]
fn an_import_says_what_it_left_out_even_if_that_is_everything_and_what_it_averages_over() {
    let desk = Desk::new();
    let runs = fs::read_to_string(desk.path("runs.csv")).unwrap();
    fs::write(desk.path("runs.csv"), runs.replace("finished", "killed")).unwrap();
    let said = desk.togl(&["import", "wandb", "runs.csv", "--out", "x.parquet"]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.starts_with("left out: runs.csv:2: its state is killed\n"), "{}", said.err);
    assert!(said.err.contains("all 19 were left out"), "{}", said.err);
    let kinds = runs.lines().zip(0..).map(|(line, at)| match at {
        0 => format!("{line},min_cycle\n"),
        at => format!("{line},{}\n", 3 + at / 6 % 2),
    });
    fs::write(desk.path("runs.csv"), kinds.collect::<String>()).unwrap();
    let said = desk.togl(&["import", "wandb", "runs.csv", "--out", "x.parquet"]);
    assert!(
        said.code == 0 && said.err.contains("note: runs of one trial differ in `min_cycle`"),
        "{}",
        said.err
    );
    let said = desk.togl(&["import", "wandb", "runs.csv", "--out", "y.parquet", "--only", "min_cycl=3"]);
    assert!(said.code == 2 && said.err.contains("did you mean `min_cycle`?"), "{}", said.err);
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
    assert_eq!(said.code, code, "{} {}", said.out, said.err);
    assert!(said.err.contains(message), "{}", said.err);
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
    assert_eq!(said.code, 1);
    assert!(said.err.contains("none of 18 folds has a value of this metric"), "{}", said.err);
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
fn a_bad_import_writes_nothing_and_keeps_what_was_there() {
    let desk = Desk::new();
    let old = desk.path("folds.parquet");
    fs::write(&old, "old").unwrap();
    let runs = fs::read_to_string(desk.path("runs.csv")).unwrap();
    let before = desk.files();
    for (text, message) in [
        (runs.replacen("depth", "layers", 1), "lacks the column `depth`"),
        (format!("{runs}\nfinished,DD"), "line 21 has 2 fields where the header has 11"),
        (
            format!("{runs}\n{}", runs.lines().nth(1).unwrap()),
            "the same fold twice: GCN-2 on DD, split 0, seed 1 (runs.csv:2 and runs.csv:21)",
        ),
        (runs.replacen("0.600", "60.0", 1), "which is no share from 0 to 1"),
    ] {
        fs::write(desk.path("runs.csv"), text).unwrap();
        let said = desk.togl(&["import", "wandb", "runs.csv", "--out", "folds.parquet"]);
        assert_eq!(said.code, 2, "{message}: {}", said.err);
        assert!(said.err.contains(message), "{}", said.err);
        assert_eq!(fs::read_to_string(&old).unwrap(), "old");
        assert_eq!(desk.files(), before);
    }
    let said = desk.togl(&["import", "wandb", "runs.csv", "--out", "x.parquet", "--map", "dpth=layers"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("did you mean `depth`?"), "{}", said.err);
    assert!(!Path::new(&desk.path("x.parquet")).try_exists().unwrap());
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
    let write = "hint: --out must name a file in a folder";
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
        (&["plot", "--from", "folds.parquet", "--out", "x.gif"], "use .svg or .png", ""),
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
fn a_file_of_another_kind_and_an_empty_one_are_no_export_of_runs() {
    let desk = Desk::new();
    desk.import("folds.parquet");
    let said = desk.togl(&["import", "wandb", "folds.parquet", "--out", "x.parquet"]);
    assert_eq!(said.code, 2, "{}", said.err);
    fs::write(desk.path("empty.csv"), "").unwrap();
    let said = desk.togl(&["import", "wandb", "empty.csv", "--out", "x.parquet"]);
    assert!(said.code == 2 && said.err.contains("is it an export of runs"), "{}", said.err);
    let said = desk.togl(&["table", "--from", "empty.csv"]);
    assert!(said.code == 2 && said.err.contains("cannot read `empty.csv`"), "{}", said.err);
}
