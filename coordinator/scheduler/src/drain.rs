//! Draining: workers that finish what they train and get nothing new, because an operator said so. It is a stored
//! fact, so a restart of the coordinator does not give them work again. It ends when somebody takes it back, when the
//! worker says goodbye, or when the worker has been silent for so long that it will not come back.

use togl_sweeps::WorkerId;

use crate::change::{Change, FleetChange};
use crate::limits::Timestamp;
use crate::place::WorkerAt;
use crate::reply::{Rejection, Reply};
use crate::state::{Draining, Scheduler, Timer};

impl Scheduler {
    pub(crate) fn drain(&mut self, worker: &WorkerId, changes: &mut Vec<Change>) -> Result<Reply, Rejection> {
        let at = self.present(worker)?;
        let entry = &mut self.workers[at.at()];
        if !entry.is_draining() {
            entry.draining = Draining::Here;
            let host = entry.host.to_string();
            changes.push(Change::Fleet(FleetChange::Drained { worker: worker.clone(), host }));
        }
        self.revision += 1;
        self.supply += 1; // if it waits for leases, it hears now that it may leave
        Ok(Reply::Done)
    }

    /// Takes a drain back, also that of a worker that is not here at the moment.
    pub(crate) fn undrain(
        &mut self,
        worker: &WorkerId,
        changes: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        let known = self.by_worker.get(worker).copied();
        let at = match known.filter(|at| self.workers[at.at()].is_draining()) {
            Some(at) => at,
            None => self.present(worker)?,
        };
        self.release_host_of(at, changes);
        self.workers[at.at()].needs_upgrade = false;
        self.end_drain(at, changes);
        self.vacate(at);
        self.revision += 1;
        self.supply += 1;
        Ok(Reply::Done)
    }

    /// From now on the worker gets work again.
    pub(crate) fn end_drain(&mut self, at: WorkerAt, changes: &mut Vec<Change>) {
        self.forget_absence(at);
        let entry = &mut self.workers[at.at()];
        if entry.is_draining() {
            entry.draining = Draining::No;
            changes.push(Change::Fleet(FleetChange::Undrained { worker: entry.id.clone() }));
        }
    }

    /// A worker that went silent may come back.
    pub(crate) fn remember_drain(&mut self, now: Timestamp, at: WorkerAt) {
        if self.workers[at.at()].is_draining() {
            self.forget_absence(at);
            let until = now.plus(self.limits.drain_memory);
            self.workers[at.at()].draining = Draining::Gone { until };
            self.timers.insert((until, Timer::Drain(at)));
        }
    }

    /// A worker is back, and goes on draining if it did so before.
    pub(crate) fn keep_draining(&mut self, at: WorkerAt) {
        if self.workers[at.at()].is_draining() {
            self.forget_absence(at);
            self.workers[at.at()].draining = Draining::Here;
        }
    }

    /// The worker did not come back for so long that its drain means nothing any more.
    pub(crate) fn drain_forgotten(&mut self, at: WorkerAt, changes: &mut Vec<Change>) {
        self.end_drain(at, changes);
        self.vacate(at);
    }

    fn forget_absence(&mut self, at: WorkerAt) {
        if let Draining::Gone { until } = self.workers[at.at()].draining {
            self.timers.remove(&(until, Timer::Drain(at)));
        }
    }
}
