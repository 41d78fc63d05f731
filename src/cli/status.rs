//! `togl status` and `togl watch`: one sweep now, or until it has ended.

use std::process::ExitCode;

use togl_proto::wire;

use super::Outcome;
use crate::output::{self, Plain};
use crate::problem::{self, Problem};
use crate::progress::Progress;
use crate::remote::{self, Client, FailedFold, SweepStatus, Target};

/// Show one sweep
#[derive(Debug, clap::Args)]
pub struct Status {
    /// Name of the sweep
    sweep: String,
    #[command(flatten)]
    target: Target,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

/// Show one sweep until it has ended
#[derive(Debug, clap::Args)]
pub struct Watch {
    /// Name of the sweep
    sweep: String,
    #[command(flatten)]
    target: Target,
}

impl Status {
    pub(super) async fn run(self) -> Outcome {
        let status = self.target.live().await?.status(&self.sweep).await?;
        match self.format {
            Plain::Human => output::print(&describe(&status))?,
            Plain::Json => output::print(&output::json(&status)?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn describe(status: &SweepStatus) -> String {
    let sweep = &status.sweep;
    let mut text = format!(
        "{} ({}): {} of {} folds finished, {} running, {} pending, {} failed\n",
        sweep.name, sweep.state, sweep.finished, sweep.folds, sweep.running, sweep.pending, sweep.failed
    );
    for fold in &status.in_training {
        let epochs = format!("epoch {}/{}", fold.epoch, fold.max_epochs);
        text += &format!("  {}: {epochs}, attempt {} on {}\n", fold.title, fold.attempt, fold.worker);
    }
    text + &failures(&status.failures, "")
}

/// The failed folds, for people; empty if there is none. `options` are those that find the same coordinator again.
pub fn failures(failed: &[FailedFold], options: &str) -> String {
    let line = |f: &FailedFold| {
        format!("  failed: {} ({}): {}\n    togl logs {}{options}\n", f.title, f.class, f.message, f.fold)
    };
    failed.iter().map(line).collect()
}

impl Watch {
    pub(super) async fn run(self) -> Outcome {
        let mut client = self.target.connect().await?;
        let mut progress = Progress::start();
        let last = watch(&mut client, &self.sweep, &mut progress).await;
        progress.finish();
        let last = last?;
        eprint!("{}", failures(&last.failures, ""));
        eprintln!("{} is {}; make its table with `togl table {}`", self.sweep, last.sweep.state, self.sweep);
        Ok(ExitCode::from(if last.sweep.failed > 0 { problem::NEGATIVE } else { problem::DONE }))
    }
}

/// Shows the sweep until it has ended; gives its last state.
pub async fn watch(
    client: &mut Client,
    sweep: &str,
    progress: &mut Progress,
) -> Result<SweepStatus, Problem> {
    let request = wire::StatusRequest { sweep: sweep.to_owned() };
    let mut states = client.watch(request).await.map_err(remote::refused)?.into_inner();
    let mut last = None;
    while let Some(state) = states.message().await.map_err(remote::refused)? {
        let status = SweepStatus::from(state);
        progress.show(&status);
        last = Some(status);
    }
    match last {
        Some(status) if status.sweep.ended() => Ok(status),
        _ => Err(Problem::unreachable("the coordinator stopped before the sweep ended")
            .hint("results are safe; watch again when it is back")),
    }
}
