//! `togl report`: one HTML file about a sweep. The page is made by `togl-analysis`; this collects what goes into it.

use std::path::PathBuf;
use std::process::ExitCode;

use togl_analysis::report::{self, FailedFold, ReportInput};

use super::Outcome;
use super::folds;
use super::table::explained;
use crate::clock;
use crate::problem::Problem;
use crate::remote::{self, Target};
use crate::rows;

/// Write one HTML file about a sweep
#[derive(Debug, clap::Args)]
pub struct Report {
    /// Name of the sweep
    sweep: String,
    #[command(flatten)]
    target: Target,
    /// The file [default: SWEEP.html]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Report {
    pub(super) async fn run(self) -> Outcome {
        let collected = rows::collected(&self.target, &self.sweep).await?;
        let failures = self.failures().await?;
        // A coordinator does not send second results; its store has them.
        let replicates = match self.target.coordinator {
            Some(_) => Vec::new(),
            None => rows::replicates(&self.target.state()?, &collected)?,
        };
        let commands = vec![
            format!("togl run {}.yaml", self.sweep),
            format!("togl table {}", self.sweep),
            format!("togl report {}", self.sweep),
        ];
        let input = ReportInput {
            sweep: &collected.spec,
            sweep_text: &collected.yaml,
            rows: &collected.rows,
            failures: &failures,
            replicates: &replicates,
            commands: &commands,
            made_at: &clock::now_in_words(),
        };
        let out = self.out.unwrap_or_else(|| PathBuf::from(format!("{}.html", self.sweep)));
        let path = report::write(&out, &input).map_err(explained)?;
        eprintln!("wrote {}", path.display());
        Ok(ExitCode::SUCCESS)
    }

    /// What was given up, as a coordinator tells it; without one, only results are known.
    async fn failures(&self) -> Result<Vec<FailedFold>, Problem> {
        if self.target.coordinator.is_none() && self.target.state()?.served().is_none() {
            return Ok(Vec::new());
        }
        let folds = folds::of_sweep(&mut self.target.connect().await?, &self.sweep).await?;
        let failed = folds.into_iter().filter_map(|summary| {
            let failure = summary.failure?;
            Some(FailedFold {
                fold: remote::fold_text(summary.fold.as_ref()),
                attempt: summary.attempts,
                worker: summary.worker,
                class: failure.class,
                message: failure.message,
            })
        });
        Ok(failed.collect())
    }
}
