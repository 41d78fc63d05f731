//! Bad hosts: a host whose failures succeed elsewhere is kept out for a while. A quarantine is a stored fact: it
//! survives a restart of the coordinator, starts anew then, and always ends. The evidence is in memory only.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use togl_sweeps::FailureClass;

use crate::books::{Scheduler, Timer, Worker};
use crate::change::{Change, Ending};
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
    pub(crate) quarantine: Option<Quarantine>,
}

/// A host that is kept out.
#[derive(Debug)]
pub(crate) struct Quarantine {
    pub(crate) until: Timestamp,
    /// For people.
    pub(crate) reason: Arc<str>,
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

    pub(crate) fn quarantine_of(&self, name: &str) -> Option<&Quarantine> {
        let host = self.places.get(name).and_then(|at| self.table.get(at.at()));
        host.and_then(|host| host.quarantine.as_ref())
    }

    /// Hosts that are kept out, and why.
    pub(crate) fn quarantines(&self) -> impl Iterator<Item = (&str, &Quarantine)> {
        self.places.keys().filter_map(|name| Some((&**name, self.quarantine_of(name)?)))
    }
}

/// Whether a host may be to blame for such a failure.
fn may_be_the_host(class: FailureClass) -> bool {
    use FailureClass::{Crashed, Data, Error, NotFinite, TimeLimit};
    matches!(class, Crashed | NotFinite | TimeLimit | Data | Error)
}

/// Why a host is kept out, for people.
fn reason(blames: u32, successes: u32) -> Arc<str> {
    format!("{blames} folds failed here and succeeded elsewhere, {successes} succeeded here").into()
}

impl Scheduler {
    /// A fold has its result from `winner`: hosts where it failed before are to blame for that.
    pub(crate) fn weigh_success(
        &mut self,
        now: Timestamp,
        at: FoldAt,
        winner: WorkerAt,
        changes: &mut Vec<Change>,
    ) {
        let host = self.workers[winner.at()].host.clone();
        let place = self.hosts.place(&host);
        self.hosts.table[place.at()].successes += 1;
        for blamed in self.blamed(&self.folds[at.at()], &host) {
            let place = self.hosts.place(&blamed);
            let entry = &mut self.hosts.table[place.at()];
            entry.blames += 1;
            let guilty = entry.blames >= self.limits.quarantine_after && entry.blames > entry.successes;
            if guilty && entry.quarantine.is_none() {
                let reason = reason(entry.blames, entry.successes);
                changes.push(Change::HostQuarantined { host: blamed.to_string(), reason: reason.clone() });
                self.keep_out(now, &blamed, reason);
                self.revision += 1;
            }
        }
    }

    /// Keeps a host out from now on.
    pub(crate) fn keep_out(&mut self, now: Timestamp, host: &Arc<str>, reason: Arc<str>) {
        let place = self.hosts.place(host);
        let until = now.plus(self.limits.quarantine);
        self.hosts.table[place.at()].quarantine = Some(Quarantine { until, reason });
        self.timers.insert((until, Timer::Host(place)));
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
    pub(crate) fn release(&mut self, place: HostAt, changes: &mut Vec<Change>) {
        let host = std::mem::take(&mut self.hosts.table[place.at()]);
        let Some(Quarantine { until, .. }) = host.quarantine else {
            self.hosts.table[place.at()] = host; // nothing to end, so the evidence stays
            return;
        };
        self.timers.remove(&(until, Timer::Host(place)));
        let name = self.hosts.places.iter().find(|(_, at)| **at == place).map(|(name, _)| name.to_string());
        changes.extend(name.map(|host| Change::HostReleased { host }));
        self.revision += 1;
        self.supply += 1;
    }

    pub(crate) fn release_host_of(&mut self, worker: WorkerAt, changes: &mut Vec<Change>) {
        if let Some(place) = self.hosts.places.get(&self.workers[worker.at()].host).copied() {
            self.release(place, changes);
        }
    }

    /// What speaks against giving folds to a worker, for people.
    pub(crate) fn objection_to(&self, worker: &Worker) -> Option<Arc<str>> {
        if worker.needs_upgrade {
            return Some(
                "it reports in a newer form than this coordinator can read; upgrade the coordinator".into(),
            );
        }
        self.hosts.quarantine_of(&worker.host).map(|quarantine| quarantine.reason.clone())
    }

    /// Whether a worker gets nothing new. A quarantine is lifted while nobody else is left to take folds.
    pub(crate) fn is_kept_out(&self, at: WorkerAt) -> bool {
        let worker = &self.workers[at.at()];
        let takes_folds = |worker: &Worker| {
            let here = worker.presence.as_ref().is_some_and(|p| !p.closed && !p.slots.is_empty());
            here && !worker.is_draining() && self.objection_to(worker).is_none()
        };
        worker.needs_upgrade
            || self.hosts.quarantine_of(&worker.host).is_some() && self.workers.iter().any(takes_folds)
    }
}
