//! Verbs that steer a sweep: `cancel`, `archive`, `pause`, `resume`, `retry`, `prioritise`. Each is one call and one sentence.

use togl_proto::wire;
use tonic::Request;
use tonic::metadata::MetadataValue;

use crate::problem::Problem;
use crate::remote::{self, CoordinatorTarget};

/// Why somebody steers; kept with what he does.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Because {
    /// Why, in a few words; `togl history` shows who did it and this
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Because {
    /// A reason that somebody typed; none if it is empty.
    pub fn of(words: &str) -> Self {
        Self { reason: Some(words.to_owned()) }
    }

    /// A request with the reason. Bytes, because headers hold no other letters than those of English.
    pub fn ask<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(reason) = self.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty()) {
            request
                .metadata_mut()
                .insert_bin("togl-reason-bin", MetadataValue::from_bytes(reason.as_bytes()));
        }
        request
    }
}

/// Which sweep to steer.
#[derive(Debug, clap::Args)]
pub struct Steer {
    /// Name of the sweep
    sweep: String,
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    target: CoordinatorTarget,
}

impl Steer {
    pub(super) async fn cancel(self) -> Result<(), Problem> {
        let request = self.because.ask(wire::CancelRequest { sweep: self.sweep.clone() });
        let reply = self.target.connect().await?.cancel(request).await.map_err(remote::refused)?.into_inner();
        self.stopped("cancelled", reply.abandoned, reply.finished, "to go on")
    }

    pub(super) async fn archive(self) -> Result<(), Problem> {
        let request = self.because.ask(wire::ArchiveRequest { sweep: self.sweep.clone() });
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
        let request = self.because.ask(wire::PauseRequest { sweep: self.sweep.clone() });
        self.target.connect().await?.pause(request).await.map_err(remote::refused)?;
        eprintln!("{0}: paused; what runs goes on; `togl resume {0}` hands out the rest", self.sweep);
        Ok(())
    }

    pub(super) async fn resume(self) -> Result<(), Problem> {
        let request = self.because.ask(wire::ResumeRequest { sweep: self.sweep.clone() });
        self.target.connect().await?.resume(request).await.map_err(remote::refused)?;
        eprintln!("{}: goes on", self.sweep);
        Ok(())
    }

    pub(super) async fn retry(self) -> Result<(), Problem> {
        let request = self.because.ask(wire::RetryRequest { sweep: self.sweep.clone() });
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
    because: Because,
    #[command(flatten)]
    target: CoordinatorTarget,
}

fn whole(text: &str) -> Result<i32, String> {
    text.parse().map_err(|_| {
        format!("`{text}` is not a whole number; sweeps begin with 0, and higher runs first, such as 10")
    })
}

impl Prioritise {
    pub(super) async fn run(self) -> Result<(), Problem> {
        let mut client = self.target.connect().await?;
        let Self { sweep, priority, because, .. } = self;
        let request = because.ask(wire::PrioritiseRequest { sweep: sweep.clone(), priority });
        client.prioritise(request).await.map_err(remote::refused)?;
        eprintln!("{sweep}: has priority {priority} now");
        Ok(())
    }
}
