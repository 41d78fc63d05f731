//! Verbs that steer a sweep: `cancel`, `archive`, `pause`, `resume`, `retry`, `prioritise`. Each is one call and one sentence.

use togl_proto::wire;

use crate::problem::Problem;
use crate::remote::{self, Target};

/// Which sweep to steer.
#[derive(Debug, clap::Args)]
pub struct Steer {
    /// Name of the sweep
    sweep: String,
    #[command(flatten)]
    target: Target,
}

impl Steer {
    pub(super) async fn cancel(self) -> Result<(), Problem> {
        let request = wire::CancelRequest { sweep: self.sweep.clone() };
        let reply = self.target.connect().await?.cancel(request).await.map_err(remote::refused)?.into_inner();
        self.stopped("cancelled", reply.abandoned, reply.finished, "to go on")
    }

    pub(super) async fn archive(self) -> Result<(), Problem> {
        let request = wire::ArchiveRequest { sweep: self.sweep.clone() };
        let reply =
            self.target.connect().await?.archive(request).await.map_err(remote::refused)?.into_inner();
        self.stopped("archived", reply.abandoned, reply.finished, "to bring it back")
    }

    fn stopped(&self, how: &str, abandoned: u64, finished: u64, again: &str) -> Result<(), Problem> {
        eprintln!(
            "{}: {how}; {abandoned} running folds stopped, {finished} results kept; submit the file again {again}",
            self.sweep
        );
        Ok(())
    }

    pub(super) async fn pause(self) -> Result<(), Problem> {
        let request = wire::PauseRequest { sweep: self.sweep.clone() };
        self.target.connect().await?.pause(request).await.map_err(remote::refused)?;
        eprintln!("{0}: paused; what runs goes on; `togl resume {0}` hands out the rest", self.sweep);
        Ok(())
    }

    pub(super) async fn resume(self) -> Result<(), Problem> {
        let request = wire::ResumeRequest { sweep: self.sweep.clone() };
        self.target.connect().await?.resume(request).await.map_err(remote::refused)?;
        eprintln!("{}: goes on", self.sweep);
        Ok(())
    }

    pub(super) async fn retry(self) -> Result<(), Problem> {
        let request = wire::RetryRequest { sweep: self.sweep.clone() };
        let reply = self.target.connect().await?.retry(request).await.map_err(remote::refused)?.into_inner();
        eprintln!("{}: {} failed folds will be tried again", self.sweep, reply.folds);
        Ok(())
    }
}

/// Say which sweep runs first
#[derive(Debug, clap::Args)]
pub struct Prioritise {
    /// Name of the sweep
    sweep: String,
    /// Higher runs first; sweeps begin with the priority of their file, or 0
    #[arg(allow_negative_numbers = true, value_parser = whole)]
    priority: i32,
    #[command(flatten)]
    target: Target,
}

fn whole(text: &str) -> Result<i32, String> {
    text.parse().map_err(|_| {
        format!("`{text}` is not a whole number; sweeps begin with 0, and higher runs first, such as 10")
    })
}

impl Prioritise {
    pub(super) async fn run(self) -> Result<(), Problem> {
        let mut client = self.target.connect().await?;
        let Self { sweep, priority, .. } = self;
        let request = wire::PrioritiseRequest { sweep: sweep.clone(), priority };
        client.prioritise(request).await.map_err(remote::refused)?;
        eprintln!("{sweep}: has priority {priority} now");
        Ok(())
    }
}
