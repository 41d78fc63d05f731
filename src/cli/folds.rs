//! `togl folds SWEEP` lists the folds of a sweep; `togl explain FOLD` says why one is not running.

use std::process::ExitCode;

use serde::Serialize;
use togl_proto::wire;

use super::Outcome;
use crate::output::{self, Format, Plain, Row};
use crate::remote::{self, Target};

/// List the folds of a sweep
#[derive(Debug, clap::Args)]
pub struct Folds {
    /// Name of the sweep
    sweep: String,
    #[command(flatten)]
    target: Target,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
}

/// Say why a fold is not running, or what became of it
#[derive(Debug, clap::Args)]
pub struct Explain {
    /// The fold, as TRIAL/split/seed; the trial may be shortened
    fold: String,
    #[command(flatten)]
    target: Target,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

#[derive(Serialize)]
struct Fold {
    fold: String,
    state: String,
    attempts: u32,
    worker: String,
    failure: Option<String>,
}

impl From<wire::FoldSummary> for Fold {
    fn from(summary: wire::FoldSummary) -> Self {
        Self {
            fold: remote::fold_text(summary.fold.as_ref()),
            state: summary.state,
            attempts: summary.attempts,
            worker: summary.worker,
            failure: summary.failure.map(|failure| format!("{}: {}", failure.class, failure.message)),
        }
    }
}

impl Row for Fold {
    const COLUMNS: &'static [&'static str] = &["FOLD", "STATE", "ATTEMPTS", "WORKER", "FAILURE"];

    fn cells(&self) -> Vec<String> {
        let failure = self.failure.clone().unwrap_or_default();
        vec![self.fold.clone(), self.state.clone(), self.attempts.to_string(), self.worker.clone(), failure]
    }
}

impl Folds {
    pub(super) async fn run(self) -> Outcome {
        let folds = remote::folds_of(&mut self.target.connect().await?, &self.sweep).await?;
        output::list(&folds.into_iter().map(Fold::from).collect::<Vec<_>>(), self.format)?;
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Serialize)]
struct Explanation {
    fold: String,
    reason: String,
    sweeps: Vec<String>,
    attempts: Vec<Attempt>,
}

#[derive(Serialize)]
struct Attempt {
    attempt: u32,
    worker: String,
    ending: String,
}

impl Explain {
    pub(super) async fn run(self) -> Outcome {
        let mut client = self.target.connect().await?;
        let request = wire::ExplainRequest { fold: self.fold };
        let reply = client.explain(request).await.map_err(remote::refused)?.into_inner();
        let attempts = reply.attempts.into_iter().map(|a| Attempt {
            attempt: a.attempt,
            worker: a.worker,
            ending: a.ending,
        });
        let explanation = Explanation {
            fold: remote::fold_text(reply.fold.as_ref()),
            reason: reply.reason,
            sweeps: reply.sweeps,
            attempts: attempts.collect(),
        };
        match self.format {
            Plain::Human => output::print(&describe(&explanation))?,
            Plain::Json => output::print(&output::json(&explanation)?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn describe(explanation: &Explanation) -> String {
    let mut text = format!("{}: {}\n", explanation.fold, explanation.reason);
    text += &format!("  in sweeps: {}\n", explanation.sweeps.join(", "));
    for attempt in &explanation.attempts {
        let ending = if attempt.ending.is_empty() { "" } else { ", ended: " };
        text += &format!("  attempt {} on {}{ending}{}\n", attempt.attempt, attempt.worker, attempt.ending);
    }
    text
}
