//! `togl import`: runs of other systems as fold rows. Results of our own stores are taken in by `adopt`.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use togl_analysis::Error;
use togl_analysis::import::wandb::{self, Mapping};

use super::adopt;
use super::table::explained;
use crate::problem::Problem;

/// Import runs of other systems, or results that were trained under another coordinator
#[derive(Debug, clap::Args)]
pub struct Import {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Saved folds, into a sweep that is here
    Folds(adopt::Folds),
    /// Results of another store, for the sweeps that are here
    Store(adopt::FromStore),
    /// CSV exports of Weights & Biases
    Wandb {
        /// The exported files
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Where the folds are written: .parquet, .arrow, .csv or .ndjson
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// Read our column from another column of the export, as OURS=THEIRS
        #[arg(long, value_name = "OURS=THEIRS")]
        map: Vec<String>,
        /// Leave out runs with other values in a column of the export, such as min_cycle=3; those without a value stay
        #[arg(long, value_name = "THEIRS=VALUES")]
        only: Vec<String>,
    },
}

impl Import {
    pub(super) async fn run(self) -> Result<(), Problem> {
        match self.what {
            What::Folds(folds) => folds.run().await,
            What::Store(store) => store.run().await,
            What::Wandb { files, out, map, only } => {
                tokio::task::block_in_place(|| wandb_export(&files, &out, &map, &only))
            }
        }
    }
}

fn wandb_export(files: &[PathBuf], out: &Path, map: &[String], only: &[String]) -> Result<(), Problem> {
    let mut mapping = Mapping::default();
    for pair in map {
        let (ours, theirs) = pair.split_once('=').ok_or_else(|| {
            Problem::usage(format!("`{pair}` is not a mapping"))
                .hint("use --map OURS=THEIRS, such as --map depth=gnn_depth")
        })?;
        mapping = mapping.with(ours, theirs).map_err(explained)?;
    }
    for condition in only {
        let (theirs, values) = condition.split_once('=').ok_or_else(|| {
            Problem::usage(format!("`{condition}` is not a condition"))
                .hint("use --only THEIRS=VALUES, such as --only min_cycle=3")
        })?;
        mapping = mapping.only(theirs, &values.split(',').collect::<Vec<_>>());
    }
    let imported = match wandb::read(files, &mapping) {
        Err(Error::AllLeftOut { skipped }) => {
            say_left_out(&skipped);
            return Err(explained(Error::AllLeftOut { skipped }));
        }
        read => read.map_err(explained)?,
    };
    imported.frame.write(out).map_err(explained)?;
    say_left_out(&imported.skipped);
    if !imported.varying.is_empty() {
        eprintln!(
            "note: runs of one trial differ in `{}`, which nothing is read from; a table averages over them. \
                 `--only COLUMN=VALUE` imports one kind",
            imported.varying.join("`, `")
        );
    }
    eprintln!("wrote {} folds to {}", imported.frame.len(), out.display());
    Ok(())
}

fn say_left_out(skipped: &[String]) {
    for run in skipped {
        eprintln!("left out: {run}");
    }
}
