//! `togl worker ...`: runs `togl-worker ...`, found beside this program or on PATH.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::local;
use crate::problem::Problem;

/// Run `togl-worker`
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Worker {
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Worker {
    pub(super) fn run(self) -> Result<(), Problem> {
        let program = local::worker_program()?;
        // Becomes that program, so signals and exit codes are its own.
        let error = Command::new(&program).args(self.arguments).exec();
        Err(Problem::ours(format!("cannot run {}: {error}", program.display())))
    }
}
