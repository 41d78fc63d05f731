//! What the scheduler can be told and what it answers. Plain data: decisions are in the files named after the
//! event families. The server makes events of wire messages; the driver hands them in and the replies out.

use std::sync::Arc;

use togl_sweeps::spec::{Limits as SweepLimits, Resources};
use togl_sweeps::{Attempt, Failure, FoldKey, FoldResult, SweepName, TrialId, WorkerId};

use crate::change::Change;

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A sweep, new or edited. Answered by [`Reply::Submitted`].
    Submit(Box<Submission>),
    /// Nobody wants this sweep any more. Answered by [`Reply::Cancelled`].
    Cancel {
        /// Which.
        sweep: SweepName,
    },
    /// Nobody wants this sweep any more, nor wants to see it in lists. Answered by [`Reply::Cancelled`].
    Archive {
        /// Which.
        sweep: SweepName,
    },
    /// Give this sweep another priority than its text says. Answered by [`Reply::Done`].
    Prioritise {
        /// Which.
        sweep: SweepName,
        /// Higher runs first.
        priority: i32,
    },
    /// Give no more leases for this sweep; what runs goes on. Answered by [`Reply::Done`].
    Pause {
        /// Which.
        sweep: SweepName,
    },
    /// Undoes a pause. Answered by [`Reply::Done`].
    Resume {
        /// Which.
        sweep: SweepName,
    },
    /// Failed folds of this sweep get a clean slate. Answered by [`Reply::Retried`].
    Retry {
        /// Which.
        sweep: SweepName,
    },
    /// A worker connected, for the first time or again. Answered by [`Reply::Joined`].
    WorkerJoined {
        /// Who.
        worker: WorkerId,
        /// What it brings.
        info: WorkerInfo,
        /// What it has in hand: folds in training and folds whose result is not acknowledged yet. A lease
        /// that is not listed is taken to have been lost on the way and is given to somebody else.
        running: Vec<(FoldKey, Attempt)>,
    },
    /// A connection closed without a goodbye: grace begins. Answered by [`Reply::Done`].
    WorkerDisconnected {
        /// Who.
        worker: WorkerId,
        /// The session that closed, from [`Joined::session`]; an older one than the current is ignored.
        session: u64,
    },
    /// A worker said goodbye: its folds are given to others at once. Answered by [`Reply::Done`].
    WorkerLeft {
        /// Who.
        worker: WorkerId,
    },
    /// A worker shall finish what it runs, get nothing new, and then leave. Answered by [`Reply::Done`].
    Drain {
        /// Who.
        worker: WorkerId,
    },
    /// Undoes a drain, and ends a quarantine of the worker's host. Answered by [`Reply::Done`].
    Undrain {
        /// Who.
        worker: WorkerId,
    },
    /// The operator says which of the digests under dispute is right for a data set. Results from other data
    /// are kept as replicates and their folds trained again. Answered by [`Reply::Settled`].
    SettleData {
        /// Which data set, as in [`crate::Dispute`].
        data: String,
        /// The right one.
        digest: String,
    },
    /// A worker has free slots. Answered by [`Reply::Leases`], which may be empty, or by [`Reply::Leave`].
    LeasesAsked {
        /// Who.
        worker: WorkerId,
        /// How many.
        count: u32,
    },
    /// A heartbeat: renews the leases of everything listed. Answered by [`Reply::Orders`], one per listed
    /// fold.
    Renewed {
        /// Who.
        worker: WorkerId,
        /// What it has in hand.
        running: Vec<(FoldKey, Attempt)>,
    },
    /// A finished fold. Answered by [`Reply::Result`].
    ResultReported {
        /// Who reports.
        worker: WorkerId,
        /// Which fold.
        fold: FoldKey,
        /// Which attempt.
        attempt: Attempt,
        /// What came out.
        result: Box<FoldResult>,
    },
    /// A failed attempt. Answered by [`Reply::Failure`].
    FailureReported {
        /// Who reports.
        worker: WorkerId,
        /// Which fold.
        fold: FoldKey,
        /// Which attempt.
        attempt: Attempt,
        /// What happened.
        failure: Failure,
    },
    /// Time passed; see [`crate::Scheduler::next_deadline`]. Answered by [`Reply::Done`].
    Tick,
}

/// A sweep as submitted: the text, and what was made of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    /// Its name; a sweep of the same name is edited.
    pub name: SweepName,
    /// The text as written.
    pub yaml: String,
    /// Higher runs first.
    pub priority: i32,
    /// Guards.
    pub limits: SweepLimits,
    /// What its folds need.
    pub resources: Resources,
    /// Digests that the catalogue expects, by data set; generated ones with their seed, such as `cycles#3`.
    pub data_digests: Vec<(String, String)>,
    /// The trials with their canonical JSON.
    pub trials: Vec<(TrialId, String)>,
    /// The folds, in the order in which they are to run.
    pub folds: Vec<FoldKey>,
}

/// What a worker says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerInfo {
    /// Host name.
    pub host: String,
    /// Folds that it can train at once.
    pub slots: u32,
    /// Device of each slot, such as `cpu` or `cuda:0`.
    pub devices: Vec<String>,
    /// Memory of the device of each slot in bytes; 0 or missing if unknown.
    pub memories: Vec<u64>,
    /// Version of the worker program.
    pub code_version: String,
    /// Version of the numbers it computes; must be the coordinator's own.
    pub numerics: u32,
}

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
    /// To `Cancel`.
    Cancelled {
        /// Running folds that are to stop.
        abandoned: u64,
        /// Folds that have a result.
        finished: u64,
    },
    /// To `Retry`: how many folds were failed and are pending again.
    Retried {
        /// That number.
        folds: u64,
    },
    /// To `WorkerJoined`.
    Joined(Joined),
    /// To `LeasesAsked`.
    Leases(Vec<Lease>),
    /// To `LeasesAsked` of a worker that was drained and has nothing in hand: it may say goodbye.
    Leave,
    /// To `SettleData`: how many folds are to be trained again.
    Settled {
        /// That number.
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
        /// As asked.
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
    /// A fold of a trial that came without its settings.
    #[error("fold {fold} belongs to a trial whose settings were not sent")]
    UnknownTrial {
        /// Which fold.
        fold: FoldKey,
    },
    /// A sweep that expects other data than the results in the store were made with.
    #[error(
        "this sweep expects data set `{data}` with digest {expected}, but the results in this store were made \
         with {known}; use the same data, or another store"
    )]
    OtherData {
        /// Which data set.
        data: String,
        /// By the sweep.
        expected: String,
        /// By the store.
        known: String,
    },
    /// A data set about which nobody disagrees.
    #[error("there is no dispute about a data set `{data}`; `togl explain FOLD` names those that there are")]
    NoDispute {
        /// As asked.
        data: String,
    },
    /// A digest that no result has.
    #[error("no result of data set `{data}` has digest {digest}; choose one of those under dispute")]
    UnknownDigest {
        /// Which data set.
        data: String,
        /// As asked.
        digest: String,
    },
    /// A worker that is not connected, or was silent for too long.
    #[error("worker {worker} is not connected; it must say hello first")]
    UnknownWorker {
        /// Who.
        worker: WorkerId,
    },
    /// A worker that claims too much.
    #[error("worker {worker} claims {slots} slots; the limit is {most}")]
    TooManySlots {
        /// Who.
        worker: WorkerId,
        /// Claimed.
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
        "worker {worker} computes version {theirs} of the numbers, this coordinator {ours}; \
         update the older program"
    )]
    OtherNumerics {
        /// Who.
        worker: WorkerId,
        /// Its version.
        theirs: u32,
        /// Ours.
        ours: u32,
    },
}
