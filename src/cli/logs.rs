//! `togl logs FOLD`: what the trainers of a fold wrote, attempt by attempt.

use std::process::ExitCode;

use serde::Serialize;
use togl_proto::wire;

use super::Outcome;
use crate::output::{self, Plain};
use crate::problem::Problem;
use crate::remote::{self, Target};
use crate::rows;

/// Show what the trainers of a fold wrote
#[derive(Debug, clap::Args)]
pub struct Logs {
    /// The fold, as TRIAL/split/seed; the trial may be shortened
    fold: String,
    #[command(flatten)]
    target: Target,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

#[derive(Serialize)]
struct Entry {
    attempt: u32,
    text: String,
}

impl Logs {
    /// From the coordinator; from the store if none serves the state directory.
    async fn read(&self) -> Result<Vec<Entry>, Problem> {
        let state = self.target.state()?;
        if self.target.coordinator.is_none() && state.served().is_none() {
            let entries = rows::stored_log(&state, &self.fold)?;
            return Ok(entries.into_iter().map(|(attempt, text)| Entry { attempt, text }).collect());
        }
        let mut client = self.target.connect().await?;
        let request = wire::LogRequest { fold: self.fold.clone() };
        let reply = client.log(request).await.map_err(remote::refused)?.into_inner();
        Ok(reply.entries.into_iter().map(|e| Entry { attempt: e.attempt, text: e.text }).collect())
    }

    pub(super) async fn run(self) -> Outcome {
        let entries = self.read().await?;
        if entries.is_empty() {
            return Err(Problem::negative(format!("the trainers of {} wrote nothing", self.fold)));
        }
        match self.format {
            Plain::Human => {
                let text = |e: &Entry| format!("--- attempt {}\n{}\n", e.attempt, e.text.trim_end());
                output::print(&entries.iter().map(text).collect::<String>())?;
            }
            Plain::Json => output::print(&output::json(&entries)?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
