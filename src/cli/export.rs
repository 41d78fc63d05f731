//! `togl export`: finished folds to other systems. What is said to whom is made in `src/export` and `togl-analysis`; this collects,
//! calls and tells how it went.

use std::path::PathBuf;

use clap::Subcommand;
use togl_analysis::{FoldFrame, FoldRow};
use togl_sweeps::spec::SweepSpec;

use super::table::explained;
use super::table_block::condition;
use crate::export::mlflow;
use crate::export::server::{Credentials, MlflowServer, ServerError};
use crate::export::tensorboard::{self, COMFORTABLE};
use crate::facts::{self, Depth};
use crate::output;
use crate::problem::Problem;
use crate::remote::CoordinatorTarget;

/// Give the finished folds of a sweep to other systems
#[derive(Debug, clap::Args)]
pub struct Export {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Runs of an MLflow server: a parent a trial, a child a fold; run it again to go on or to add what is new
    Mlflow {
        #[command(flatten)]
        folds: Folds,
        /// Where the server is
        #[arg(long, value_name = "URL", env = "MLFLOW_TRACKING_URI")]
        to: String,
        /// The experiment, which is made if it is not there [default: the name of the sweep]
        #[arg(long, value_name = "NAME", env = "MLFLOW_EXPERIMENT_NAME")]
        experiment: Option<String>,
    },
    /// Event files of TensorBoard, one a fold; only what is new is written again
    Tensorboard {
        #[command(flatten)]
        folds: Folds,
        /// The folder that `tensorboard --logdir` is given
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// CSV files in the form of Weights & Biases: FILE.csv with a run a line, FILE-curves.csv with an epoch a line
    WandbCsv {
        #[command(flatten)]
        folds: Folds,
        /// The file of runs, which `togl import wandb` reads back
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
}

/// Which folds.
#[derive(Debug, clap::Args)]
struct Folds {
    /// Name of the sweep
    sweep: String,
    #[command(flatten)]
    target: CoordinatorTarget,
    /// Only trials with one of these values; may be given several times
    #[arg(long, value_name = "SETTING=VALUES")]
    filter: Vec<String>,
}

/// What is exported.
struct Wanted {
    sweep: String,
    frame: FoldFrame,
    rows: Vec<FoldRow>,
}

impl Folds {
    async fn read(&self) -> Result<Wanted, Problem> {
        let filter: Vec<_> =
            self.filter.iter().map(|text| condition(text)).collect::<Result<_, Problem>>()?;
        let mut source = self.target.facts().await?;
        let collected = facts::collected(source.as_mut(), &self.sweep, Depth::Curves).await?;
        let frame = collected.frame.filtered(&filter).map_err(explained)?;
        let wanted: std::collections::HashSet<_> = frame.keys().map_err(explained)?.into_iter().collect();
        let rows: Vec<_> = collected.rows.into_iter().filter(|row| wanted.contains(&row.fold)).collect();
        if rows.is_empty() {
            return Err(Problem::negative(format!("no finished fold of {} is to be exported", self.sweep))
                .hint(format!("`togl status {}` says what has finished", self.sweep)));
        }
        say_unfinished(&collected.spec, rows.len(), filter.is_empty());
        Ok(Wanted { sweep: self.sweep.clone(), frame, rows })
    }
}

fn say_unfinished(spec: &SweepSpec, finished: usize, all: bool) {
    let planned = spec.count_folds();
    if all && planned > finished as u128 {
        output::talk(&format!("{finished} of {planned} folds have finished; export again for the others\n"));
    }
}

impl Export {
    pub(super) async fn run(self) -> Result<(), Problem> {
        match self.what {
            What::Mlflow { folds, to, experiment } => {
                let wanted = folds.read().await?;
                tokio::task::block_in_place(|| to_mlflow(&wanted, &to, experiment.as_deref()))
            }
            What::Tensorboard { folds, out } => {
                let wanted = folds.read().await?;
                tokio::task::block_in_place(|| to_tensorboard(&wanted, &out))
            }
            What::WandbCsv { folds, out } => {
                let wanted = folds.read().await?;
                let [runs, curves] =
                    togl_analysis::export::wandb(&wanted.frame, &wanted.rows, &out).map_err(explained)?;
                let count = output::count(wanted.rows.len() as u64, "fold");
                output::talk(&format!(
                    "wrote {count} to {}, curves to {}\n",
                    runs.display(),
                    curves.display()
                ));
                Ok(())
            }
        }
    }
}

fn to_mlflow(wanted: &Wanted, to: &str, experiment: Option<&str>) -> Result<(), Problem> {
    let experiment = experiment.unwrap_or(&wanted.sweep);
    if experiment.is_empty() || experiment.contains('\'') {
        return Err(Problem::usage(format!("`{experiment}` cannot be the name of an experiment"))
            .hint("give --experiment a name without quotes"));
    }
    let said = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let who = Credentials {
        token: said("MLFLOW_TRACKING_TOKEN"),
        user: said("MLFLOW_TRACKING_USERNAME"),
        password: said("MLFLOW_TRACKING_PASSWORD"),
    };
    let mut server = MlflowServer::at(to, &who).map_err(told)?;
    let sent = mlflow::export(&mut server, experiment, &wanted.sweep, &wanted.rows).map_err(told)?;
    let made = output::count(sent.made as u64, "run");
    output::talk(&format!("made {made} in the experiment {experiment}; {} there already\n", sent.kept));
    if sent.redone > 0 {
        output::talk(&format!("{} unfinished or outdated ones were made anew\n", sent.redone));
    }
    if sent.left > 0 {
        let left = output::count(sent.left as u64, "run");
        output::talk(&format!("note: {left} of this sweep that is not exported now was left as it is\n"));
    }
    Ok(())
}

fn told(error: ServerError) -> Problem {
    let hint = error.hint();
    match error {
        ServerError::Unreachable { .. } => Problem::unreachable(error),
        ServerError::NoAddress { .. }
        | ServerError::NotMlflow { .. }
        | ServerError::Unauthorised { .. }
        | ServerError::Refused { .. } => Problem::usage(error),
    }
    .hint(hint)
}

fn to_tensorboard(wanted: &Wanted, out: &std::path::Path) -> Result<(), Problem> {
    let runs = wanted.rows.len();
    if runs > COMFORTABLE {
        output::talk(&format!(
            "warning: TensorBoard is slow with more than {COMFORTABLE} runs, and these are {runs}; --filter SETTING=VALUES \
             exports some trials\n"
        ));
    }
    let written = tensorboard::write(out, &wanted.rows).map_err(|error| {
        Problem::usage(format!("cannot write the event files in {}: {error}", out.display()))
            .hint("what was written stays; run it again to go on")
    })?;
    let new = output::count(written.written as u64, "event file");
    output::talk(&format!("wrote {new} below {}; {} there already\n", out.display(), written.kept));
    Ok(())
}
