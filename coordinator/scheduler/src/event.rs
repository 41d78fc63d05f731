//! What the scheduler can be told. Plain data: decisions are in the files named after the event families, answers in
//! `reply`. The server makes events of wire messages; the driver hands them in.

use std::collections::BTreeSet;
use std::sync::Arc;

use togl_sweeps::race::Race;
use togl_sweeps::spec::{Resources, SweepLimits};
use togl_sweeps::{Attempt, Capability, CheckedResult, Failure, FoldKey, SweepName, TrialId, WorkerId};

use crate::adopt::Adoption;

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A sweep, new or edited. Answered by [`crate::Reply::Submitted`].
    Submit(Box<Submission>),
    /// Part of a large sweep that is about to be submitted: its folds are taken in, and nobody sees them before
    /// [`Event::Submit`] says that they are all. Answered by [`crate::Reply::Gathered`].
    Gather(Box<Part>),
    /// Nobody wants this sweep any more. Answered by [`crate::Reply::Cancelled`].
    Cancel {
        /// The sweep to give up; its results stay.
        sweep: SweepName,
    },
    /// Nobody wants this sweep any more, nor wants to see it in lists. Answered by [`crate::Reply::Cancelled`].
    Archive {
        /// The sweep to put away; its results stay.
        sweep: SweepName,
    },
    /// Give this sweep another priority than its text says. Answered by [`crate::Reply::Done`].
    Prioritise {
        /// The sweep whose place in the queue changes.
        sweep: SweepName,
        /// Higher runs first.
        priority: i32,
    },
    /// Give no more leases for this sweep; what runs goes on. Answered by [`crate::Reply::Done`].
    Pause {
        /// The sweep that rests.
        sweep: SweepName,
    },
    /// Undoes a pause. Answered by [`crate::Reply::Done`].
    Resume {
        /// The sweep that goes on.
        sweep: SweepName,
    },
    /// Failed folds of this sweep get a clean slate. Answered by [`crate::Reply::Retried`].
    Retry {
        /// The sweep whose failures are forgiven.
        sweep: SweepName,
    },
    /// Results that were trained under another coordinator; all of them are taken in, or none. Answered by
    /// [`crate::Reply::Adopted`].
    Adopt(Box<Adoption>),
    /// A worker connected, for the first time or again. Answered by [`crate::Reply::Joined`].
    WorkerJoined {
        /// The name it gave itself and keeps over connections.
        worker: WorkerId,
        /// What it brings.
        info: WorkerInfo,
        /// What it has in hand: folds in training and folds whose result is not acknowledged yet. A lease
        /// that is not listed is taken to have been lost on the way and is given to somebody else.
        running: Vec<(FoldKey, Attempt)>,
    },
    /// A connection closed without a goodbye: grace begins. Answered by [`crate::Reply::Done`].
    WorkerDisconnected {
        /// The worker that may come back in a moment.
        worker: WorkerId,
        /// The session that closed, from [`Joined::session`]; an older one than the current is ignored.
        session: u64,
    },
    /// A worker said goodbye: its folds are given to others at once. Answered by [`crate::Reply::Done`].
    WorkerLeft {
        /// The worker that does not come back.
        worker: WorkerId,
        /// The session that it said goodbye to, as for a closed connection.
        session: u64,
    },
    /// A worker shall finish what it runs, get nothing new, and then leave. Answered by [`crate::Reply::Done`].
    Drain {
        /// The worker that shall leave.
        worker: WorkerId,
    },
    /// Undoes a drain, and gives the worker and its host another chance. Answered by [`crate::Reply::Done`].
    Undrain {
        /// The worker that shall stay.
        worker: WorkerId,
    },
    /// The operator says which of the digests under dispute is right for a data set. Results from other data
    /// are kept as replicates and their folds trained again. Answered by [`crate::Reply::Settled`].
    SettleData {
        /// Which data set, as in [`crate::Dispute`].
        data: String,
        /// The right one.
        digest: String,
    },
    /// A worker has free slots. Answered by [`crate::Reply::Leases`], which may be empty, or by [`crate::Reply::Leave`].
    LeasesAsked {
        /// The worker that asks.
        worker: WorkerId,
        /// Its free slots; it gets at most as many leases.
        count: u32,
    },
    /// A heartbeat: renews the leases of everything listed. Answered by [`crate::Reply::Orders`], one per listed
    /// fold.
    Renewed {
        /// The worker whose heart beats.
        worker: WorkerId,
        /// What it has in hand.
        running: Vec<(FoldKey, Attempt)>,
    },
    /// A finished fold. Answered by [`crate::Reply::Result`].
    ResultReported {
        /// Who reports.
        worker: WorkerId,
        /// Which fold.
        fold: FoldKey,
        /// Which attempt.
        attempt: Attempt,
        /// What came out.
        result: Box<CheckedResult>,
    },
    /// A failed attempt. Answered by [`crate::Reply::Failure`].
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
    /// Time passed; see [`crate::Scheduler::next_deadline`]. Answered by [`crate::Reply::Done`].
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
    /// How many folds it may have, and how often and how long one may be tried.
    pub limits: SweepLimits,
    /// Which of its trials race with each other, if any do.
    pub race: Option<Arc<Race>>,
    /// What its folds need.
    pub resources: Resources,
    /// Digests that the catalogue expects, by data set; generated ones with their seed, such as `cycles#3`.
    pub data_digests: Vec<(String, String)>,
    /// The trials with their canonical JSON.
    pub trials: Vec<(TrialId, String)>,
    /// The folds, in the order in which they are to run, after those that were gathered.
    pub folds: Vec<FoldKey>,
    /// Folds that came in parts before; 0 for most sweeps.
    pub gathered: u64,
}

/// Part of a large submission.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Of which sweep.
    pub sweep: SweepName,
    /// Folds of the parts before, from [`crate::Reply::Gathered`]; 0 begins anew.
    pub from: u64,
    /// Folds of the whole submission.
    pub all: u64,
    /// Trials of these folds, with their canonical JSON.
    pub trials: Vec<(TrialId, String)>,
    /// The next folds.
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
    /// Where it runs as who started it calls it, such as `slurm:123_4`; empty if nobody did.
    pub allocation: String,
    /// How long it will live, as far as it knows.
    pub seconds_left: Option<u64>,
    /// Whether another worker can go on from the checkpoints that it saves.
    pub moves_checkpoints: bool,
    /// What it was told to offer beyond what every worker does.
    pub offers: BTreeSet<Capability>,
}
