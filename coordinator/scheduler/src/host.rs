//! Bad hosts: a host whose failures succeed elsewhere is kept out for a while. Evidence is in memory only, so a
//! restart gives everybody a clean slate, and a quarantine always ends.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use togl_sweeps::FailureClass;

use crate::books::{Scheduler, Timer};
use crate::change::Ending;
use crate::fold::Fold;
use crate::limits::Timestamp;
use crate::place::{FoldAt, HostAt, WorkerAt};

/// What speaks for and against each host that ever had a fold.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    pub(crate) table: Vec<Host>,
    places: HashMap<Arc<str>, HostAt>,
}

#[derive(Debug, Default)]
pub(crate) struct Host {
    /// Folds that failed here and succeeded elsewhere.
    blames: u32,
    /// Folds that succeeded here.
    successes: u32,
    pub(crate) quarantined_until: Option<Timestamp>,
}

impl Hosts {
    fn place(&mut self, name: &Arc<str>) -> HostAt {
        let next = HostAt::next(self.table.len());
        let at = *self.places.entry(name.clone()).or_insert(next);
        if at == next {
            self.table.push(Host::default());
        }
        at
    }

    pub(crate) fn is_quarantined(&self, name: &str) -> bool {
        let host = self.places.get(name).and_then(|at| self.table.get(at.at()));
        host.is_some_and(|host| host.quarantined_until.is_some())
    }
}

/// Whether a host may be to blame for such a failure.
fn may_be_the_host(class: FailureClass) -> bool {
    use FailureClass::{Crashed, Data, Error, NotFinite, TimeLimit};
    matches!(class, Crashed | NotFinite | TimeLimit | Data | Error)
}

impl Scheduler {
    /// A fold has its result from `winner`: hosts where it failed before are to blame for that.
    pub(crate) fn weigh_success(&mut self, now: Timestamp, at: FoldAt, winner: WorkerAt) {
        let host = self.workers[winner.at()].host.clone();
        let place = self.hosts.place(&host);
        self.hosts.table[place.at()].successes += 1;
        for blamed in self.blamed(&self.folds[at.at()], &host) {
            let place = self.hosts.place(&blamed);
            let entry = &mut self.hosts.table[place.at()];
            entry.blames += 1;
            let guilty = entry.blames >= self.limits.quarantine_after && entry.blames > entry.successes;
            if guilty && entry.quarantined_until.is_none() {
                let until = now.plus(self.limits.quarantine);
                entry.quarantined_until = Some(until);
                self.timers.insert((until, Timer::Host(place)));
                self.revision += 1;
            }
        }
    }

    fn blamed(&self, fold: &Fold, winner: &str) -> BTreeSet<Arc<str>> {
        let failed = fold.counted().filter_map(|(_, issue)| match issue.ending {
            Some(Ending::Failed(class)) if may_be_the_host(class) => {
                Some(&self.workers[issue.worker.at()].host)
            }
            _ => None,
        });
        failed.filter(|host| ***host != *winner).cloned().collect()
    }

    /// A quarantine ends: with its time, or because the operator says so.
    pub(crate) fn release(&mut self, place: HostAt) {
        if let Some(until) = self.hosts.table[place.at()].quarantined_until {
            self.timers.remove(&(until, Timer::Host(place)));
            self.hosts.table[place.at()] = Host::default();
            self.revision += 1;
            self.supply += 1;
        }
    }

    pub(crate) fn release_host_of(&mut self, worker: WorkerAt) {
        if let Some(place) = self.hosts.places.get(&self.workers[worker.at()].host).copied() {
            self.release(place);
        }
    }

    /// Whether a worker gets nothing because of its host. Not so if nobody else is left to take folds.
    pub(crate) fn is_kept_out(&self, at: WorkerAt) -> bool {
        self.hosts.is_quarantined(&self.workers[at.at()].host)
            && self.workers.iter().any(|worker| {
                let takes =
                    worker.presence.as_ref().is_some_and(|p| !p.closed && !p.draining && !p.slots.is_empty());
                takes && !self.hosts.is_quarantined(&worker.host)
            })
    }
}
