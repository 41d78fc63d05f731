//! Importing runs of another system as a user meets it: what is left out is said, what is bad is refused, and nothing
//! half-written is left behind.

mod desk;

use std::fs;
use std::path::Path;

use desk::Desk;

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
