//! `togl cancel` and `togl archive`: stop a sweep. What is finished stays.

use std::process::ExitCode;

use togl_proto::wire;

use super::Outcome;
use crate::remote::{self, Target};

/// Stop a sweep; its results are kept
#[derive(Debug, clap::Args)]
pub struct Cancel {
    /// Name of the sweep
    sweep: String,
    #[command(flatten)]
    target: Target,
}

impl Cancel {
    pub(super) async fn run(self) -> Outcome {
        let mut client = self.target.connect().await?;
        let request = wire::CancelRequest { sweep: self.sweep.clone() };
        let reply = client.cancel(request).await.map_err(remote::refused)?.into_inner();
        eprintln!(
            "{}: cancelled; {} running folds stopped, {} results kept; submit the file again to go on",
            self.sweep, reply.abandoned, reply.finished
        );
        Ok(ExitCode::SUCCESS)
    }
}

/// Stop a sweep and take it out of the lists; its results are kept
#[derive(Debug, clap::Args)]
pub struct Archive {
    /// Name of the sweep
    sweep: String,
    #[command(flatten)]
    target: Target,
}

impl Archive {
    pub(super) async fn run(self) -> Outcome {
        let mut client = self.target.connect().await?;
        let request = wire::ArchiveRequest { sweep: self.sweep.clone() };
        let reply = client.archive(request).await.map_err(remote::refused)?.into_inner();
        eprintln!(
            "{}: archived; {} running folds stopped, {} results kept; submit the file again to bring it back",
            self.sweep, reply.abandoned, reply.finished
        );
        Ok(ExitCode::SUCCESS)
    }
}
