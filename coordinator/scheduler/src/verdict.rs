//! When is a failure final? Counts how a fold's attempts ended and says whether there is another one. Also
//! the one function that ends a running attempt. Calls nobody but the books.

use std::collections::BTreeSet;

use togl_sweeps::{Failure, FailureClass};

use crate::books::{Fold, FoldAt, Scheduler, State};
use crate::change::{Change, Ending};
use crate::limits::Timestamp;

/// How the attempts of a fold ended, as far as they count.
struct Tally<'a> {
    /// Lost or preempted: not the fold's fault, as far as one can tell.
    free: u32,
    /// Out of memory.
    memory: u32,
    /// Everything that would happen again.
    errors: u32,
    /// Hosts that were lost under it.
    lost_hosts: BTreeSet<&'a str>,
}

/// Whether an error of this class would be the same anywhere, so that another worker should try.
pub(crate) fn would_happen_again(class: FailureClass) -> bool {
    !matches!(class, FailureClass::WorkerLost | FailureClass::Preempted)
}

impl Scheduler {
    /// Ends the running attempt of a fold: it becomes pending again, or failed if that was enough.
    pub(crate) fn end_attempt(
        &mut self,
        now: Timestamp,
        at: FoldAt,
        ending: Ending,
        message: &str,
        changes: &mut Vec<Change>,
    ) {
        let fold = &mut self.folds[at.at()];
        let State::Leased { attempt, worker, .. } = fold.state else { return };
        if let Some(issue) = fold.issue_mut(attempt) {
            issue.ending = Some(ending);
        }
        changes.push(Change::AttemptEnded { fold: fold.key, attempt, ending, message: message.to_owned() });
        let failure = match ending {
            Ending::Failed(class) => self.verdict(&self.folds[at.at()], class, message),
            Ending::Abandoned => None,
        };
        let state = match failure {
            Some(failure) => {
                changes.push(Change::FoldFailed { fold: self.folds[at.at()].key, failure: failure.clone() });
                State::Failed(Box::new(failure))
            }
            None => {
                let avoids = matches!(ending, Ending::Failed(class) if would_happen_again(class));
                State::Pending { avoid: avoids.then(|| (worker, now.plus(self.limits.avoidance))) }
            }
        };
        self.set_state(at, state);
    }

    /// The final failure, if the attempt that just ended with `class` was the last one.
    fn verdict(&self, fold: &Fold, class: FailureClass, message: &str) -> Option<Failure> {
        let limits = &self.limits;
        let tally = self.tally(fold);
        let attempts = tally.free + tally.memory + tally.errors;
        let allowed = self.attempts_allowed(fold);
        let because = |reason: String| Some(Failure::new(class, format!("{message}; {reason}")));
        if class == FailureClass::Config {
            Some(Failure::new(class, message))
        } else if tally.lost_hosts.len() >= limits.lost_hosts as usize {
            let hosts: Vec<&str> = tally.lost_hosts.into_iter().collect();
            let message =
                format!("{} hosts were lost while they trained it: {}", hosts.len(), hosts.join(", "));
            Some(Failure::new(FailureClass::KillsItsWorker, message))
        } else if tally.memory >= limits.memory_attempts {
            because("hint: lower `batch_size` or `hidden_dim`, or add a worker with more memory".to_owned())
        } else if tally.errors >= limits.error_attempts {
            Some(Failure::new(class, message))
        } else if tally.free >= limits.free_retries {
            because(format!("lost or preempted {} times, which is the limit", tally.free))
        } else if attempts >= allowed {
            because(format!("`limits.attempts` of its sweep allows no more than {allowed}"))
        } else {
            None
        }
    }

    /// Attempts that the most generous of its sweeps allows.
    fn attempts_allowed(&self, fold: &Fold) -> u32 {
        let sweeps = fold.sweeps.iter().map(|(sweep, _)| &self.sweeps[sweep.at()]);
        sweeps.filter(|sweep| sweep.wants()).map(|sweep| sweep.limits.attempts).max().unwrap_or(1).max(1)
    }

    fn tally(&self, fold: &Fold) -> Tally<'_> {
        let mut tally = Tally { free: 0, memory: 0, errors: 0, lost_hosts: BTreeSet::new() };
        for issue in fold.attempts.iter().skip(fold.forgiven as usize) {
            match issue.ending {
                Some(Ending::Failed(FailureClass::WorkerLost)) => {
                    tally.free += 1;
                    tally.lost_hosts.insert(&self.workers[issue.worker.at()].host);
                }
                Some(Ending::Failed(FailureClass::Preempted)) => tally.free += 1,
                Some(Ending::Failed(FailureClass::OutOfMemory)) => tally.memory += 1,
                Some(Ending::Failed(_)) => tally.errors += 1,
                Some(Ending::Abandoned) | None => {}
            }
        }
        tally
    }
}
