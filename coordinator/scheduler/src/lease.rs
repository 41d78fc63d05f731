//! Leases: who gets which fold, how long, and whether a worker may go on with what it has. Costs O(log n) a
//! lease and a renewal: a fold that turns out not to fit is put aside behind an obstacle and not looked at again
//! before a worker asks that it does not stop. Time passing is here too, because most of what time does is to end leases.

use togl_sweeps::{Attempt, FailureClass, FoldKey, WorkerId};

use crate::change::{Change, FoldChange};
use crate::fold::{Issue, State, Wait};
use crate::limits::Timestamp;
use crate::place::{FoldAt, SweepAt, WorkerAt};
use crate::reply::{Abandon, Lease, Order, Rejection, Reply};
use crate::state::{Scheduler, Timer};
use crate::words::Ending;

/// Folds that are put aside before a worker gets one, or has to ask again.
const PUT_ASIDE: usize = 10_000;

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
        let entry = &self.workers[at.at()];
        if entry.is_draining() {
            return Ok(if entry.leases.is_empty() { Reply::Leave } else { Reply::Leases(Vec::new()) });
        }
        let room = if self.is_kept_out(at) { 0 } else { self.free_slots(at).min(count as usize) };
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
        for _ in 0..PUT_ASIDE {
            let mut steps = 0;
            let mut turns = self.ready.iter().map(|(_, _, _, sweep)| *sweep);
            let found =
                turns.find_map(|sweep| Some((sweep, self.candidate(now, sweep, worker, &mut steps)?)));
            self.steps += steps;
            let (sweep, fold) = found?;
            let obstacle = self.obstacle_of(&self.folds[fold.at()]);
            let presence = self.workers[worker.at()].presence.as_ref()?;
            let wants = &self.sweeps[sweep.at()];
            match presence
                .free_slot(&wants.resources, obstacle.floor)
                .filter(|_| self.opens(now, obstacle, presence, wants))
            {
                Some(slot) => {
                    self.servings += 1;
                    self.sweeps[sweep.at()].last_served = self.servings;
                    return Some(self.issue(now, fold, worker, slot, changes));
                }
                None => {
                    let obstacle = self.obstacle_place(obstacle);
                    self.set_wait(fold, Wait::PutAside(obstacle)); // not for this worker
                }
            }
        }
        self.supply += 1; // others wait to be heard; it asks again at once
        None
    }

    /// The first fold of a sweep that `worker` may have, as far as its queues know.
    fn candidate(&self, now: Timestamp, sweep: SweepAt, worker: WorkerAt, steps: &mut u64) -> Option<FoldAt> {
        *steps += 1;
        let sweep = &self.sweeps[sweep.at()];
        let presence = self.workers[worker.at()].presence.as_ref()?;
        presence.free_slot(&sweep.resources, 0)?;
        if !presence.lasts(now, true, || sweep.pace.p90()) {
            return None; // it has no time for any fold of this sweep
        }
        let position = sweep.queues.first_for(worker, |obstacle| {
            *steps += 1;
            let obstacle = self.fitting.obstacles.get(obstacle.at());
            obstacle.is_some_and(|obstacle| self.opens(now, *obstacle, presence, sweep))
        });
        sweep.folds.get(position? as usize).copied()
    }

    fn issue(
        &mut self,
        now: Timestamp,
        at: FoldAt,
        worker: WorkerAt,
        slot: u32,
        changes: &mut Vec<Change>,
    ) -> Lease {
        let term = self.limits.lease_term;
        let holder = &mut self.workers[worker.at()];
        holder.remembered = true;
        let fold = &mut self.folds[at.at()];
        fold.attempts.push(Issue { worker, ending: None });
        let (key, attempt) = (fold.key, fold.last_attempt());
        let (id, host) = (holder.id.clone(), holder.host.to_string());
        changes.push(Change::Fold(key, FoldChange::Issued { attempt, worker: id, host }));
        self.set_state(at, State::Leased { attempt, worker, slot, deadline: now.plus(term) });
        let trial = self.trials.get(&key.trial).map(|trial| trial.canonical.clone()).unwrap_or_default();
        Lease { fold: key, attempt, trial, term, fold_seconds: self.time_limit(at), slot }
    }

    /// The loosest time limit of the sweeps that want the fold; none if one of them has none.
    fn time_limit(&self, at: FoldAt) -> Option<u64> {
        let sweeps = self.sweeps_of(&self.folds[at.at()]);
        let trial = self.folds[at.at()].key.trial;
        let limits = sweeps.filter(|sweep| sweep.wants_trial(trial)).map(|sweep| sweep.limits.fold_seconds);
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
        let at = self.place_of(key).ok_or(Abandon::NeverIssued)?;
        let fold = &self.folds[at.at()];
        let issue = fold.issue(attempt).filter(|issue| issue.worker == worker).ok_or(Abandon::NeverIssued)?;
        match fold.state {
            State::Finished { .. } => return Err(Abandon::Finished),
            State::Failed(_) => return Err(Abandon::Failed),
            State::Leased { attempt: current, .. } if current == attempt => {
                self.renew(now, at);
                return Ok(());
            }
            State::Leased { .. } => return Err(Abandon::Superseded),
            State::Pending(_) => {}
        }
        let presumed =
            matches!(issue.ending, Some(Ending::Abandoned | Ending::Failed(FailureClass::WorkerLost)));
        if !self.is_wanted(fold) {
            Err(Abandon::NotWanted)
        } else if attempt == fold.last_attempt() && self.free_slots(worker) == 0 {
            Err(Abandon::NoSlot)
        } else if attempt != fold.last_attempt() || !presumed {
            Err(Abandon::Superseded)
        } else {
            self.revive(now, at, worker, attempt, changes);
            Ok(())
        }
    }

    fn renew(&mut self, now: Timestamp, at: FoldAt) {
        let until = now.plus(self.limits.lease_term);
        if let State::Leased { deadline, .. } = &mut self.folds[at.at()].state {
            self.timers.remove(&(*deadline, Timer::Lease(at)));
            *deadline = until;
            self.timers.insert((until, Timer::Lease(at)));
        }
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
        let slot = self.any_free_slot(worker);
        let fold = &mut self.folds[at.at()];
        if let Some(issue) = fold.issue_mut(attempt) {
            issue.ending = None;
        }
        self.workers[worker.at()].unfinished = false;
        changes.push(Change::Fold(fold.key, FoldChange::Revived { attempt }));
        self.set_state(at, State::Leased { attempt, worker, slot, deadline });
    }

    /// Whoever does not come although a tick is due stood still: a stopped process, a frozen machine, a slow disk, a long
    /// submission. What workers said meanwhile is yet to be read, so everybody gets a fresh term before anybody is
    /// judged, as after a restart.
    pub(crate) fn notice_standstill(&mut self, now: Timestamp) {
        let silence = now.since(std::mem::replace(&mut self.awake, now));
        if silence <= self.limits.standstill || self.timers.is_empty() {
            return;
        }
        self.reunion = now.plus(self.limits.lease_term);
        let timers: Vec<Timer> = self.timers.iter().map(|(_, timer)| *timer).collect();
        for timer in timers {
            match timer {
                Timer::Lease(at) => self.renew(now, at),
                Timer::Worker(at) => self.set_worker_deadline(at, self.reunion),
                Timer::Held(_) | Timer::Host(_) | Timer::Drain(_) => {}
            }
        }
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
                Timer::Held(at) => self.set_state(at, State::Pending(Wait::Nothing)),
                Timer::Worker(at) => self.worker_lost(now, at, changes),
                Timer::Host(at) => self.release(at, changes),
                Timer::Drain(at) => self.drain_forgotten(at, changes),
            }
            self.timers.remove(&(deadline, timer)); // done above; stays done if a book was ever wrong
        }
        Reply::Done
    }

    fn free_slots(&self, worker: WorkerAt) -> usize {
        self.workers[worker.at()].presence.as_ref().map_or(0, |presence| presence.free.len())
    }

    /// The number of a free slot; to be asked only if there is one.
    fn any_free_slot(&self, worker: WorkerAt) -> u32 {
        let presence = self.workers[worker.at()].presence.as_ref();
        presence.and_then(|presence| presence.free.first().copied()).unwrap_or(0)
    }
}
