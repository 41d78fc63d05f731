//! `togl version`: this program's version and the worker's, with libtorch's.

use std::process::Command;

use serde_json::{Value, json};

use crate::local;
use crate::output::{self, Plain};
use crate::problem::Problem;

/// Show versions
#[derive(Debug, clap::Args)]
pub struct Version {
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

impl Version {
    pub(super) fn run(self) -> Result<(), Problem> {
        let worker = worker_version();
        let versions = json!({
            "togl": env!("CARGO_PKG_VERSION"),
            "commit": option_env!("TOGL_COMMIT"),
            "build": if cfg!(debug_assertions) { "development" } else { "release" },
            "worker": worker.get("version"),
            "worker_commit": worker.get("commit"),
            "libtorch": worker.get("libtorch"),
        });
        output::one(&versions, self.format, describe)
    }
}

fn describe(versions: &Value) -> String {
    let show = |key: &str| versions[key].as_str().unwrap_or("not found");
    let commit =
        |key: &str| versions[key].as_str().map_or(String::new(), |commit| format!(", commit {commit}"));
    format!(
        "togl {} ({} build{})\ntogl-worker {}{}\nlibtorch {}\n",
        show("togl"),
        show("build"),
        commit("commit"),
        show("worker"),
        commit("worker_commit"),
        show("libtorch")
    )
}

/// What the worker program says of itself; nothing if it is not there, because a machine may have only this one.
fn worker_version() -> Value {
    let said = local::worker_program()
        .ok()
        .and_then(|program| Command::new(program).args(["version", "--format", "json"]).output().ok());
    said.and_then(|output| serde_json::from_slice(&output.stdout).ok()).unwrap_or(Value::Null)
}
