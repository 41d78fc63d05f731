//! What is read of a store that nobody serves: every verb that looks, folds at size, and what deleting a sweep leaves. The
//! store is that of a real coordinator with simulated workers, which ended without a word.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod desk;

use desk::{Desk, Said};

/// A desk with a store of 30 finished folds of the sweep `bench`, three trials on ten splits.
fn filled() -> Desk {
    let desk = Desk::new();
    let state = desk.path("state");
    let said = desk.togl(&[
        "bench",
        "dispatch",
        "--folds",
        "30",
        "--workers",
        "2",
        "--slots",
        "2",
        "--keep",
        state.to_str().unwrap(),
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
    desk
}

/// The cells of the first column, without its head.
fn first_column(said: &Said) -> Vec<String> {
    said.out.lines().skip(1).map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn folds_are_listed_in_pages_with_short_ids_that_other_verbs_take() {
    let desk = filled();
    let said = desk.togl(&["folds", "bench", "--skip", "10", "--limit", "5"]);
    assert_eq!((said.code, said.err.as_str()), (0, "11 to 15 of 30 folds; go on with --skip 15\n"));
    let head = said.out.lines().next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(head, "FOLD METHOD DATASET SETTINGS SPLIT SEED STATE VALUE SECONDS WORKER ATTEMPTS FAILURE");
    let line: Vec<&str> = said.out.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(line[1..8], ["GCN-4", "no-op", "data_seed=2", "0", "0", "finished", "0.5000"]);
    let folds = first_column(&said);
    assert_eq!(folds.len(), 5);
    let (trial, rest) = folds[0].split_once('/').unwrap();
    assert_eq!((trial.len(), rest), (8, "0/0"));
    for verb in ["history", "explain"] {
        let said = desk.togl(&[verb, &folds[0]]);
        assert!(
            said.code == 0 && said.out.contains("accepted") | said.out.contains("finished"),
            "{verb}: {}",
            said.err
        );
    }
    let all = desk.togl(&["folds", "bench", "--format", "ndjson"]);
    assert_eq!(all.out.lines().count(), 30, "programs get all of them");
    assert!(
        all.out
            .lines()
            .all(|line| line.contains(r#""settings":{"data_seed":""#) && line.contains(r#""value":0.5"#))
    );
}

#[test]
fn folds_are_chosen_by_state_worker_class_trial_and_data_set() {
    let desk = filled();
    let count = |options: &[&str]| {
        let said = desk.togl(&[&["folds", "bench", "--format", "csv"], options].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        said.out.lines().count() - 1
    };
    assert_eq!(count(&["--in", "finished,failed", "--dataset", "NO-OP"]), 30);
    assert_eq!(count(&["--worker", "bench-0"]) + count(&["--worker", "bench-1"]), 30);
    assert_eq!(count(&["--class", "data"]), 0);
    let first = first_column(&desk.togl(&["folds", "bench", "--limit", "1"])).remove(0);
    assert_eq!(count(&["--trial", first.split_once('/').unwrap().0]), 10);
    let none = desk.togl(&["folds", "bench", "--in", "failed"]);
    assert_eq!((none.code, none.err.as_str()), (1, "error: no fold of bench is like that\n"));
    for (options, reason) in [
        (["--in", "lost"], "is no state of a fold; use pending, running, finished or failed"),
        (["--class", "lost"], "lost"),
        (["--trial", "xyz"], "is not the beginning of a trial's id"),
    ] {
        let said = desk.togl(&[&["folds", "bench"], &options[..]].concat());
        assert!(said.code == 2 && said.err.contains(reason), "{options:?}: {}", said.err);
    }
}
