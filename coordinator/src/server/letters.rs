//! What workers write, as events for the driver, and what they are answered. Converts only: sessions and their order
//! are in `workers.rs`.

use togl_proto::wire;
use togl_proto::{convert, convert::ConvertError};
use togl_scheduler::{Event, Lease, Order, Rejection};
use togl_sweeps::{Attempt, Failure, FoldKey, FoldResult, WorkerId};
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

pub(super) fn lease(lease: Lease) -> wire::Lease {
    wire::Lease {
        fold: Some(lease.fold.into()),
        attempt: lease.attempt.0,
        config: lease.trial.to_string(),
        time_limit_seconds: lease.fold_seconds.unwrap_or(0),
        slot: lease.slot,
    }
}

/// A report on its way to the driver, with what its acknowledgement must repeat.
pub(super) struct Report {
    pub(super) fold: Option<wire::Fold>,
    pub(super) attempt: u32,
    pub(super) seconds: f64,
    pub(super) event: Result<Event, ConvertError>,
}

pub(super) fn result_event(worker: &WorkerId, report: wire::ResultReport) -> Report {
    let (fold, attempt) = (report.fold.clone(), report.attempt);
    let convert = || -> Result<(f64, Event), ConvertError> {
        let result: FoldResult = report.result.ok_or(ConvertError::Missing("result"))?.try_into()?;
        let (fold, attempt) = (convert::fold(report.fold)?, convert::attempt(report.attempt)?);
        let (seconds, result) = (result.seconds, Box::new(result));
        Ok((seconds, Event::ResultReported { worker: worker.clone(), fold, attempt, result }))
    };
    let (seconds, event) = match convert() {
        Ok((seconds, event)) => (seconds, Ok(event)),
        Err(error) => (0.0, Err(error)),
    };
    Report { fold, attempt, seconds, event }
}

pub(super) fn failure_event(worker: &WorkerId, report: wire::FailureReport) -> Report {
    let (fold, attempt) = (report.fold.clone(), report.attempt);
    let convert = || -> Result<Event, ConvertError> {
        let failure: Failure = report.failure.ok_or(ConvertError::Missing("failure"))?.try_into()?;
        let (fold, attempt) = (convert::fold(report.fold)?, convert::attempt(report.attempt)?);
        tracing::warn!(%worker, %fold, %attempt, %failure, "attempt failed");
        Ok(Event::FailureReported { worker: worker.clone(), fold, attempt, failure })
    };
    Report { fold, attempt, seconds: 0.0, event: convert() }
}

pub(super) fn acknowledge(
    fold: Option<wire::Fold>,
    attempt: u32,
    outcome: Result<(), String>,
) -> wire::Acknowledgement {
    let accepted = outcome.is_ok();
    wire::Acknowledgement { fold, attempt, accepted, reason: outcome.err().unwrap_or_default() }
}

pub(super) fn rejected(rejection: Rejection) -> Status {
    super::status(CallError::Rejected(rejection))
}

pub(super) fn invalid(error: ConvertError) -> Status {
    Status::invalid_argument(error.to_string())
}
