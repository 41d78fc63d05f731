//! `togl version`: this program's version and the worker's, with libtorch's.

use std::process::{Command, ExitCode};

use serde_json::{Value, json};

use super::Outcome;
use crate::local;
use crate::output::{self, Plain};

/// Show versions
#[derive(Debug, clap::Args)]
pub struct Version {
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

impl Version {
    pub(super) fn run(self) -> Outcome {
        let own = env!("CARGO_PKG_VERSION");
        let worker = worker_version();
        match self.format {
            Plain::Human => {
                let show =
                    |key: &str| worker.get(key).and_then(Value::as_str).unwrap_or("not found").to_owned();
                let text =
                    format!("togl {own}\ntogl-worker {}\nlibtorch {}\n", show("version"), show("libtorch"));
                output::print(&text)?;
            }
            Plain::Json => {
                let libtorch = worker.get("libtorch").cloned().unwrap_or(Value::Null);
                let worker = worker.get("version").cloned().unwrap_or(Value::Null);
                output::print(&output::json(&json!({"togl": own, "worker": worker, "libtorch": libtorch}))?)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What the worker program says of itself; nothing if it is not there, because a machine may have only this one.
fn worker_version() -> Value {
    let said = local::worker_program()
        .ok()
        .and_then(|program| Command::new(program).args(["version", "--format", "json"]).output().ok());
    said.and_then(|output| serde_json::from_slice(&output.stdout).ok()).unwrap_or(Value::Null)
}
