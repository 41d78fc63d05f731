//! Reports: which result counts, which is kept beside it, which is refused; what a failure leads to. This is
//! the acceptance table: a result of an issued attempt fills an empty fold whichever attempt it is, the same
//! report again is acknowledged, another attempt's result is a replicate, and what was never issued is
//! refused.

use togl_sweeps::race::Score;
use togl_sweeps::{Attempt, CheckedResult, Failure, FailureClass, FoldKey, Scale, WorkerId};

use crate::change::{Change, FoldChange};
use crate::fold::State;
use crate::limits::Timestamp;
use crate::place::FoldAt;
use crate::reply::{FailureAnswer, Refusal, Reply, ResultAnswer};
use crate::state::Scheduler;
use crate::words::{Digest, Ending};

/// A result that may count, on its way into the state.
pub(crate) struct Delivery {
    pub(crate) at: FoldAt,
    pub(crate) fold: FoldKey,
    pub(crate) attempt: Attempt,
    /// To whom the attempt was issued.
    pub(crate) worker: WorkerId,
    pub(crate) digest: Digest,
    pub(crate) result: Box<CheckedResult>,
}

impl Scheduler {
    pub(crate) fn result_reported(
        &mut self,
        now: Timestamp,
        worker: WorkerId,
        fold: FoldKey,
        attempt: Attempt,
        result: Box<CheckedResult>,
        changes: &mut Vec<Change>,
    ) -> Reply {
        let Some((at, issued_to)) = self.issued(&fold, attempt) else {
            return refuse(Refusal::NeverIssued { fold, attempt, worker });
        };
        // A process that took over the spool of a dead one reports for it: the result says who trained it.
        if issued_to != worker && issued_to.as_str() != result.provenance.worker {
            return refuse(Refusal::NeverIssued { fold, attempt, worker });
        }
        if let Err(reason) = self.check_trial(&fold, &result) {
            if self.folds[at.at()].is_current(attempt) {
                self.end_attempt(now, at, Ending::Failed(FailureClass::ReportRefused), &reason, changes);
            }
            return refuse(Refusal::Invalid { reason });
        }
        let digest = Digest::of(&result);
        let delivery = Delivery { at, fold, attempt, worker: issued_to, digest, result };
        Reply::Result(self.deliver(now, delivery, changes))
    }

    fn deliver(&mut self, now: Timestamp, delivery: Delivery, changes: &mut Vec<Change>) -> ResultAnswer {
        let Delivery { at, attempt, digest, .. } = delivery;
        let accepted = match self.folds[at.at()].state {
            State::Finished { attempt, digest, .. } => Some((attempt, digest)),
            _ => None,
        };
        let of_this = accepted.filter(|(accepted, _)| *accepted == attempt).map(|(_, digest)| digest);
        match (of_this.or_else(|| self.replicates.get(&(at, attempt)).copied()), accepted) {
            (Some(before), _) if before == digest => ResultAnswer::Same,
            (Some(_), _) => self.log_conflict(delivery, changes),
            (None, Some((_, of_accepted))) => self.keep_replicate(delivery, digest == of_accepted, changes),
            (None, None) => self.accept(now, delivery, changes),
        }
    }

    fn accept(&mut self, now: Timestamp, delivery: Delivery, changes: &mut Vec<Change>) -> ResultAnswer {
        let (at, seconds) = (delivery.at, delivery.result.seconds);
        let winner = self.folds[at.at()].issue(delivery.attempt).map(|issue| issue.worker);
        self.fill(delivery, changes);
        for (sweep, _) in &self.folds[at.at()].sweeps {
            self.sweeps[sweep.at()].pace.note(seconds);
        }
        if let Some(winner) = winner {
            self.weigh_success(now, at, winner, changes);
        }
        ResultAnswer::Accepted
    }

    /// Gives a fold its result, whatever it says of the worker that trained it.
    pub(crate) fn fill(&mut self, delivery: Delivery, changes: &mut Vec<Change>) {
        let Delivery { at, fold, attempt, worker, digest, result } = delivery;
        self.set_state(at, State::Finished { attempt, digest, score: Score::of(&result) });
        let data = result.data_digest.clone();
        changes.push(Change::Fold(fold, FoldChange::Finished { attempt, worker, digest, result }));
        self.weigh_digest(at, &data, changes);
    }

    /// A result is taken only with the numbers, the scale and the metric that its trial asks for.
    pub(crate) fn check_trial(&self, fold: &FoldKey, result: &CheckedResult) -> Result<(), String> {
        let Some(trial) = self.trials.get(&fold.trial) else { return Ok(()) };
        match trial.numerics {
            Some(asked) if asked != result.numerics => {
                return Err(format!(
                    "the result has version {} of the numbers, its trial {asked}; update the older program",
                    result.numerics
                ));
            }
            _ => {}
        }
        if trial.metric.is_some() && result.score.as_ref() != trial.score.as_deref() {
            let asked = trial.score.as_deref().unwrap_or(Scale::share());
            return Err(format!(
                "the values of the result are {}, those of its trial {asked}; update the older program",
                result.scale()
            ));
        }
        trial
            .metric
            .map_or(Ok(()), |metric| result.check_confusion(metric))
            .map_err(|error| error.to_string())
    }

    /// Kept once an attempt: who goes on contradicting itself adds nothing.
    fn log_conflict(&mut self, delivery: Delivery, changes: &mut Vec<Change>) -> ResultAnswer {
        let Delivery { at, fold, attempt, worker, digest, result } = delivery;
        if self.conflicts.insert((at, attempt)) {
            changes.push(Change::Fold(fold, FoldChange::Conflict { attempt, worker, digest, result }));
        }
        ResultAnswer::Conflict
    }

    pub(crate) fn keep_replicate(
        &mut self,
        delivery: Delivery,
        agrees: bool,
        changes: &mut Vec<Change>,
    ) -> ResultAnswer {
        let Delivery { at, fold, attempt, worker, digest, result } = delivery;
        self.replicates.insert((at, attempt), digest);
        let kept = FoldChange::Replicate { attempt, worker, digest, agrees, result };
        changes.push(Change::Fold(fold, kept));
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
