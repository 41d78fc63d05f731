//! `togl logs FOLD`: what the trainers of a fold wrote, attempt by attempt.

use std::process::ExitCode;

use serde::Serialize;
use togl_proto::wire;

use super::Outcome;
use crate::output::{self, Format};
use crate::problem::Problem;
use crate::remote::{self, Target};

/// Show what the trainers of a fold wrote
#[derive(Debug, clap::Args)]
pub struct Logs {
    /// The fold, as TRIAL/split/seed; the trial may be shortened
    fold: String,
    #[command(flatten)]
    target: Target,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
}

#[derive(Serialize)]
struct Entry {
    attempt: u32,
    text: String,
}

impl Logs {
    pub(super) async fn run(self) -> Outcome {
        let mut client = self.target.connect().await?;
        let request = wire::LogRequest { fold: self.fold.clone() };
        let reply = client.log(request).await.map_err(remote::refused)?.into_inner();
        let entries: Vec<Entry> =
            reply.entries.into_iter().map(|e| Entry { attempt: e.attempt, text: e.text }).collect();
        if entries.is_empty() {
            return Err(Problem::negative(format!("the trainers of {} wrote nothing", self.fold)));
        }
        match self.format {
            Format::Human => {
                let text = |e: &Entry| format!("--- attempt {}\n{}\n", e.attempt, e.text.trim_end());
                output::print(&entries.iter().map(text).collect::<String>())?;
            }
            _ => output::print(&output::json(&entries)?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
