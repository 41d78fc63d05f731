//! `togl-worker verify DIR`: compares this machine's numbers with reference vectors; how a new machine is
//! accepted. The comparing is done by `togl-learning`; this finds the files and prints.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use togl_learning::Device;
use togl_learning::verify::{CaseReport, reference_files, verify_file};

use crate::version::{Format, print};
use crate::{Usage, devices};

/// Compare this machine's numbers with reference vectors
#[derive(Debug, clap::Args)]
pub struct Verify {
    /// Folder with `persistence.safetensors` and `models/*.safetensors`, or one such file
    folder: PathBuf,
    /// Device to compute on
    #[arg(long, default_value = "cpu")]
    device: String,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
}

/// One reference file: compared, or why it could not be.
#[derive(Debug, Serialize)]
struct Case {
    case: String,
    passed: bool,
    #[serde(flatten)]
    report: Option<CaseReport>,
    error: Option<String>,
}

impl Verify {
    /// Compares every file; exit code 1 if any is outside tolerance.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let device = devices::parse(&self.device).map_err(Usage::new)?;
        let files = reference_files(&self.folder).map_err(|error| {
            let hint = "name a folder with persistence.safetensors or models/*.safetensors, or one such file";
            Usage::new(error).hint(hint)
        })?;
        togl_learning::use_threads(1);
        let mut cases = Vec::new();
        for file in &files {
            let case = compare(file, device);
            if self.format == Format::Human {
                print(&line(&case))?;
            }
            cases.push(case);
        }
        let failed = cases.iter().filter(|case| !case.passed).count();
        match self.format {
            Format::Human => print(&format!("{} passed, {failed} failed\n", cases.len() - failed))?,
            Format::Json => print(&(serde_json::to_string_pretty(&cases)? + "\n"))?,
        }
        Ok(ExitCode::from(u8::from(failed > 0)))
    }
}

fn compare(file: &Path, device: Device) -> Case {
    let case = file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    match verify_file(file, device) {
        Ok(report) => Case { case, passed: report.passed(), report: Some(report), error: None },
        Err(error) => Case { case, passed: false, report: None, error: Some(error.to_string()) },
    }
}

fn line(case: &Case) -> String {
    let verdict = if case.passed { "ok    " } else { "FAILED" };
    let detail = match (&case.report, &case.error) {
        (Some(report), _) if case.passed => {
            format!(
                "largest error {:.1e} in {} ({} values)",
                report.largest_error, report.worst_tensor, report.values
            )
        }
        (Some(report), _) => report.failures.join("; "),
        (None, error) => error.clone().unwrap_or_default(),
    };
    format!("{verdict} {:32} {detail}\n", case.case)
}
