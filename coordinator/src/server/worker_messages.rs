//! What workers write, as events for the driver, and what they are answered. Converts only: sessions and their order
//! are in `workers.rs`.

use togl_proto::checkpoint::Held;
use togl_proto::wire;
use togl_proto::{convert, convert::ConvertError};
use togl_scheduler::{Event, Lease, Order, Rejection};
use togl_sweeps::{Attempt, CheckedResult, Failure, FailureClass, FoldKey, WorkerId};
use tonic::Status;

use crate::driver::CallError;

/// Folds that a worker may name as running in one message.
const MOST_RUNNING: usize = 4_096;

pub(super) fn running_folds(running: &[wire::Running]) -> Result<Vec<(FoldKey, Attempt)>, Status> {
    if running.len() > MOST_RUNNING {
        return Err(Status::invalid_argument(format!("more than {MOST_RUNNING} running folds")));
    }
    let one = |r: &wire::Running| Ok((convert::fold(r.fold.clone())?, convert::attempt(r.attempt)?));
    running.iter().map(one).collect::<Result<_, ConvertError>>().map_err(invalid)
}

pub(super) fn verdicts(orders: Vec<Order>) -> wire::Verdicts {
    let verdict = |order: Order| wire::Verdict {
        fold: Some(order.fold.into()),
        attempt: order.attempt.0,
        go_on: order.verdict.is_ok(),
    };
    wire::Verdicts { verdicts: orders.into_iter().map(verdict).collect() }
}

/// A lease, with the checkpoint that is held of its fold.
pub(super) fn lease(lease: Lease, held: Option<Held>) -> wire::Lease {
    wire::Lease {
        fold: Some(lease.fold.into()),
        attempt: lease.attempt.0,
        config: lease.trial.to_string(),
        time_limit_seconds: lease.fold_seconds.unwrap_or(0),
        slot: lease.slot,
        held: held.map(Into::into),
    }
}

/// A report on its way to the driver, with what its acknowledgement must repeat.
pub(super) struct Report {
    pub(super) fold: Option<wire::Fold>,
    pub(super) attempt: u32,
    pub(super) seconds: f64,
    /// What the scheduler is told; nothing if the report does not say which attempt it is about.
    pub(super) event: Option<Event>,
    /// Why it is not taken, whatever follows from that for the attempt.
    pub(super) refusal: Option<Refused>,
}

/// What a worker hears of a report that is not taken.
pub(super) struct Refused {
    pub(super) reason: String,
    /// Whether a newer coordinator might take it.
    pub(super) keep: bool,
}

impl From<ConvertError> for Refused {
    fn from(error: ConvertError) -> Self {
        match error.is_newer() {
            true => Self { reason: format!("upgrade the coordinator: {error}"), keep: true },
            false => Self { reason: error.to_string(), keep: false },
        }
    }
}

pub(super) fn result_event(worker: &WorkerId, report: wire::ResultReport) -> Report {
    let result = report.result.ok_or(ConvertError::Missing("result")).and_then(CheckedResult::try_from);
    let seconds = result.as_ref().map_or(0.0, |result| result.seconds);
    let unreadable = FailureClass::NeedsUpgrade;
    let event = |worker, fold, attempt, result| Event::ResultReported {
        worker,
        fold,
        attempt,
        result: Box::new(result),
    };
    Report { seconds, ..read(worker, report.fold, report.attempt, result, unreadable, event) }
}

pub(super) fn failure_event(worker: &WorkerId, report: wire::FailureReport) -> Report {
    let failure = report.failure.ok_or(ConvertError::Missing("failure")).and_then(Failure::try_from);
    let event = |worker, fold, attempt, failure: Failure| {
        match failure.class {
            // Somebody asked for it, or the machine was needed: nothing to worry about.
            FailureClass::Preempted => {
                tracing::info!(%worker, %fold, %attempt, %failure, "attempt ended early")
            }
            _ => tracing::warn!(%worker, %fold, %attempt, %failure, "attempt failed"),
        }
        Event::FailureReported { worker, fold, attempt, failure }
    };
    read(worker, report.fold, report.attempt, failure, FailureClass::ReportRefused, event)
}

/// What to tell the scheduler of a report: what it says, or, if that cannot be read, that the attempt has ended.
/// `if_newer` is the class of one that a newer coordinator could read.
fn read<T>(
    worker: &WorkerId,
    fold: Option<wire::Fold>,
    attempt: u32,
    said: Result<T, ConvertError>,
    if_newer: FailureClass,
    event: impl FnOnce(WorkerId, FoldKey, Attempt, T) -> Event,
) -> Report {
    let report = Report { fold: fold.clone(), attempt, seconds: 0.0, event: None, refusal: None };
    let about = convert::fold(fold).and_then(|fold| Ok((fold, convert::attempt(attempt)?)));
    match (about, said) {
        (Err(error), _) => Report { refusal: Some(error.into()), ..report },
        (Ok((fold, attempt)), Ok(said)) => {
            Report { event: Some(event(worker.clone(), fold, attempt, said)), ..report }
        }
        (Ok((fold, attempt)), Err(error)) => {
            let class = if error.is_newer() { if_newer } else { FailureClass::ReportRefused };
            let refusal = Refused::from(error);
            let failure = Failure::new(class, refusal.reason.clone());
            let event = Event::FailureReported { worker: worker.clone(), fold, attempt, failure };
            Report { event: Some(event), refusal: Some(refusal), ..report }
        }
    }
}

pub(super) fn acknowledge(
    fold: Option<wire::Fold>,
    attempt: u32,
    outcome: Result<(), Refused>,
) -> wire::Acknowledgement {
    match outcome {
        Ok(()) => wire::Acknowledgement { fold, attempt, accepted: true, ..Default::default() },
        Err(Refused { reason, keep }) => {
            wire::Acknowledgement { fold, attempt, accepted: false, reason, keep }
        }
    }
}

pub(super) fn rejected(rejection: Rejection) -> Status {
    super::status(CallError::Rejected(rejection))
}

pub(super) fn invalid(error: ConvertError) -> Status {
    Status::invalid_argument(error.to_string())
}
