//! Results that move between stores as their user moves them: from a backup and from saved folds, into a store that is served
//! and into one that nobody serves. Whatever cannot be is named, and then nothing is taken.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod desk;

use std::fs;
use std::process::{Child, Command, Stdio};

use desk::{Desk, Said};

const SWEEP: &str = "version: 1\nname: bench\nbase: {dataset: no-op}\ngrid: {data_seed: {from: 1, to: 3}}\n\
                     splits: {from: 0, to: 9}\nlimits: {max_folds: 30}\n";

/// Two machines on one desk: `state` has a sweep of 30 finished folds, `other` the same sweep and no results.
struct Machines {
    desk: Desk,
    other: String,
}

/// A coordinator of `other`, until it is dropped.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.0.stdin.take()); // it ends by itself
        self.0.wait().unwrap();
    }
}

impl Machines {
    fn new() -> Self {
        let desk = Desk::new();
        let [state, other] = ["state", "other"].map(|name| desk.path(name).to_str().unwrap().to_owned());
        let bench =
            ["bench", "dispatch", "--folds", "30", "--workers", "2", "--slots", "2", "--keep", &state];
        assert_eq!(desk.togl(&bench).code, 0);
        fs::write(desk.path("bench.yaml"), SWEEP).unwrap();
        let machines = Self { desk, other };
        let served = machines.serve();
        machines.there(&["submit", "bench.yaml"]).well();
        drop(served);
        machines
    }

    /// A command on the machine that has nothing yet.
    fn there(&self, arguments: &[&str]) -> Said {
        self.desk.togl(&[arguments, &["--state", &self.other]].concat())
    }

    fn serve(&self) -> Served {
        let mut child = Command::new(env!("CARGO_BIN_EXE_togl"))
            .args(["serve", "--until-stdin-closes", "--listen", "127.0.0.1:0", "--state", &self.other])
            .env_remove("TOGL_STORE")
            .env_remove("RUST_LOG")
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = std::io::BufReader::new(child.stderr.take().unwrap());
        let mut lines = std::io::BufRead::lines(said);
        lines.find(|line| line.as_ref().unwrap().contains("togl-worker join")).unwrap().unwrap();
        Served(child)
    }

    /// The folds of the machine that has them, as a table saves them.
    fn saved(&self) -> String {
        self.desk.togl(&["table", "bench", "--out", "out"]).well();
        let files = fs::read_dir(self.desk.path("out")).unwrap().map(|entry| entry.unwrap().path());
        let mut folds = files.filter(|path| path.extension().is_some_and(|kind| kind == "parquet"));
        folds.next().unwrap().to_str().unwrap().to_owned()
    }

    fn to_do(&self) -> String {
        let said = self.there(&["plan", "bench.yaml"]).well();
        said.out.lines().find(|line| line.contains("to do")).unwrap().trim().to_owned()
    }
}

#[test]
fn a_backup_is_taken_in_by_a_served_store_with_all_its_folds_once() {
    let machines = Machines::new();
    let saved = machines.desk.togl(&["table", "bench", "--format", "json"]).well();
    fs::write(machines.desk.path("saved.json"), &saved.out).unwrap();
    machines.desk.togl(&["backup", "backup.sqlite"]).well();
    assert_eq!(machines.to_do(), "to do      30 (0 new)");
    let served = machines.serve();
    let import = ["import", "store", "backup.sqlite", "--reason", "moved"];
    assert_eq!(machines.there(&import).well().err, "bench: 30 results taken, 0 known already\n");
    assert_eq!(machines.there(&import).well().err, "bench: 0 results taken, 30 known already\n");
    assert_eq!(machines.to_do(), "to do      0 (0 new)");
    let verified = machines.there(&["table", "bench", "--verify", "saved.json"]).well();
    assert!(verified.out.contains("of") && verified.out.contains("cells are as saved"), "{}", verified.out);
    let history = machines.there(&["history", "bench"]).well();
    assert!(history.out.contains("import") && history.out.contains("moved"), "{}", history.out);
    let folds = machines.there(&["folds", "bench", "--format", "ndjson"]).well();
    assert_eq!(folds.out.matches(r#""state":"finished""#).count(), 30);
    drop(served);
    let fold = folds.out.split('"').find(|text| text.ends_with("/0/0")).unwrap();
    let happened = machines.there(&["history", fold]).well();
    assert!(happened.out.contains("imported") && !happened.out.contains("leased"), "{}", happened.out);
}

#[test]
fn saved_folds_are_taken_in_by_a_store_that_nobody_serves() {
    let machines = Machines::new();
    let import = ["import", "folds", &machines.saved(), "--sweep", "bench", "--format", "json"];
    let said = machines.there(&import).well();
    assert!(said.out.contains(r#""taken": 30"#) && said.err.contains("no learning curves"), "{}", said.out);
    assert_eq!(machines.to_do(), "to do      0 (0 new)");
    let saved = machines.desk.togl(&["table", "bench", "--format", "json"]).well();
    fs::write(machines.desk.path("saved.json"), &saved.out).unwrap();
    machines.there(&["table", "bench", "--verify", "saved.json"]).well();
    machines.there(&["check"]).well();
}

#[test]
fn folds_that_cannot_be_are_named_and_nothing_is_taken() {
    let machines = Machines::new();
    let parquet = machines.saved();
    let smaller = SWEEP.replace("to: 9", "to: 8").replace("bench", "smaller").replace("to: 3", "to: 2");
    fs::write(machines.desk.path("smaller.yaml"), smaller).unwrap();
    let served = machines.serve();
    machines.there(&["submit", "smaller.yaml"]).well();
    let said = machines.there(&["import", "folds", &parquet, "--sweep", "smaller"]);
    said.fails(2, "the sweep does not have its trial");
    let said = machines.there(&["import", "folds", &parquet, "--sweep", "smaler"]);
    said.fails(1, "did you mean `smaller`?");
    let said = machines.there(&["import", "store", "nothing.sqlite"]);
    said.fails(2, "there is no file nothing.sqlite");
    assert_eq!(machines.to_do(), "to do      30 (0 new)");
    drop(served);
}
