//! What the agent and its device slots say to each other: orders to a slot, events from it, and how far it is. Whoever
//! runs the slots keeps to it: the worker program with a trainer process in each, simulated worlds with nothing in them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use togl_proto::checkpoint::Held;
use togl_sweeps::result::Metrics;
use togl_sweeps::{Attempt, Failure, FoldKey, FoldResult, TrialConfig};

/// What a slot is told to do.
#[derive(Debug)]
pub enum SlotOrder {
    /// Train this fold. Only a slot that trains nothing is told so.
    Train(Box<Assignment>),
    /// Forget the fold in training, if it is this one.
    Abandon(FoldKey, Attempt),
    /// Save the fold in training and end it as preempted.
    Stop,
    /// Save the fold in training and bring its checkpoint, without waiting until one is due: another coordinator serves now.
    Bring,
}

/// One attempt to train.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// Which fold.
    pub fold: FoldKey,
    /// Which attempt.
    pub attempt: Attempt,
    /// Its trial.
    pub trial: TrialConfig,
    /// `cpu`, `cuda:N` or `mps`.
    pub device: String,
    /// The longest it may take.
    pub time_limit: Option<Duration>,
    /// The checkpoint of it that the coordinator holds.
    pub held: Option<Held>,
}

/// What a slot reports about the attempt in training. Each attempt ends with one that is not a log.
#[derive(Debug)]
pub enum SlotReport {
    /// What the trainer wrote to its standard error.
    Log(String),
    /// Finished.
    Done(Box<FoldResult>),
    /// Failed.
    Failed(Failure),
    /// Abandoned as ordered; the slot is free.
    Abandoned,
}

/// A report and what it is about.
#[derive(Debug)]
pub struct SlotEvent {
    /// Which slot.
    pub slot: usize,
    /// Which fold.
    pub fold: FoldKey,
    /// Which attempt.
    pub attempt: Attempt,
    /// What happened.
    pub report: SlotReport,
}

/// How far the fold has come.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EpochReport {
    /// Epochs done.
    pub epoch: u32,
    /// Epochs at the most.
    pub max_epochs: u32,
    /// Learning rate.
    pub lr: f64,
    /// Training loss and accuracy.
    pub train: Metrics,
    /// Validation loss and accuracy.
    pub validation: Metrics,
    /// Training throughput.
    pub graphs_per_second: f64,
}

/// How far the fold in training is. Only the latest matters: it replaces what nobody has looked at yet, so whoever is
/// slow to look never slows the training.
pub type Latest = Option<(FoldKey, Attempt, EpochReport)>;
