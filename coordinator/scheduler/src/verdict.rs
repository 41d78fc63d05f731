//! When is a failure final? Counts how a fold's attempts ended and says whether there is another one. Also
//! the one function that ends a running attempt. Calls nobody but the state.

use std::collections::{BTreeMap, BTreeSet};

use togl_sweeps::{Failure, FailureClass, hint};

use crate::change::{Change, FoldChange};
use crate::fold::{Fold, State, Wait};
use crate::limits::{Limits, Timestamp};
use crate::place::{FoldAt, WorkerAt};
use crate::state::Scheduler;
use crate::words::Ending;

/// How the attempts of a fold ended, as far as they count.
struct Tally<'a> {
    /// Lost: not the fold's fault, as far as one can tell. While a host is here that did not lose it, a
    /// host counts for few of them: one that dies again and again says nothing about the fold.
    free: u32,
    /// Given back by workers that were told to leave: how clusters work, so many are allowed and none is an attempt.
    preempted: u32,
    /// Out of memory.
    memory: u32,
    /// Everything that would happen again.
    errors: u32,
    /// Hosts that were lost under it.
    lost_hosts: BTreeSet<&'a str>,
}

/// Whether another worker should try first, because the same one would probably fail in the same way.
pub(crate) fn should_go_elsewhere(class: FailureClass) -> bool {
    !matches!(class, FailureClass::WorkerLost | FailureClass::Preempted | FailureClass::Unreadable)
}

/// Whether an attempt's end was not the fold's fault, as far as one can tell.
fn is_free(class: FailureClass) -> bool {
    class == FailureClass::WorkerLost
}

/// What is known about an attempt that ran out of memory.
#[derive(Clone, Copy)]
struct Exhausted {
    /// Of its device; 0 if unknown.
    memory: u64,
    /// The most that was ever seen on a device that would do.
    most: u64,
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
        let State::Leased { attempt, worker, slot, .. } = fold.state else { return };
        if let Some(issue) = fold.issue_mut(attempt) {
            issue.ending = Some(ending);
        }
        let ended = FoldChange::Ended { attempt, ending, message: message.to_owned() };
        changes.push(Change::Fold(fold.key, ended));
        let Ending::Failed(class) = ending else {
            return self.set_state(at, State::Pending(Wait::Nothing));
        };
        let exhausted = self.learn_from(now, at, (worker, slot), class, changes);
        match self.verdict(&self.folds[at.at()], class, message, exhausted) {
            Some(failure) => {
                changes.push(Change::Fold(self.folds[at.at()].key, FoldChange::Failed(failure.clone())));
                self.set_state(at, State::Failed(Box::new(failure.clone())));
                self.weigh_failure(at, &failure, changes);
            }
            // A larger device is elsewhere enough, even if it belongs to the same worker.
            None if should_go_elsewhere(class) && exhausted.is_none_or(|found| found.memory == 0) => {
                let until = now.plus(self.limits.avoidance);
                self.set_state(at, State::Pending(Wait::Another { worker, until }));
            }
            None => self.set_state(at, State::Pending(Wait::Nothing)),
        }
    }

    /// What the end of an attempt says about the slot of the worker that had it, and about the trial.
    fn learn_from(
        &mut self,
        now: Timestamp,
        at: FoldAt,
        (worker, slot): (WorkerAt, u32),
        class: FailureClass,
        changes: &mut Vec<Change>,
    ) -> Option<Exhausted> {
        use FailureClass as Class;
        match class {
            Class::OutOfMemory => {
                let memory = self.raise_floor(at, worker, slot, changes);
                return Some(Exhausted { memory, most: self.most_memory_for(now, at) });
            }
            Class::Unreadable => self.note_unreadable(at, worker),
            Class::WorkerLost | Class::Preempted => self.workers[worker.at()].unfinished = true,
            Class::NeedsUpgrade => {
                self.workers[worker.at()].needs_upgrade = true;
                self.revision += 1;
            }
            Class::Crashed | Class::NotFinite | Class::TimeLimit | Class::Data | Class::Config => {}
            Class::Panicked | Class::ReportRefused | Class::Error | Class::KillsItsWorker => {}
        }
        None
    }

    /// The final failure, if the attempt that just ended with `class` was the last one.
    fn verdict(
        &self,
        fold: &Fold,
        class: FailureClass,
        message: &str,
        exhausted: Option<Exhausted>,
    ) -> Option<Failure> {
        let limits = &self.limits;
        let tally = self.tally(fold);
        let attempts = tally.free + tally.memory + tally.errors;
        let allowed = self.attempts_allowed(fold);
        let because = |reason: String| Some(Failure::new(class, format!("{message}; {reason}")));
        // Nobody else can train settings that make no sense, and nobody else needs to train what is finished.
        if matches!(class, FailureClass::Config | FailureClass::NeedsUpgrade) {
            Some(Failure::new(class, message))
        } else if tally.lost_hosts.len() >= limits.lost_hosts as usize {
            let hosts: Vec<&str> = tally.lost_hosts.into_iter().collect();
            let message =
                format!("{} hosts were lost while they trained it: {}", hosts.len(), hosts.join(", "));
            Some(Failure::new(FailureClass::KillsItsWorker, message))
        } else if let Some(reason) = exhausted.and_then(|found| no_larger(found, tally.memory, limits)) {
            because(reason)
        } else if class == FailureClass::Data
            && self.is_out_of_hosts(fold, |class| class == FailureClass::Data)
        {
            because("every host that is here has tried".to_owned())
        } else if tally.errors >= limits.error_attempts {
            Some(Failure::new(class, message))
        } else if tally.free >= limits.free_retries {
            because(format!("its workers were lost {} times, which is the limit", tally.free))
        } else if tally.preempted >= limits.preemptions {
            because(format!("preempted {} times, which is the limit", tally.preempted))
        } else if attempts >= allowed {
            because(format!("`limits.attempts` of its sweep allows no more than {allowed}"))
        } else {
            None
        }
    }

    /// Whether a fold ended like this on every host that is here.
    fn is_out_of_hosts(&self, fold: &Fold, is_such: fn(FailureClass) -> bool) -> bool {
        let such = |ending| matches!(ending, Some(Ending::Failed(class)) if is_such(class));
        let tried: BTreeSet<&str> = fold
            .counted()
            .filter(|(_, issue)| such(issue.ending))
            .map(|(_, issue)| self.workers[issue.worker.at()].host.as_ref())
            .collect();
        let mut here = self.workers.iter().filter(|worker| worker.presence.is_some());
        here.all(|worker| tried.contains(worker.host.as_ref()))
    }

    /// Attempts that the most generous of its sweeps allows.
    fn attempts_allowed(&self, fold: &Fold) -> u32 {
        let sweeps = self.sweeps_of(fold);
        sweeps
            .filter(|sweep| sweep.wants_trial(fold.key.trial))
            .map(|sweep| sweep.limits.attempts)
            .max()
            .unwrap_or(1)
            .max(1)
    }

    fn tally(&self, fold: &Fold) -> Tally<'_> {
        let mut tally = Tally { free: 0, preempted: 0, memory: 0, errors: 0, lost_hosts: BTreeSet::new() };
        let mut free: BTreeMap<&str, u32> = BTreeMap::new();
        for (_, issue) in fold.counted() {
            let host = self.workers[issue.worker.at()].host.as_ref();
            match issue.ending {
                Some(Ending::Failed(class)) if is_free(class) => {
                    *free.entry(host).or_default() += 1;
                    tally.lost_hosts.insert(host);
                }
                Some(Ending::Failed(FailureClass::Preempted)) => tally.preempted += 1,
                Some(Ending::Failed(FailureClass::OutOfMemory)) => tally.memory += 1,
                Some(Ending::Failed(FailureClass::Unreadable) | Ending::Abandoned) | None => {}
                Some(Ending::Failed(_)) => tally.errors += 1,
            }
        }
        let most = if self.is_out_of_hosts(fold, is_free) { u32::MAX } else { self.limits.losses_of_a_host };
        tally.free = free.values().map(|times| (*times).min(most)).sum();
        tally
    }
}

/// Why there is no point in trying again after running out of memory. Where memory is known, a larger device must
/// have been seen; where it is not, the number of attempts decides.
fn no_larger(found: Exhausted, attempts: u32, limits: &Limits) -> Option<String> {
    let Exhausted { memory, most } = found;
    let advice = "lower `batch_size` or `hidden_dim`, or add a worker with more memory";
    if memory == 0 {
        (attempts >= limits.memory_attempts).then(|| hint::alone(advice))
    } else {
        (most <= memory).then(|| {
            hint::beside(format!("no device with more than {} was seen", bytes(memory)), Some(advice))
        })
    }
}

/// Bytes for people.
pub(crate) fn bytes(bytes: u64) -> String {
    if bytes >= 1 << 20 {
        format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
    } else {
        format!("{bytes} bytes")
    }
}
