//! What the scheduler answers, and why it refuses. Plain data: decisions are in the files named after the event families.
//! The driver hands replies out once what they tell of is stored.

use std::sync::Arc;

use togl_sweeps::{Attempt, FoldKey, SweepName, WorkerId};

use crate::adopt::{AdoptionCounts, AllUnadoptable};
use crate::change::Change;

/// What an event led to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What must be stored before anybody hears the reply.
    pub changes: Vec<Change>,
    /// The answer to whoever sent the event.
    pub reply: Reply,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// To `Submit`.
    Submitted(Submitted),
    /// To `Gather`.
    Gathered {
        /// Folds of the sweep that are here now.
        folds: u64,
    },
    /// To `Cancel`.
    Cancelled {
        /// Running folds that are to stop.
        abandoned: u64,
        /// Folds that have a result.
        finished: u64,
    },
    /// To `Retry`.
    Retried {
        /// Folds that were failed and are pending again.
        folds: u64,
    },
    /// To `Adopt`.
    Adopted(AdoptionCounts),
    /// To `WorkerJoined`.
    Joined(Joined),
    /// To `LeasesAsked`.
    Leases(Vec<Lease>),
    /// To `LeasesAsked` of a worker that was drained and has nothing in hand: it may say goodbye.
    Leave,
    /// To `SettleData`.
    Settled {
        /// Folds that are to be trained again.
        reopened: u64,
    },
    /// To `Renewed`.
    Orders(Vec<Order>),
    /// To `ResultReported`.
    Result(ResultAnswer),
    /// To `FailureReported`.
    Failure(FailureAnswer),
    /// It is done; there is nothing to tell.
    Done,
}

/// What a submission found and changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Submitted {
    /// Distinct trials of the sweep.
    pub trials: u64,
    /// Folds of the sweep.
    pub folds: u64,
    /// Folds that have a result already.
    pub already_done: u64,
    /// Folds that failed before and stay so until they are retried.
    pub failed: u64,
    /// Folds that the sweep did not have before.
    pub added: u64,
    /// Folds that the sweep no longer has.
    pub removed: u64,
}

/// Welcome of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// To be given back with [`Event::WorkerDisconnected`].
    pub session: u64,
    /// How long a lease lasts without renewal, in milliseconds; three heartbeats fit well into it.
    pub lease_term: u64,
    /// One for each fold that the worker listed, in that order.
    pub orders: Vec<Order>,
}

/// A worker's time-limited right to a fold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// What to train.
    pub fold: FoldKey,
    /// Which attempt it is.
    pub attempt: Attempt,
    /// Canonical JSON of the trial.
    pub trial: Arc<str>,
    /// How long the lease lasts without renewal, in milliseconds.
    pub term: u64,
    /// Seconds that the attempt may train; none if unlimited.
    pub fold_seconds: Option<u64>,
    /// The number of the slot whose device was found to fit, from 0. If it is busy, any other free one will do.
    pub slot: u32,
}

/// Whether to go on with a fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Which fold.
    pub fold: FoldKey,
    /// Which attempt.
    pub attempt: Attempt,
    /// Go on, or why not. A result that is made all the same is welcome.
    pub verdict: Result<(), Abandon>,
}

/// Why a worker shall stop training a fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Abandon {
    /// A later attempt took its place.
    #[error("superseded by a later attempt, or ended before")]
    Superseded,
    /// The fold has a result.
    #[error("the fold has a result already")]
    Finished,
    /// The fold counts as failed.
    #[error("the fold counts as failed")]
    Failed,
    /// No sweep wants it.
    #[error("no sweep wants it any more")]
    NotWanted,
    /// The worker claims more folds than it has slots.
    #[error("more folds than slots")]
    NoSlot,
    /// This store never gave the attempt to this worker.
    #[error("this coordinator never gave it to this worker")]
    NeverIssued,
}

/// What became of a reported result. All but `Refused` are acknowledgements: the worker may forget it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultAnswer {
    /// It is the fold's result.
    Accepted,
    /// It was known already: an acknowledgement got lost.
    Same,
    /// The fold has the result of another attempt; this one is kept beside it.
    Replicate {
        /// Whether both say the same numbers.
        agrees: bool,
    },
    /// The same attempt reported other numbers before; the first ones stay, this is kept as a conflict.
    Conflict,
    /// Refused for good.
    Refused(Refusal),
}

/// Why a report is refused for good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The store does not know the attempt, or gave it to another worker.
    #[error("this coordinator never gave attempt {attempt} of fold {fold} to worker {worker}")]
    NeverIssued {
        /// Which fold.
        fold: FoldKey,
        /// Which attempt.
        attempt: Attempt,
        /// Who says so.
        worker: WorkerId,
    },
    /// The result can never be a row of a table.
    #[error("{reason}")]
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
}

/// What becomes of a fold whose attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureAnswer {
    /// It will be tried again.
    Retried,
    /// It counts as failed from now on.
    Failed,
    /// The attempt is not the current one; nothing changed.
    Superseded,
    /// Refused for good.
    Refused(Refusal),
}

/// An event that cannot be; it changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// No sweep of this name.
    #[error("there is no sweep `{name}`; {hint}")]
    UnknownSweep {
        /// The name that nobody has.
        name: SweepName,
        /// The nearest name, or what to do.
        hint: String,
    },
    /// The sweep was cancelled or archived, so this makes no sense.
    #[error("sweep `{name}` is cancelled or archived; submit it again to revive it")]
    CancelledSweep {
        /// Its name.
        name: SweepName,
    },
    /// A sweep without folds.
    #[error("sweep `{name}` has no folds")]
    EmptySweep {
        /// Its name.
        name: SweepName,
    },
    /// A sweep, or the store with it, would be too large.
    #[error("{folds} folds are more than the limit of {most}; shorten an axis or raise `limits.max_folds`")]
    TooManyFolds {
        /// That many.
        folds: u64,
        /// The limit.
        most: u64,
    },
    /// A part that does not follow the one before, or a submission that lacks parts.
    #[error(
        "parts of sweep `{name}` are missing, because another one was submitted meanwhile; submit it again"
    )]
    PartsMissing {
        /// Its name.
        name: SweepName,
    },
    /// A fold of a trial that came without its settings.
    #[error("fold {fold} belongs to a trial whose settings were not sent")]
    UnknownTrial {
        /// Which fold.
        fold: FoldKey,
    },
    /// Results from elsewhere that this store could not have led to.
    #[error("nothing was taken into sweep `{name}`:{refused}")]
    Unadoptable {
        /// The sweep that was to have them.
        name: SweepName,
        /// Which, and why.
        refused: AllUnadoptable,
    },
    /// A sweep that expects other data than the results in the store were made with.
    #[error(
        "this sweep expects data set `{data}` with digest {expected}, but the results in this store were made \
         with {known}; use the same data, or another store"
    )]
    OtherData {
        /// Which data set.
        data: String,
        /// The digest that the sweep wants.
        expected: String,
        /// The digest that the store has results of.
        known: String,
    },
    /// A data set about which nobody disagrees.
    #[error("there is no dispute about a data set `{data}`; `togl explain FOLD` names those that there are")]
    NoDispute {
        /// The data set, as it was asked for.
        data: String,
    },
    /// A digest that no result has.
    #[error("no result of data set `{data}` has digest {digest}; choose one of those under dispute")]
    UnknownDigest {
        /// Which data set.
        data: String,
        /// The digest, as it was asked for.
        digest: String,
    },
    /// A worker that is not connected, or was silent for too long.
    #[error("worker {worker} is not connected; it must say hello first")]
    UnknownWorker {
        /// The worker that spoke too early or too late.
        worker: WorkerId,
    },
    /// A worker that claims too much.
    #[error("worker {worker} claims {slots} slots; the limit is {most}")]
    TooManySlots {
        /// The worker that claims them.
        worker: WorkerId,
        /// How many it claims.
        slots: u32,
        /// The limit.
        most: u32,
    },
    /// No room for another worker.
    #[error("{most} workers are connected, which is the limit")]
    TooManyWorkers {
        /// The limit.
        most: usize,
    },
    /// A worker whose numbers cannot be compared with ours.
    #[error(
        "worker {worker} computes version {theirs} of the numbers, this coordinator {ours}; upgrade the {}",
        older(*theirs, *ours)
    )]
    OtherNumerics {
        /// The worker that is turned away.
        worker: WorkerId,
        /// Its version.
        theirs: u32,
        /// Ours.
        ours: u32,
    },
}

/// Which side has to be upgraded, and how.
fn older(worker: u32, coordinator: u32) -> &'static str {
    match worker < coordinator {
        true => "worker: install the version that `togl version` names where the coordinator runs",
        false => "coordinator: stop it, install the worker's version, start it again; nothing is lost",
    }
}
