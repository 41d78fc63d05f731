//! Real processes of the worker as tests start them: `togl-worker train` and the trainer child, and what they say.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like the tests themselves")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};
use togl_sweeps::TrialConfig;

/// A folder with a trial in a file, and what its folds leave there.
pub struct Place {
    folder: tempfile::TempDir,
    /// What is trained.
    pub trial: TrialConfig,
}

impl Place {
    /// A place for the folds of one trial.
    pub fn of(trial: TrialConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("trial.json"), trial.canonical()).unwrap();
        Self { folder, trial }
    }

    /// A file of this place.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `togl-worker train` of the trial with a checkpoint after every epoch.
    pub fn train(&self) -> Command {
        self.train_saving_every("0")
    }

    /// The same with a checkpoint after so many seconds.
    pub fn train_saving_every(&self, seconds: &str) -> Command {
        let mut command = worker();
        command.args(["train", "--split", "3", "--seed", "4", "--format", "json"]);
        command.arg("--trial").arg(self.path("trial.json"));
        command.arg("--checkpoint-dir").arg(self.path("checkpoints")).args(["--checkpoint-seconds", seconds]);
        command
    }

    /// The checkpoints that lie there now.
    pub fn checkpoints(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("checkpoints")).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|e| e == "safetensors"))
            .collect()
    }
}

/// The program under test, without what the person who runs the tests has set.
pub fn worker() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_togl-worker"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TOGL_")) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Without what may differ from run to run: time, memory, place.
pub fn numbers(result: &Value) -> Value {
    let mut result = result.clone();
    let fields = result.as_object_mut().unwrap();
    for varying in ["seconds", "finished_at", "peak_memory", "provenance"] {
        assert!(fields.remove(varying).is_some(), "{varying} is missing");
    }
    result
}

/// What a command printed that must have succeeded.
pub fn result_of(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A trainer child as a slot sees it.
pub struct Trainer {
    /// The process.
    pub child: Child,
    /// Where it reads; without it, it leaves.
    pub commands: ChildStdin,
    events: std::io::Lines<BufReader<ChildStdout>>,
}

impl Trainer {
    /// Starts the trainer of this worker.
    pub fn start(worker: Command) -> Self {
        Self::start_with(worker, &[])
    }

    /// The same with these options.
    pub fn start_with(mut worker: Command, options: &[&str]) -> Self {
        let mut child =
            worker.arg("trainer").args(options).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let commands = child.stdin.take().unwrap();
        let events = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, commands, events }
    }

    /// Sends it a command.
    pub fn tell(&mut self, command: &Value) {
        writeln!(self.commands, "{command}").unwrap();
    }

    /// Lets it train the fold of a place on the processor.
    pub fn train(&mut self, attempt: u32, place: &Place) {
        self.train_on("cpu", attempt, place);
    }

    /// Lets it train the fold of a place.
    pub fn train_on(&mut self, device: &str, attempt: u32, place: &Place) {
        let trial = &place.trial;
        let checkpoints = json!({"folder": place.path("checkpoints"), "most_bytes": 1_000_000_000});
        self.tell(&json!({"train": {
            "fold": format!("{}/3/4", trial.id()), "attempt": attempt, "config": trial.canonical(), "device": device,
            "data": {"offline": true}, "keeping": {"checkpoints": checkpoints, "models": place.path("models")},
        }}));
        assert_eq!(self.event().0, "started");
    }

    /// The next event but `saved`, which comes whenever a checkpoint was written, as its kind and what it holds.
    pub fn event(&mut self) -> (String, Value) {
        let line = self.events.next().expect("the trainer ended").unwrap();
        let event: Value = serde_json::from_str(&line).unwrap();
        match event.as_str() {
            Some("saved") => return self.event(),
            Some(kind) => return (kind.to_owned(), Value::Null),
            None => {}
        }
        let (kind, what) = event.as_object().unwrap().iter().next().unwrap();
        (kind.clone(), what.clone())
    }

    /// The event that ends the fold, and how many epochs were trained before it.
    pub fn outcome(&mut self) -> (String, Value, usize) {
        let mut epochs = 0;
        loop {
            match self.event() {
                (kind, _) if kind == "epoch" => epochs += 1,
                (kind, what) => return (kind, what, epochs),
            }
        }
    }
}
