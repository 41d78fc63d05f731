//! A folder with an export of runs, and `togl` run in it.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like the tests themselves")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// The columns of an export of runs.
const HEADER: &str =
    "State,Runtime,dataset,deepset,depth,fold,model,training_seed,use_node_attributes,test_acc,val_acc";

/// A folder with an export of runs and the folds imported from it.
pub struct Desk {
    folder: TempDir,
}

/// What a command said.
pub struct Said {
    /// How it ended.
    pub code: i32,
    /// What it printed as data.
    pub out: String,
    /// What it said to people.
    pub err: String,
}

impl Said {
    /// The same, if it ended well.
    pub fn well(self) -> Self {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self
    }

    /// Whether it ended so, with these words among what it said.
    pub fn fails(&self, code: i32, words: &str) {
        assert!(self.code == code && self.err.contains(words), "{}", self.err);
    }
}

impl Desk {
    /// A desk with 18 finished runs and a crashed one.
    pub fn new() -> Self {
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

    /// A file on it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `togl` there, without the settings of whoever runs the tests.
    pub fn togl(&self, arguments: &[&str]) -> Said {
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

    /// Imports the runs, which must work.
    pub fn import(&self, name: &str) {
        let said = self.togl(&["import", "wandb", "runs.csv", "--out", name]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(
            said.err,
            format!("left out: runs.csv:20: its state is crashed\nwrote 18 folds to {name}\n")
        );
    }

    /// What lies there, by name.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}
