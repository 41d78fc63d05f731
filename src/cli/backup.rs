//! `togl backup` and `togl restore`: the store into a file and back. A backup can be taken while a coordinator
//! serves; a restore cannot, and gives up what is there only if told to.

use std::path::PathBuf;

use serde_json::json;
use togl_coordinator::store::StoreError;
use togl_coordinator::store::copy::{self, StoreSummary};

use crate::embedded::{FULL, RESTORE};
use crate::output::{self, Plain};
use crate::problem::Problem;
use crate::state::StateDir;

/// Where the store is.
#[derive(Debug, clap::Args)]
pub struct StoreLocation {
    /// The state directory [default: the user's own]
    #[arg(long, value_name = "DIR", env = "TOGL_STATE")]
    state: Option<PathBuf>,
    /// The store: sqlite:PATH or postgres://USER@HOST/DATABASE [default: a file in the state directory]
    #[arg(long, value_name = "ADDRESS", env = "TOGL_STORE", hide_env_values = true)]
    store: Option<String>,
}

impl StoreLocation {
    /// The directory and the store that were named.
    pub(super) fn resolve(self) -> Result<StateDir, Problem> {
        StateDir::resolve(self.state)?.with_store(self.store.as_deref())
    }
}

/// Copy the store into a file, also while it is served
#[derive(Debug, clap::Args)]
pub struct Backup {
    /// The file to make; it must not exist
    file: PathBuf,
    #[command(flatten)]
    place: StoreLocation,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

impl Backup {
    pub(super) fn run(self) -> Result<(), Problem> {
        let state = self.place.resolve()?;
        let folder = self.file.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(Problem::usage(format!("there is no folder {}", folder.display()))
                .hint("create it, or name a file in another one"));
        }
        let summary = copy::backup(state.store(), &self.file).map_err(explain)?;
        show(&summary, &state.store().to_string(), &self.file.display().to_string(), self.format)
    }
}

/// Put a backup in the place of the store
#[derive(Debug, clap::Args)]
pub struct Restore {
    /// A file that `togl backup` made
    file: PathBuf,
    /// Give up what the store holds now; a file is kept beside the new one as `.replaced` (`.replaced-2`, ...)
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    place: StoreLocation,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

impl Restore {
    pub(super) fn run(self) -> Result<(), Problem> {
        if !self.file.exists() {
            return Err(Problem::usage(format!("there is no file {}", self.file.display()))
                .hint("name a file that `togl backup FILE` made"));
        }
        let state = self.place.resolve()?;
        state.create()?;
        let summary = copy::restore(&self.file, state.store(), self.replace).map_err(explain)?;
        show(&summary, &self.file.display().to_string(), &state.store().to_string(), self.format)
    }
}

/// What a problem of a copy means for the user.
pub(super) fn explain(error: StoreError) -> Problem {
    match &error {
        StoreError::Locked { .. } | StoreError::Held { .. } => {
            Problem::usage(error).hint("only a backup can be made while a coordinator serves the store")
        }
        StoreError::CopyDiffers { .. } => Problem::ours(error),
        StoreError::Foreign { .. } => Problem::usage(error)
            .hint("stores are made by `togl serve` and `togl run`, copies by `togl backup`"),
        StoreError::Missing { .. } => Problem::usage(error)
            .hint("`togl serve` and `togl run` make one; --state and --store name another"),
        full if full.is_full() => Problem::usage(error).hint(FULL),
        damage if damage.is_damage() => Problem::usage(error).hint(RESTORE),
        _ => Problem::usage(error),
    }
}

/// Says what was copied.
pub(super) fn show(summary: &StoreSummary, from: &str, to: &str, format: Plain) -> Result<(), Problem> {
    match format {
        Plain::Human => {
            let [sweeps, folds, results] = ["sweep", "fold", "result"].map(|table| summary.rows(table));
            output::print(&format!(
                "{from} -> {to}: {sweeps} sweeps, {folds} folds, {results} results, compared\n"
            ))
        }
        Plain::Json => {
            let tables = summary
                .tables
                .iter()
                .map(|(name, rows, digest)| ((*name).to_owned(), json!({"rows": rows, "digest": digest})));
            let tables: serde_json::Map<_, _> = tables.collect();
            output::print(&output::json(&json!({"from": from, "to": to, "tables": tables}))?)
        }
    }
}
