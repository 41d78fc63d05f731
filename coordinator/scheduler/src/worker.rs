//! Workers come and go. A closed connection is not a dead worker: there is a grace to come back; silence
//! costs a lease term; a goodbye frees everything at once. What a worker runs is decided in `lease`.

use std::collections::HashSet;

use togl_sweeps::trial::NUMERICS;
use togl_sweeps::{Attempt, FailureClass, FoldKey, WorkerId};

use crate::change::Change;
use crate::event::WorkerInfo;
use crate::fit;
use crate::fold::State;
use crate::limits::Timestamp;
use crate::place::{FoldAt, WorkerAt};
use crate::reply::{Joined, Rejection, Reply};
use crate::state::{Draining, Presence, Scheduler, Timer, Worker};
use crate::words::Ending;

impl Scheduler {
    pub(crate) fn worker_joined(
        &mut self,
        now: Timestamp,
        worker: &WorkerId,
        info: WorkerInfo,
        running: &[(FoldKey, Attempt)],
        changes: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        self.check_worker(worker, &info)?;
        let at = self.enrol(worker, &info.host);
        self.sessions += 1;
        let session = self.sessions;
        if self.workers[at.at()].presence.is_none() {
            let in_hand = running.iter().any(|(fold, attempt)| self.has_issued(fold, *attempt, worker));
            self.note_come(now, at, in_hand, changes);
        }
        self.dismiss(at);
        self.keep_draining(at);
        let deadline = now.plus(self.limits.lease_term);
        self.timers.insert((deadline, Timer::Worker(at)));
        let (slots, free) = (fit::slots(&info), (0..info.slots).collect());
        let version = self.fitting.version(&info.code_version);
        self.fitting.see(&slots);
        let until = info.seconds_left.map(|seconds| now.plus(seconds.saturating_mul(1_000)));
        let presence = Presence { info, slots, free, version, session, closed: false, deadline, until };
        self.workers[at.at()].presence = Some(presence);
        self.connected += 1;
        self.revision += 1;
        self.requeue_unlisted(now, at, running, changes);
        self.seat(now, at, changes);
        let orders = self.orders(now, at, running, changes);
        Ok(Reply::Joined(Joined { session, lease_term: self.limits.lease_term, orders }))
    }

    fn check_worker(&self, worker: &WorkerId, info: &WorkerInfo) -> Result<(), Rejection> {
        if info.slots > self.limits.max_slots {
            let (slots, most) = (info.slots, self.limits.max_slots);
            return Err(Rejection::TooManySlots { worker: worker.clone(), slots, most });
        }
        if info.numerics != NUMERICS {
            let (theirs, ours) = (info.numerics, NUMERICS);
            return Err(Rejection::OtherNumerics { worker: worker.clone(), theirs, ours });
        }
        if self.connected >= self.limits.max_workers && self.present(worker).is_err() {
            return Err(Rejection::TooManyWorkers { most: self.limits.max_workers });
        }
        Ok(())
    }

    /// The place of a worker, made if it has none.
    pub(crate) fn enrol(&mut self, worker: &WorkerId, host: &str) -> WorkerAt {
        if let Some(at) = self.by_worker.get(worker) {
            return *at;
        }
        let entry = Worker {
            id: worker.clone(),
            host: host.into(),
            leases: Default::default(),
            remembered: false,
            draining: Draining::No,
            needs_upgrade: false,
            since: Timestamp::default(),
            fruitful: false,
            unfinished: false,
            presence: None,
        };
        let at = match self.vacant.pop() {
            Some(at) => {
                self.workers[at.at()] = entry;
                at
            }
            None => {
                self.workers.push(entry);
                WorkerAt::next(self.workers.len() - 1)
            }
        };
        self.by_worker.insert(worker.clone(), at);
        at
    }

    /// Leases that never reached the worker, or that it forgot.
    fn requeue_unlisted(
        &mut self,
        now: Timestamp,
        at: WorkerAt,
        running: &[(FoldKey, Attempt)],
        changes: &mut Vec<Change>,
    ) {
        let listed: HashSet<(FoldKey, Attempt)> = running.iter().copied().collect();
        let leases: Vec<FoldAt> = self.workers[at.at()].leases.iter().copied().collect();
        for fold_at in leases {
            let fold = &self.folds[fold_at.at()];
            if !listed.contains(&(fold.key, fold.last_attempt())) {
                let ending = Ending::Failed(FailureClass::Preempted);
                self.end_attempt(now, fold_at, ending, "the worker came back without it", changes);
            }
        }
    }

    /// Gives every lease of a worker that is back a slot of its own: the one it had, if it is there. Ends those
    /// for which there is none.
    fn seat(&mut self, now: Timestamp, at: WorkerAt, changes: &mut Vec<Change>) {
        let leases: Vec<FoldAt> = self.workers[at.at()].leases.iter().copied().collect();
        let mut standing = Vec::new();
        for fold in leases {
            let State::Leased { slot, .. } = self.folds[fold.at()].state else { continue };
            let taken = self.workers[at.at()].presence.as_mut().is_some_and(|here| here.free.remove(&slot));
            if !taken {
                standing.push(fold);
            }
        }
        for fold in standing {
            let presence = self.workers[at.at()].presence.as_mut();
            match (presence.and_then(|here| here.free.pop_first()), &mut self.folds[fold.at()].state) {
                (Some(free), State::Leased { slot, .. }) => *slot = free,
                _ => self.end_seatless(now, fold, changes),
            }
        }
    }

    fn end_seatless(&mut self, now: Timestamp, fold: FoldAt, changes: &mut Vec<Change>) {
        if let State::Leased { slot, .. } = &mut self.folds[fold.at()].state {
            *slot = u32::MAX; // its number may be another lease's by now
        }
        let ending = Ending::Failed(FailureClass::Preempted);
        self.end_attempt(now, fold, ending, "the worker has fewer slots than before", changes);
    }

    pub(crate) fn worker_disconnected(&mut self, now: Timestamp, worker: &WorkerId, session: u64) -> Reply {
        let grace = now.plus(self.limits.grace).max(self.reunion);
        if let Some((at, presence)) = self.presence_mut(worker)
            && presence.session == session
            && !presence.closed
        {
            presence.closed = true;
            self.set_worker_deadline(at, grace);
            self.revision += 1;
        }
        Reply::Done
    }

    pub(crate) fn worker_left(
        &mut self,
        now: Timestamp,
        worker: &WorkerId,
        session: u64,
        changes: &mut Vec<Change>,
    ) -> Reply {
        let at = self.by_worker.get(worker).copied();
        let is_last = |at: &WorkerAt| {
            let presence = self.workers[at.at()].presence.as_ref();
            presence.is_none_or(|presence| presence.session == session)
        };
        if let Some(at) = at.filter(is_last) {
            self.end_drain(at, changes);
            self.remove_worker(now, at, FailureClass::Preempted, "the worker left", changes);
        }
        Reply::Done
    }

    pub(crate) fn worker_lost(&mut self, now: Timestamp, at: WorkerAt, changes: &mut Vec<Change>) {
        let closed = self.workers[at.at()].presence.as_ref().is_some_and(|presence| presence.closed);
        let message = match closed {
            true => format!("its connection was lost for more than {} ms", self.limits.grace),
            false => format!("the worker was silent for {} ms", self.limits.lease_term),
        };
        self.remember_drain(now, at);
        self.remove_worker(now, at, FailureClass::WorkerLost, &message, changes);
    }

    fn remove_worker(
        &mut self,
        now: Timestamp,
        at: WorkerAt,
        class: FailureClass,
        message: &str,
        changes: &mut Vec<Change>,
    ) {
        let leases: Vec<FoldAt> = self.workers[at.at()].leases.iter().copied().collect();
        for fold in leases {
            self.end_attempt(now, fold, Ending::Failed(class), message, changes);
        }
        self.note_gone(now, at);
        self.dismiss(at);
        self.vacate(at);
        self.revision += 1;
        self.supply += 1; // whoever is left may be the last one, and is no longer kept out then
    }

    /// Gives the place of a worker away of which nothing needs to be known any more.
    pub(crate) fn vacate(&mut self, at: WorkerAt) {
        let worker = &self.workers[at.at()];
        let known = worker.remembered || worker.presence.is_some() || worker.is_draining();
        if !known && self.by_worker.get(&worker.id) == Some(&at) {
            self.by_worker.remove(&worker.id);
            self.vacant.push(at);
        }
    }

    /// Forgets that a worker is here.
    fn dismiss(&mut self, at: WorkerAt) {
        if let Some(presence) = self.workers[at.at()].presence.take() {
            self.timers.remove(&(presence.deadline, Timer::Worker(at)));
            self.connected -= 1;
        }
    }

    /// The place of a worker that is here.
    pub(crate) fn present(&self, worker: &WorkerId) -> Result<WorkerAt, Rejection> {
        let at = self.by_worker.get(worker).copied();
        at.filter(|at| self.workers[at.at()].presence.is_some())
            .ok_or_else(|| Rejection::UnknownWorker { worker: worker.clone() })
    }

    fn presence_mut(&mut self, worker: &WorkerId) -> Option<(WorkerAt, &mut Presence)> {
        let at = *self.by_worker.get(worker)?;
        Some((at, self.workers[at.at()].presence.as_mut()?))
    }

    /// A sign of life: the worker has a lease term from now, whatever became of its connection.
    pub(crate) fn heard_from(&mut self, now: Timestamp, at: WorkerAt) {
        if let Some(presence) = self.workers[at.at()].presence.as_mut() {
            self.revision += u64::from(presence.closed);
            presence.closed = false;
        }
        self.set_worker_deadline(at, now.plus(self.limits.lease_term));
    }

    pub(crate) fn set_worker_deadline(&mut self, at: WorkerAt, deadline: Timestamp) {
        if let Some(presence) = self.workers[at.at()].presence.as_mut() {
            self.timers.remove(&(presence.deadline, Timer::Worker(at)));
            presence.deadline = deadline;
            self.timers.insert((deadline, Timer::Worker(at)));
        }
    }
}
