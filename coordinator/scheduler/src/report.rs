//! Reports: which result counts, which is kept beside it, which is refused; what a failure leads to. This is
//! the acceptance table: a result of an issued attempt fills an empty fold whichever attempt it is, the same
//! report again is acknowledged, another attempt's result is a replicate, and what was never issued is
//! refused.

use togl_sweeps::result::Metrics;
use togl_sweeps::{Attempt, Failure, FailureClass, FoldKey, FoldResult, WorkerId};

use crate::books::Scheduler;
use crate::change::{Change, Digest, Ending};
use crate::fold::State;
use crate::limits::Timestamp;
use crate::place::FoldAt;
use crate::reply::{FailureAnswer, Refusal, Reply, ResultAnswer};

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
        if let Err(failure) = self.check_numerics(&fold, &result).and_then(|()| check(&result)) {
            if self.folds[at.at()].is_current(attempt) {
                self.end_attempt(now, at, Ending::Failed(failure.class), &failure.message, changes);
            }
            return refuse(Refusal::Invalid { reason: failure.message });
        }
        let digest = Digest::of(&result);
        let delivery = Delivery { at, fold, attempt, worker: issued_to, digest, result };
        Reply::Result(self.deliver(now, delivery, changes))
    }

    fn deliver(&mut self, now: Timestamp, delivery: Delivery, changes: &mut Vec<Change>) -> ResultAnswer {
        let Delivery { at, attempt, digest, .. } = delivery;
        let accepted = match self.folds[at.at()].state {
            State::Finished { attempt, digest } => Some((attempt, digest)),
            _ => None,
        };
        let of_this = accepted.filter(|(accepted, _)| *accepted == attempt).map(|(_, digest)| digest);
        match (of_this.or_else(|| self.replicates.get(&(at, attempt)).copied()), accepted) {
            (Some(before), _) if before == digest => ResultAnswer::Same,
            (Some(_), _) => log_conflict(delivery, changes),
            (None, Some((_, of_accepted))) => self.keep_replicate(delivery, digest == of_accepted, changes),
            (None, None) => self.accept(now, delivery, changes),
        }
    }

    fn accept(&mut self, now: Timestamp, delivery: Delivery, changes: &mut Vec<Change>) -> ResultAnswer {
        let Delivery { at, fold, attempt, worker, digest, result } = delivery;
        let winner = self.folds[at.at()].issue(attempt).map(|issue| issue.worker);
        self.set_state(at, State::Finished { attempt, digest });
        let data = result.data_digest.clone();
        changes.push(Change::FoldFinished { fold, attempt, worker, digest, result });
        self.weigh_digest(at, &data, changes);
        if let Some(winner) = winner {
            self.weigh_success(now, at, winner, changes);
        }
        ResultAnswer::Accepted
    }

    /// A result is taken only with the numbers that its trial asks for.
    fn check_numerics(&self, fold: &FoldKey, result: &FoldResult) -> Result<(), Failure> {
        match self.trials.get(&fold.trial).and_then(|trial| trial.numerics) {
            Some(asked) if asked != result.numerics => {
                let message = format!(
                    "the result has version {} of the numbers, its trial {asked}; update the older program",
                    result.numerics
                );
                Err(Failure::new(FailureClass::Error, message))
            }
            _ => Ok(()),
        }
    }

    fn keep_replicate(
        &mut self,
        delivery: Delivery,
        agrees: bool,
        changes: &mut Vec<Change>,
    ) -> ResultAnswer {
        let Delivery { at, fold, attempt, worker, digest, result } = delivery;
        self.replicates.insert((at, attempt), digest);
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
        if !self.folds[at.at()].is_current(attempt) {
            return Reply::Failure(FailureAnswer::Superseded);
        }
        self.end_attempt(now, at, Ending::Failed(failure.class), &failure.message, changes);
        let failed = matches!(self.folds[at.at()].state, State::Failed(_));
        Reply::Failure(if failed { FailureAnswer::Failed } else { FailureAnswer::Retried })
    }

    /// The place of a fold and the worker that this attempt of it was issued to.
    fn issued(&self, fold: &FoldKey, attempt: Attempt) -> Option<(FoldAt, WorkerId)> {
        let at = self.place_of(fold)?;
        let issue = self.folds[at.at()].issue(attempt)?;
        Some((at, self.workers[issue.worker.at()].id.clone()))
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
