//! Measures an epoch of a trial on this machine by asking `togl-worker bench`, so that a plan can say how long a
//! sweep takes before any of its folds has run. Measures only; what it means is `togl_sweeps::estimate`'s business.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;
use togl_sweeps::TrialConfig;
use togl_sweeps::estimate::Calibration;

use crate::local;
use crate::problem::Problem;

/// Why there is no measurement.
pub enum CalibrationFailed {
    /// There is no worker program, so there will be none for any trial.
    NoWorker(Problem),
    /// This trial cannot be measured here.
    This(String),
}

/// The part of the worker's answer that counts here.
#[derive(Deserialize)]
struct Measured {
    median: f64,
    collation: f64,
    validation: f64,
    peak_memory: u64,
}

/// Seconds and memory of an epoch of this trial.
pub fn epoch(
    trial: &TrialConfig,
    split: u32,
    data_dir: Option<&Path>,
) -> Result<Calibration, CalibrationFailed> {
    let program = local::worker_program().map_err(CalibrationFailed::NoWorker)?;
    let mut command = Command::new(program);
    // The trial goes through standard input: no file of ours is left behind however this ends.
    command.args(["bench", "--trial", "/dev/stdin", "--epochs", "2", "--format", "json", "--split"]);
    command.arg(split.to_string());
    if let Some(folder) = data_dir {
        command.arg("--data-dir").arg(folder);
    }
    let answer =
        ask(command, &trial.canonical()).map_err(|error| CalibrationFailed::This(error.to_string()))?;
    if !answer.status.success() {
        let text = String::from_utf8_lossy(&answer.stderr);
        let told = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("the worker said nothing");
        return Err(CalibrationFailed::This(told.trim_start_matches("error: ").to_owned()));
    }
    let measured: Measured =
        serde_json::from_slice(&answer.stdout).map_err(|error| CalibrationFailed::This(error.to_string()))?;
    let Measured { median, collation, validation, peak_memory } = measured;
    Ok(Calibration { epoch_seconds: median + collation + validation, peak_memory })
}

fn ask(mut command: Command, input: &str) -> std::io::Result<std::process::Output> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(input.as_bytes())?;
    }
    child.wait_with_output()
}
