//! Leases: who gets which fold, how long, and whether a worker may go on with what it has. Costs O(log n) a
//! lease and a renewal. Time passing is here too, because most of what time does is to end leases.

use togl_sweeps::{Attempt, FailureClass, FoldKey, WorkerId};

use crate::books::{FoldAt, Issue, Scheduler, State, Timer, WorkerAt};
use crate::change::{Change, Ending};
use crate::event::{Abandon, Lease, Order, Rejection, Reply};
use crate::limits::Timestamp;

impl Scheduler {
    pub(crate) fn leases_asked(
        &mut self,
        now: Timestamp,
        worker: &WorkerId,
        count: u32,
        changes: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        let at = self.present(worker)?;
        self.heard_from(now, at);
        let draining = self.workers[at.at()].presence.as_ref().is_none_or(|presence| presence.draining);
        let room = if draining { 0 } else { self.free_slots(at).min(count as usize) };
        let mut leases = Vec::new();
        while leases.len() < room
            && let Some(lease) = self.next_lease(now, at, changes)
        {
            leases.push(lease);
        }
        Ok(Reply::Leases(leases))
    }

    /// Leases the next fold that `worker` may have.
    fn next_lease(&mut self, now: Timestamp, worker: WorkerAt, changes: &mut Vec<Change>) -> Option<Lease> {
        let mut turns = self.ready.iter().map(|(_, _, sweep)| *sweep);
        let (sweep, fold) = turns.find_map(|at| Some((at, self.sweeps[at.at()].next_for(worker)?)))?;
        self.servings += 1;
        self.sweeps[sweep.at()].last_served = self.servings;
        Some(self.issue(now, fold, worker, changes))
    }

    fn issue(&mut self, now: Timestamp, at: FoldAt, worker: WorkerAt, changes: &mut Vec<Change>) -> Lease {
        let term = self.limits.lease_term;
        let holder = &mut self.workers[worker.at()];
        holder.remembered = true;
        let fold = &mut self.folds[at.at()];
        fold.attempts.reserve_exact(1);
        fold.attempts.push(Issue { worker, ending: None, replicate: None });
        let (key, attempt) = (fold.key, fold.last_attempt());
        let (id, host) = (holder.id.clone(), holder.host.clone());
        changes.push(Change::AttemptIssued { fold: key, attempt, worker: id, host });
        self.set_state(at, State::Leased { attempt, worker, deadline: now.plus(term) });
        let trial = self.trials.get(&key.trial).cloned().unwrap_or_default();
        Lease { fold: key, attempt, trial, term, fold_seconds: self.time_limit(at) }
    }

    /// The loosest time limit of the sweeps that want the fold; none if one of them has none.
    fn time_limit(&self, at: FoldAt) -> Option<u64> {
        let sweeps = self.folds[at.at()].sweeps.iter().map(|(sweep, _)| &self.sweeps[sweep.at()]);
        let limits = sweeps.filter(|sweep| sweep.wants()).map(|sweep| sweep.limits.fold_seconds);
        limits.reduce(|a, b| Some(a?.max(b?))).flatten()
    }

    pub(crate) fn renewed(
        &mut self,
        now: Timestamp,
        worker: &WorkerId,
        running: &[(FoldKey, Attempt)],
        changes: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        let at = self.present(worker)?;
        self.heard_from(now, at);
        Ok(Reply::Orders(self.orders(now, at, running, changes)))
    }

    /// Renews what may go on and says what may not.
    pub(crate) fn orders(
        &mut self,
        now: Timestamp,
        worker: WorkerAt,
        running: &[(FoldKey, Attempt)],
        changes: &mut Vec<Change>,
    ) -> Vec<Order> {
        let orders = running.iter().map(|(fold, attempt)| {
            let verdict = self.may_go_on(now, worker, fold, *attempt, changes);
            Order { fold: *fold, attempt: *attempt, verdict }
        });
        orders.collect()
    }

    fn may_go_on(
        &mut self,
        now: Timestamp,
        worker: WorkerAt,
        key: &FoldKey,
        attempt: Attempt,
        changes: &mut Vec<Change>,
    ) -> Result<(), Abandon> {
        let at = *self.by_key.get(key).ok_or(Abandon::NeverIssued)?;
        let fold = &self.folds[at.at()];
        let issue = fold.issue(attempt).filter(|issue| issue.worker == worker).ok_or(Abandon::NeverIssued)?;
        match fold.state {
            State::Finished { .. } => return Err(Abandon::Finished),
            State::Failed(_) => return Err(Abandon::Failed),
            State::Leased { attempt: current, .. } if current == attempt => {
                return self.renew(now, worker, at, changes);
            }
            State::Leased { .. } => return Err(Abandon::Superseded),
            State::Pending { .. } => {}
        }
        let presumed =
            matches!(issue.ending, Some(Ending::Abandoned | Ending::Failed(FailureClass::WorkerLost)));
        if !self.is_wanted(fold) {
            Err(Abandon::NotWanted)
        } else if attempt != fold.last_attempt() || !presumed {
            Err(Abandon::Superseded)
        } else if self.free_slots(worker) == 0 {
            Err(Abandon::NoSlot)
        } else {
            self.revive(now, at, worker, attempt, changes);
            Ok(())
        }
    }

    fn renew(
        &mut self,
        now: Timestamp,
        worker: WorkerAt,
        at: FoldAt,
        changes: &mut Vec<Change>,
    ) -> Result<(), Abandon> {
        let slots = self.slots(worker);
        if self.workers[worker.at()].leases.len() > slots {
            // It came back with fewer slots than it had.
            let ending = Ending::Failed(FailureClass::Preempted);
            self.end_attempt(now, at, ending, "the worker has fewer slots than before", changes);
            return Err(Abandon::NoSlot);
        }
        let until = now.plus(self.limits.lease_term);
        if let State::Leased { deadline, .. } = &mut self.folds[at.at()].state {
            self.timers.remove(&(*deadline, Timer::Lease(at)));
            *deadline = until;
            self.timers.insert((until, Timer::Lease(at)));
        }
        Ok(())
    }

    /// The worker was presumed dead, or nobody wanted the fold, and that turned out wrong in time.
    fn revive(
        &mut self,
        now: Timestamp,
        at: FoldAt,
        worker: WorkerAt,
        attempt: Attempt,
        changes: &mut Vec<Change>,
    ) {
        let deadline = now.plus(self.limits.lease_term);
        let fold = &mut self.folds[at.at()];
        if let Some(issue) = fold.issue_mut(attempt) {
            issue.ending = None;
        }
        changes.push(Change::LeaseRevived { fold: fold.key, attempt });
        self.set_state(at, State::Leased { attempt, worker, deadline });
    }

    pub(crate) fn tick(&mut self, now: Timestamp, changes: &mut Vec<Change>) -> Reply {
        while let Some((deadline, timer)) = self.timers.first().copied()
            && deadline <= now
        {
            match timer {
                Timer::Lease(at) => {
                    let message = format!("not renewed for {} ms", self.limits.lease_term);
                    self.end_attempt(now, at, Ending::Failed(FailureClass::WorkerLost), &message, changes);
                }
                Timer::Held(at) => self.set_state(at, State::Pending { avoid: None }),
                Timer::Worker(at) => self.worker_lost(now, at, changes),
            }
            self.timers.remove(&(deadline, timer)); // done above; stays done if a book was ever wrong
        }
        Reply::Done
    }

    fn slots(&self, worker: WorkerAt) -> usize {
        self.workers[worker.at()].presence.as_ref().map_or(0, |presence| presence.info.slots as usize)
    }

    fn free_slots(&self, worker: WorkerAt) -> usize {
        self.slots(worker).saturating_sub(self.workers[worker.at()].leases.len())
    }
}
