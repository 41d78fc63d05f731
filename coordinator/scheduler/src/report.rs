//! Reports: which result counts, which is kept beside it, which is refused; what a failure leads to. This is
//! the acceptance table: a result of an issued attempt fills an empty fold whichever attempt it is, the same
//! report again is acknowledged, another attempt's result is a replicate, and what was never issued is
//! refused.

use togl_sweeps::result::Metrics;
use togl_sweeps::{Attempt, Failure, FailureClass, FoldKey, FoldResult, WorkerId};

use crate::books::{FoldAt, Scheduler, State};
use crate::change::{Change, Digest, Ending};
use crate::event::{FailureAnswer, Refusal, Reply, ResultAnswer};
use crate::limits::Timestamp;

/// A result that passed its checks, on its way into the books.
struct Delivery {
    at: FoldAt,
    fold: FoldKey,
    attempt: Attempt,
    /// To whom the attempt was issued.
    worker: WorkerId,
    digest: Digest,
    result: Box<FoldResult>,
}

impl Scheduler {
    pub(crate) fn result_reported(
        &mut self,
        now: Timestamp,
        worker: WorkerId,
        fold: FoldKey,
        attempt: Attempt,
        result: Box<FoldResult>,
        changes: &mut Vec<Change>,
    ) -> Reply {
        let Some((at, issued_to)) = self.issued(&fold, attempt) else {
            return refuse(Refusal::NeverIssued { fold, attempt, worker });
        };
        // A process that took over the spool of a dead one reports for it: the result says who trained it.
        if issued_to != worker && issued_to.as_str() != result.provenance.worker {
            return refuse(Refusal::NeverIssued { fold, attempt, worker });
        }
        if let Err(failure) = check(&result) {
            if self.is_current(at, attempt) {
                self.end_attempt(now, at, Ending::Failed(failure.class), &failure.message, changes);
            }
            return refuse(Refusal::Invalid { reason: failure.message });
        }
        let digest = Digest::of(&result);
        let delivery = Delivery { at, fold, attempt, worker: issued_to, digest, result };
        Reply::Result(self.deliver(delivery, changes))
    }

    fn deliver(&mut self, delivery: Delivery, changes: &mut Vec<Change>) -> ResultAnswer {
        let Delivery { at, attempt, digest, .. } = delivery;
        let State::Finished { attempt: accepted, digest: of_accepted } = self.folds[at.at()].state else {
            return self.accept(delivery, changes);
        };
        let replicate = self.folds[at.at()].issue(attempt).and_then(|issue| issue.replicate);
        let before = if accepted == attempt { Some(of_accepted) } else { replicate };
        match before {
            Some(before) if before == digest => ResultAnswer::Same,
            Some(_) => log_conflict(delivery, changes),
            None => self.keep_replicate(delivery, digest == of_accepted, changes),
        }
    }

    fn accept(&mut self, delivery: Delivery, changes: &mut Vec<Change>) -> ResultAnswer {
        let Delivery { at, fold, attempt, worker, digest, result } = delivery;
        self.set_state(at, State::Finished { attempt, digest });
        changes.push(Change::FoldFinished { fold, attempt, worker, digest, result });
        ResultAnswer::Accepted
    }

    fn keep_replicate(
        &mut self,
        delivery: Delivery,
        agrees: bool,
        changes: &mut Vec<Change>,
    ) -> ResultAnswer {
        let Delivery { at, fold, attempt, worker, digest, result } = delivery;
        if let Some(issue) = self.folds[at.at()].issue_mut(attempt) {
            issue.replicate = Some(digest);
        }
        changes.push(Change::ReplicateKept { fold, attempt, worker, digest, agrees, result });
        ResultAnswer::Replicate { agrees }
    }

    pub(crate) fn failure_reported(
        &mut self,
        now: Timestamp,
        worker: WorkerId,
        fold: FoldKey,
        attempt: Attempt,
        failure: &Failure,
        changes: &mut Vec<Change>,
    ) -> Reply {
        let Some((at, _)) = self.issued(&fold, attempt).filter(|(_, issued_to)| *issued_to == worker) else {
            return Reply::Failure(FailureAnswer::Refused(Refusal::NeverIssued { fold, attempt, worker }));
        };
        if !self.is_current(at, attempt) {
            return Reply::Failure(FailureAnswer::Superseded);
        }
        self.end_attempt(now, at, Ending::Failed(failure.class), &failure.message, changes);
        let failed = matches!(self.folds[at.at()].state, State::Failed(_));
        Reply::Failure(if failed { FailureAnswer::Failed } else { FailureAnswer::Retried })
    }

    /// The place of a fold and the worker that this attempt of it was issued to.
    fn issued(&self, fold: &FoldKey, attempt: Attempt) -> Option<(FoldAt, WorkerId)> {
        let at = *self.by_key.get(fold)?;
        let issue = self.folds[at.at()].issue(attempt)?;
        Some((at, self.workers[issue.worker.at()].id.clone()))
    }

    fn is_current(&self, at: FoldAt, attempt: Attempt) -> bool {
        matches!(self.folds[at.at()].state, State::Leased { attempt: current, .. } if current == attempt)
    }
}

fn refuse(refusal: Refusal) -> Reply {
    Reply::Result(ResultAnswer::Refused(refusal))
}

fn log_conflict(delivery: Delivery, changes: &mut Vec<Change>) -> ResultAnswer {
    let Delivery { fold, attempt, worker, digest, result, .. } = delivery;
    changes.push(Change::ConflictLogged { fold, attempt, worker, digest, result });
    ResultAnswer::Conflict
}

/// Refuses what no table can show and no store can hold.
fn check(result: &FoldResult) -> Result<(), Failure> {
    use togl_sweeps::result::ResultError;
    result.check().map_err(|error| {
        let class = match error {
            ResultError::Impossible { .. } => FailureClass::NotFinite,
            ResultError::Newer { .. } => FailureClass::Error,
        };
        Failure::new(class, error.to_string())
    })?;
    let finite = |metrics: Metrics| metrics.loss.is_finite() && metrics.accuracy.is_finite();
    let wrong = result.history.iter().find(|line| {
        !(line.lr.is_finite() && finite(line.train) && finite(line.validation)) // JSON has no word for these
    });
    match wrong {
        Some(line) => {
            let message =
                format!("the learning curve has a number that is not finite in epoch {}", line.epoch);
            Err(Failure::new(FailureClass::NotFinite, message))
        }
        None => Ok(()),
    }
}
