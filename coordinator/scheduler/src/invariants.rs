//! What must hold after every event, whatever happened. Tests call it after each step; it looks at everything
//! and is slow. A failure here is a bug of this crate, never a peer's fault.

use std::collections::{BTreeMap, BTreeSet};

use crate::books::{FoldAt, Scheduler, State, SweepAt, Timer, WorkerAt};
use crate::change::SweepState;
use crate::limits::Timestamp;
use crate::views::Counts;

/// An invariant that does not hold, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("broken invariant: {0}")]
pub struct BrokenInvariant(pub String);

type Checked = Result<(), BrokenInvariant>;

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(BrokenInvariant(what())) }
}

impl Scheduler {
    /// Checks that all books agree with each other.
    pub fn check_invariants(&self) -> Checked {
        ensure(self.folds.len() == self.by_key.len(), || "folds and their keys differ in number".to_owned())?;
        for index in 0..self.folds.len() {
            self.check_fold(FoldAt::next(index))?;
        }
        for index in 0..self.sweeps.len() {
            self.check_sweep(SweepAt::next(index))?;
        }
        for index in 0..self.workers.len() {
            self.check_worker_entry(WorkerAt::next(index))?;
        }
        let listed: BTreeSet<_> = self.sweeps.iter().filter_map(|sweep| sweep.listed).collect();
        ensure(listed == self.ready, || "the serving order is not what the sweeps say".to_owned())?;
        ensure(self.expected_timers() == self.timers, || {
            "the timers are not what the states say".to_owned()
        })?;
        let present = self.workers.iter().filter(|worker| worker.presence.is_some()).count();
        ensure(present == self.connected, || "the number of connected workers is wrong".to_owned())
    }

    fn check_fold(&self, at: FoldAt) -> Checked {
        let fold = &self.folds[at.at()];
        let say = |what: &str| format!("{}: {what}", fold.key.short());
        ensure(self.by_key.get(&fold.key) == Some(&at), || say("its key leads elsewhere"))?;
        ensure(self.trials.contains_key(&fold.key.trial), || say("its trial is unknown"))?;
        let distinct: BTreeSet<_> = fold.sweeps.iter().map(|(sweep, _)| sweep).collect();
        ensure(distinct.len() == fold.sweeps.len(), || say("a sweep has it twice"))?;
        for (sweep, position) in &fold.sweeps {
            let there = self.sweeps[sweep.at()].folds.get(*position as usize);
            ensure(there == Some(&at), || say("it is not where its sweep has it"))?;
        }
        match &fold.state {
            State::Leased { attempt, worker, .. } => {
                ensure(*attempt == fold.last_attempt(), || say("an old attempt is current"))?;
                ensure(self.is_wanted(fold), || say("it runs and nobody wants it"))?;
                let open = |issue: &&crate::books::Issue| issue.worker == *worker && issue.ending.is_none();
                ensure(fold.issue(*attempt).filter(open).is_some(), || say("its lease was never issued"))?;
                ensure(self.workers[worker.at()].leases.contains(&at), || say("its worker does not have it"))
            }
            State::Finished { attempt, .. } => {
                let issue = fold.issue(*attempt);
                ensure(issue.is_some_and(|issue| issue.replicate.is_none()), || {
                    say("its result is not its own")
                })
            }
            State::Pending { .. } | State::Failed(_) => {
                let kept = fold.attempts.iter().any(|issue| issue.replicate.is_some());
                ensure(!kept, || say("it has a replicate and no result"))
            }
        }
    }

    fn check_sweep(&self, at: SweepAt) -> Checked {
        let sweep = &self.sweeps[at.at()];
        let say = |what: &str| format!("{}: {what}", sweep.name);
        let mut counts = Counts::default();
        let (mut queue, mut held): (BTreeSet<u32>, BTreeMap<WorkerAt, BTreeSet<u32>>) = Default::default();
        for (position, fold) in (0..).zip(&sweep.folds) {
            let fold = &self.folds[fold.at()];
            ensure(fold.sweeps.contains(&(at, position)), || say("a fold does not know it"))?;
            *counts.of(&fold.state) += 1;
            match fold.state {
                State::Pending { avoid: None } => _ = queue.insert(position),
                State::Pending { avoid: Some((worker, _)) } => {
                    _ = held.entry(worker).or_default().insert(position)
                }
                _ => {}
            }
        }
        ensure(counts == sweep.counts, || say("its counts are wrong"))?;
        ensure(queue == sweep.queue && held == sweep.held, || say("its queues are wrong"))?;
        let serves = sweep.state == SweepState::Active && counts.pending > 0;
        ensure(serves == sweep.listed.is_some(), || {
            say("it is served though it should not be, or the reverse")
        })
    }

    fn check_worker_entry(&self, at: WorkerAt) -> Checked {
        let worker = &self.workers[at.at()];
        let say = |what: &str| format!("{}: {what}", worker.id);
        let vacant = self.vacant.contains(&at);
        ensure(vacant != (self.by_worker.get(&worker.id) == Some(&at)), || say("its place is wrong"))?;
        ensure(!(vacant && (worker.remembered || worker.presence.is_some())), || say("it is here and gone"))?;
        for fold in &worker.leases {
            let state = &self.folds[fold.at()].state;
            let holds = matches!(state, State::Leased { worker, .. } if *worker == at);
            ensure(holds, || say("it has a lease that its fold does not know"))?;
        }
        match &worker.presence {
            Some(presence) => {
                ensure(worker.leases.len() <= presence.info.slots as usize, || say("more leases than slots"))
            }
            None => Ok(()),
        }
    }

    fn expected_timers(&self) -> BTreeSet<(Timestamp, Timer)> {
        let folds = (0..).zip(&self.folds).filter_map(|(index, fold)| match fold.state {
            State::Leased { deadline, .. } => Some((deadline, Timer::Lease(FoldAt(index)))),
            State::Pending { avoid: Some((_, until)) } => Some((until, Timer::Held(FoldAt(index)))),
            _ => None,
        });
        let workers = (0..).zip(&self.workers).filter_map(|(index, worker)| {
            let presence = worker.presence.as_ref()?;
            Some((presence.deadline, Timer::Worker(WorkerAt(index))))
        });
        folds.chain(workers).collect()
    }
}
