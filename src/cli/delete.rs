//! `togl delete SWEEP`: takes a sweep and what only it has out of a store that nobody serves. Asks first.

use std::path::PathBuf;

use togl_coordinator::store::StoreError;
use togl_coordinator::store::delete::Deletion;

use crate::facts::sweep_name;
use crate::output;
use crate::problem::Problem;
use crate::state::StateDir;

/// Delete a sweep with the results that no other sweep has
#[derive(Debug, clap::Args)]
pub struct Delete {
    /// Name of the sweep
    sweep: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// The state directory [default: the user's own]
    #[arg(long, value_name = "DIR", env = "TOGL_STATE")]
    state: Option<PathBuf>,
}

impl Delete {
    pub(super) fn run(self) -> Result<(), Problem> {
        let (state, name) = (StateDir::resolve(self.state.clone())?, sweep_name(&self.sweep)?);
        let deletion = Deletion::prepare(state.store(), &name).map_err(explained)?;
        let Deletion { folds, results, shared, .. } = deletion;
        let stay = match shared {
            0 => String::new(),
            shared => format!("; {shared} folds stay, because other sweeps have them"),
        };
        eprintln!("{name}: {folds} folds with {results} results would be deleted for ever{stay}");
        let agreed = if self.yes { Some(true) } else { output::agreed("Delete them?")? };
        match agreed {
            Some(true) => {}
            Some(false) => return Err(Problem::negative("nothing was deleted")),
            None => {
                return Err(Problem::usage("nobody is there to be asked")
                    .hint("say --yes to delete without being asked"));
            }
        }
        let freed = deletion.carry_out().map_err(explained)?;
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        eprintln!(
            "deleted {name}; the store had {:.1} MB and has {:.1} MB",
            megabytes(freed.before),
            megabytes(freed.after)
        );
        Ok(())
    }
}

fn explained(error: StoreError) -> Problem {
    match error {
        StoreError::UnknownSweep { .. } => Problem::negative(error),
        StoreError::Locked { .. } | StoreError::Held { .. } => Problem::usage(error)
            .hint("sweeps are deleted while no coordinator serves them; `togl archive` takes one out of the lists at once"),
        other => Problem::usage(other),
    }
}
