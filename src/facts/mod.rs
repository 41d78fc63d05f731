//! Facts about sweeps and folds, wherever they are: one trait for everything that is read, and which of its two
//! implementations a command gets. A coordinator tells what it stored; a store that nobody serves is read where it lies. Each
//! request sees one state. Computes nothing.

mod collected;
mod remote;
mod stored;

use serde::Serialize;
use togl_coordinator::store::history::{Acted, Happened};
use togl_coordinator::store::reading::{Fact, Wanted};
use togl_coordinator::store::{LogPiece, PastWorker};
use togl_sweeps::{FoldKey, SweepName, TrialConfig};
use tonic::async_trait;

use crate::problem::Problem;
use crate::remote::{CoordinatorTarget, ListedSweep, ListedWorker, SweepStatus};

pub use self::collected::{Collected, Depth, at, collected};
pub use self::remote::Remote;
pub use self::stored::{StoredFacts, under_its_name};

/// Takes facts one by one.
pub type TakeFacts<'a> = dyn FnMut(Fact) -> Result<(), Problem> + Send + 'a;

/// Something that knows facts.
#[async_trait]
pub trait Facts: Send {
    /// Whether more may happen while somebody looks: a store that nobody serves stays as it is.
    fn is_live(&self) -> bool;

    /// Hands out what is wanted, all of it from one state. What was handed out before an error must not be used.
    async fn read(&mut self, wanted: Wanted, take: &mut TakeFacts<'_>) -> Result<(), Problem>;

    /// All sweeps with how far they are, in the order of their submission; archived ones only if they are wanted.
    async fn sweeps(&mut self, archived: bool) -> Result<Vec<ListedSweep>, Problem>;

    /// One sweep with what runs and what failed.
    async fn status(&mut self, sweep: &str) -> Result<SweepStatus, Problem>;

    /// Workers that are here, or were here once.
    async fn workers(&mut self) -> Result<KnownWorkers, Problem>;

    /// What the trainers of a fold wrote, the first attempt first. The trial may be shortened, here and below.
    async fn log(&mut self, fold: &str) -> Result<Vec<LogPiece>, Problem>;

    /// Why a fold is not running, or what became of it.
    async fn explain(&mut self, fold: &str) -> Result<FoldExplanation, Problem>;

    /// What happened to a fold, and which one is meant.
    async fn history(&mut self, fold: &str) -> Result<(FoldKey, Vec<Happened>), Problem>;

    /// Who did what to a sweep, or at all, and why.
    async fn acts(&mut self, sweep: Option<&str>) -> Result<Vec<Acted>, Problem>;
}

/// Who trains, or did.
pub enum KnownWorkers {
    /// Those of a coordinator.
    Here(Vec<ListedWorker>),
    /// Those that a store remembers.
    Past(Vec<PastWorker>),
}

/// Why a fold is not running, or what became of it.
#[derive(Debug, Serialize)]
pub struct FoldExplanation {
    /// Which fold.
    pub fold: String,
    /// The nearest obstacle, or that there is none.
    pub reason: String,
    /// The sweeps that have it.
    pub sweeps: Vec<String>,
    /// Every attempt so far.
    pub attempts: Vec<AttemptLine>,
}

/// An attempt in one line.
#[derive(Debug, Serialize)]
pub struct AttemptLine {
    /// Its number, from 1.
    pub attempt: u32,
    /// The worker that it was handed to.
    pub worker: String,
    /// How it ended if it brought no result; empty otherwise.
    pub ending: String,
}

impl CoordinatorTarget {
    /// Whom to ask for what goes on: the coordinator that was named or serves the state directory. If nobody serves it, the
    /// store tells what it was left with, and the user hears that.
    pub async fn live(&self) -> Result<Box<dyn Facts>, Problem> {
        let state = self.state()?;
        let readable = self.coordinator.is_none() && state.has_store();
        if !readable || state.served().is_some() {
            match self.connect().await {
                Ok(client) => return Ok(Box::new(Remote::new(client))),
                Err(problem) if readable && problem.is_unreachable() => {}
                Err(problem) => return Err(problem),
            }
        }
        eprintln!("no coordinator serves {}; this is what its store holds", state.path().display());
        Ok(Box::new(StoredFacts::new(&state)))
    }

    /// Whom to ask for what is stored: the coordinator that was named, else the store of the state directory, which can be
    /// read while it is served; the coordinator that serves the directory if the store is elsewhere.
    pub async fn facts(&self) -> Result<Box<dyn Facts>, Problem> {
        let state = self.state()?;
        if self.coordinator.is_some() || (!state.has_store() && state.served().is_some()) {
            return Ok(Box::new(Remote::new(self.connect().await?)));
        }
        Ok(Box::new(StoredFacts::new(&state)))
    }
}

/// A sweep as typed.
pub fn sweep_name(text: &str) -> Result<SweepName, Problem> {
    text.parse().map_err(Problem::usage)
}

/// What a trial is called when folds of the same kind are compared.
pub fn title(config: &TrialConfig) -> String {
    format!("{} on {}", config.method(), config.dataset)
}
