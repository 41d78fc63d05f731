//! The plural nouns `togl sweeps` and `togl workers`, with what is done to several workers at once.

use serde::Serialize;
use togl_coordinator::store::PastWorker;
use togl_proto::wire;

use super::history::rfc3339;
use super::steer::Because;
use crate::facts;
use crate::output::{self, ListRow, Listing};
use crate::problem::Problem;
use crate::remote::{self, CoordinatorTarget};

/// List sweeps
#[derive(Debug, clap::Args)]
pub struct Sweeps {
    /// Also those that were archived
    #[arg(long)]
    archived: bool,
    #[command(flatten)]
    target: CoordinatorTarget,
    #[command(flatten)]
    listing: Listing,
}

/// List workers, or let them finish and leave
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Workers {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    target: CoordinatorTarget,
    #[command(flatten)]
    listing: Listing,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Let workers finish what they train, give them nothing new, and let them leave
    Drain(Drain),
    /// Give them work again; also ends the quarantine of a host
    Undrain(Drain),
}

#[derive(Debug, clap::Args)]
struct Drain {
    /// Name of the worker, as `togl workers` shows it
    #[arg(required_unless_present = "all")]
    worker: Option<String>,
    /// All workers that are connected
    #[arg(long, conflicts_with = "worker")]
    all: bool,
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    target: CoordinatorTarget,
}

/// A worker that had folds once.
#[derive(Serialize)]
struct Past {
    worker: String,
    host: String,
    attempts: u64,
    finished: u64,
    /// UTC, as in RFC 3339; empty if it is not known.
    last_lease: String,
}

impl From<PastWorker> for Past {
    fn from(past: PastWorker) -> Self {
        let PastWorker { worker, host, attempts, finished, last_at } = past;
        Self { worker: worker.to_string(), host, attempts, finished, last_lease: rfc3339(last_at) }
    }
}

impl ListRow for Past {
    const COLUMNS: &'static [&'static str] = &["WORKER", "HOST", "ATTEMPTS", "FINISHED", "LAST LEASE (UTC)"];

    fn cells(&self) -> Vec<String> {
        let Self { worker, host, attempts, finished, last_lease } = self;
        vec![worker.clone(), host.clone(), attempts.to_string(), finished.to_string(), last_lease.clone()]
    }
}

impl Drain {
    async fn run(self, undo: bool) -> Result<(), Problem> {
        let mut client = self.target.connect().await?;
        let request = wire::DrainRequest { worker: self.worker.unwrap_or_default(), undo };
        let request = self.because.ask(request);
        let told = client.drain(request).await.map_err(remote::refused)?.into_inner().workers;
        if told.is_empty() {
            return Err(Problem::negative("no worker is connected"));
        }
        for worker in told {
            match undo {
                false => eprintln!("{worker}: finishes what it trains, then leaves"),
                true => eprintln!("{worker}: gets work again"),
            }
        }
        Ok(())
    }
}

impl Sweeps {
    pub(super) async fn run(self) -> Result<(), Problem> {
        let sweeps = self.target.live().await?.sweeps(self.archived).await?;
        output::list_unless_empty(&sweeps, &self.listing, "no sweeps yet; send one with `togl submit FILE`")
    }
}

impl Workers {
    pub(super) async fn run(self) -> Result<(), Problem> {
        match self.action {
            Some(Action::Drain(drain)) => return drain.run(false).await,
            Some(Action::Undrain(drain)) => return drain.run(true).await,
            None => {}
        }
        let workers = match self.target.live().await?.workers().await? {
            facts::KnownWorkers::Here(workers) => workers,
            facts::KnownWorkers::Past(workers) => {
                return output::list(&workers.into_iter().map(Past::from).collect::<Vec<_>>(), &self.listing);
            }
        };
        let none = "no workers yet; add one with the line that `togl serve` printed";
        output::list_unless_empty(&workers, &self.listing, none)?;
        for worker in workers.iter().filter(|worker| worker.state == "quarantined") {
            eprintln!("{}: {}; `togl workers undrain` ends the quarantine", worker.worker, worker.note);
        }
        Ok(())
    }
}
