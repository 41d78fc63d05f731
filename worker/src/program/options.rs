//! The options of `togl-worker join` about programs of users: whether they are run at all, by what, and what they may take.

use std::path::{Path, PathBuf};

use togl_sweeps::Capability;
use togl_sweeps::blocks::bytes;

use super::Setup;
use super::group::is_on_path;
use crate::Usage;

/// Whether and how programs are run.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Run programs that sweeps bring along (`program:`); they can read and change what this user can
    #[arg(long, env = "TOGL_PROGRAMS")]
    programs: bool,
    /// What runs programs in Python [default: what `python3` is on the path]
    #[arg(long, value_name = "FILE", env = "TOGL_PYTHON")]
    python: Option<PathBuf>,
    /// Memory that all processes of a program may take together, such as 8GiB [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    program_memory: Option<u64>,
    /// What a program may write into its folder
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "10GiB")]
    program_disk: u64,
    /// Run programs by bubblewrap: everything but their own folder read-only, no network
    #[arg(long, requires = "programs")]
    sandbox: bool,
}

impl Options {
    /// What programs get of a worker with this state directory; none if it runs none.
    pub fn setup(&self, state: &Path) -> Result<Option<Setup>, Usage> {
        if !self.programs {
            return Ok(None);
        }
        if let Some(python) = self.python.as_ref().filter(|python| !python.is_file()) {
            return Err(Usage::new(format!("there is no file {}", python.display()))
                .hint("name the interpreter, such as --python venv/bin/python"));
        }
        if self.sandbox && !is_on_path("bwrap") {
            return Err(Usage::new("--sandbox needs bubblewrap, and there is no `bwrap` on the path")
                .hint("install the package bubblewrap, or leave --sandbox out and use a user of its own"));
        }
        let python = self.python.clone().map(|python| std::path::absolute(&python).unwrap_or(python));
        Ok(Some(Setup {
            folder: state.join("programs"),
            python,
            memory: self.program_memory,
            disk: self.program_disk,
            sandbox: self.sandbox,
        }))
    }

    /// What the worker offers with these options.
    pub fn offers(&self) -> Vec<Capability> {
        if self.programs { vec![Capability::Programs] } else { Vec::new() }
    }
}

fn size(text: &str) -> Result<u64, String> {
    bytes(text).ok_or_else(|| format!("`{text}` is not a size; write 8GiB or 500MB"))
}
