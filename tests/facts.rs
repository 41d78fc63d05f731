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
        (["--class", "not-finit"], "did you mean `not-finite`?"),
        (["--trial", "xyz"], "is not the beginning of a trial's id"),
    ] {
        let said = desk.togl(&[&["folds", "bench"], &options[..]].concat());
        assert!(said.code == 2 && said.err.contains(reason), "{options:?}: {}", said.err);
    }
}

#[test]
fn every_verb_that_looks_works_on_a_store_that_nobody_serves() {
    let desk = filled();
    let fold = first_column(&desk.togl(&["folds", "bench", "--limit", "1"])).remove(0);
    let looks: [(&[&str], &str); 8] = [
        (&["sweeps"], "bench  done   3       30     0        0        30        0"),
        (&["status", "bench"], "bench (done): 30 of 30 folds finished, 0 running, 0 pending, 0 failed"),
        (&["workers"], "bench-0  "),
        (&["explain", &fold], ": it is finished (attempt 1)\n  in sweeps: bench\n  attempt 1 on bench-"),
        (&["history", &fold], "  accepted   1        bench-"),
        (&["replicates"], ""),
        (&["table", "bench"], "50.0 ± 0.0"),
        (&["folds", "bench"], "finished  0.5000"),
    ];
    for (verb, expected) in looks {
        let said = desk.togl(verb);
        assert_eq!(said.code, 0, "{verb:?}: {}", said.err);
        assert!(said.out.contains(expected), "{verb:?}: {}", said.out);
        assert!(!said.err.contains("error"), "{verb:?}: {}", said.err);
    }
    std::fs::write(desk.path("bench.yaml"), "version: 1\nname: bench\nbase: {dataset: no-op}\nsplits: [0]\n")
        .unwrap();
    let plan = desk.togl(&["plan", "bench.yaml"]);
    assert!(plan.code == 0 && plan.out.contains("  orphaned   30"), "{}{}", plan.out, plan.err);
    let told = desk.togl(&["status", "bench"]).err;
    assert!(
        told.starts_with("no coordinator serves ") && told.contains("; this is what its store holds"),
        "{told}"
    );
    let silent = desk.togl(&["logs", &fold]);
    assert_eq!((silent.code, silent.err), (1, format!("error: the trainers of {fold} wrote nothing\n")));
    let followed = desk.togl(&["logs", "-f", &fold]);
    assert_eq!(followed.code, 0, "{}", followed.err);
    let unknown = desk.togl(&["status", "bunch"]);
    assert_eq!((unknown.code, unknown.err.contains("did you mean `bench`?")), (1, true), "{}", unknown.err);
}

#[test]
fn a_sweep_is_deleted_when_somebody_says_so_and_the_file_shrinks() {
    let desk = filled();
    let size = || std::fs::metadata(desk.path("state/store.sqlite")).unwrap().len();
    let before = size();
    let asked = desk.togl(&["delete", "bench"]);
    assert_eq!(asked.code, 2, "nobody is there to be asked");
    assert!(
        asked.err.contains("30 folds with 30 results") && asked.err.contains("hint: say --yes"),
        "{}",
        asked.err
    );
    let said = desk.togl(&["delete", "bench", "--yes"]);
    assert!(said.code == 0 && said.err.contains("\ndeleted bench; the store had "), "{}", said.err);
    assert!(size() < before, "{} after {before}", size());
    let gone = desk.togl(&["table", "bench"]);
    assert_eq!(gone.code, 1, "{}", gone.err);
    assert!(desk.togl(&["delete", "bench", "--yes"]).err.starts_with("error: there is no sweep `bench`"));
}
