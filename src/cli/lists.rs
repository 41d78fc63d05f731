//! The plural nouns: `togl sweeps`, `togl workers`.

use std::process::ExitCode;

use togl_proto::wire;

use super::Outcome;
use crate::output::{self, Format};
use crate::remote::{self, Sweep, Target, Worker};

/// List sweeps
#[derive(Debug, clap::Args)]
pub struct Sweeps {
    #[command(flatten)]
    target: Target,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
}

/// List workers
#[derive(Debug, clap::Args)]
pub struct Workers {
    #[command(flatten)]
    target: Target,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
}

impl Sweeps {
    pub(super) async fn run(self) -> Outcome {
        let mut client = self.target.connect().await?;
        let reply = client.list_sweeps(wire::ListSweepsRequest {}).await.map_err(remote::refused)?;
        let sweeps: Vec<Sweep> = reply.into_inner().sweeps.into_iter().map(Into::into).collect();
        if sweeps.is_empty() && self.format == Format::Human {
            eprintln!("no sweeps yet; send one with `togl submit FILE`");
            return Ok(ExitCode::SUCCESS);
        }
        output::list(&sweeps, self.format)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Workers {
    pub(super) async fn run(self) -> Outcome {
        let mut client = self.target.connect().await?;
        let reply = client.list_workers(wire::ListWorkersRequest {}).await.map_err(remote::refused)?;
        let workers: Vec<Worker> = reply.into_inner().workers.into_iter().map(Into::into).collect();
        if workers.is_empty() && self.format == Format::Human {
            eprintln!("no workers yet; add one with the line that `togl serve` printed");
            return Ok(ExitCode::SUCCESS);
        }
        output::list(&workers, self.format)?;
        Ok(ExitCode::SUCCESS)
    }
}
