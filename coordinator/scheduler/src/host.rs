//! Bad hosts: one whose failures succeed elsewhere is kept out for a while, and so is one whose workers die again and
//! again, shortly at first. A quarantine is a stored fact: it survives a restart of the coordinator, starts anew then,
//! and always ends. The evidence is in memory only.
//!
//! A worker that is gone has died only if another process takes its place: one that was cut off comes back with the folds
//! that it has in hand, so neither a network nor a coordinator that stood still can look like a death.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use togl_sweeps::FailureClass;

use crate::change::{Change, FleetChange};
use crate::fold::Fold;
use crate::limits::Timestamp;
use crate::place::{FoldAt, HostAt, WorkerAt};
use crate::state::{Scheduler, Timer, Worker};
use crate::words::Ending;

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
    /// Workers that died here one after the other, without a result in between.
    deaths: u32,
    /// The last one that was gone after a short life without a result, with folds in hand.
    fallen: Option<Fallen>,
    pub(crate) quarantine: Option<Quarantine>,
}

/// A worker that may have died.
#[derive(Debug)]
struct Fallen {
    worker: WorkerAt,
    /// Whether another one came in its place, so that it counts as a death.
    replaced: bool,
}

/// A host that is kept out.
#[derive(Debug)]
pub(crate) struct Quarantine {
    pub(crate) until: Timestamp,
    /// For people.
    pub(crate) reason: Arc<str>,
    /// Only for a moment, after which what is known about the host still counts. Not stored.
    passing: bool,
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

    /// Hosts whose quarantine is a stored fact, and why.
    pub(crate) fn quarantines(&self) -> impl Iterator<Item = (&str, &Quarantine)> {
        let kept_out = self.places.keys().filter_map(|name| Some((&**name, self.quarantine_of(name)?)));
        kept_out.filter(|(_, quarantine)| !quarantine.passing)
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
        let entry = &mut self.hosts.table[place.at()];
        entry.successes += 1;
        (entry.deaths, entry.fallen) = (0, None);
        if entry.quarantine.as_ref().is_some_and(|kept| kept.passing) {
            self.release(place, changes);
        }
        self.workers[winner.at()].fruitful = true;
        for blamed in self.blamed(&self.folds[at.at()], &host) {
            let place = self.hosts.place(&blamed);
            let entry = &mut self.hosts.table[place.at()];
            entry.blames += 1;
            let guilty = entry.blames >= self.limits.quarantine_after && entry.blames > entry.successes;
            if guilty && entry.quarantine.as_ref().is_none_or(|kept| kept.passing) {
                let reason = reason(entry.blames, entry.successes);
                self.quarantine(now, &blamed, reason, changes);
            }
        }
    }

    fn quarantine(&mut self, now: Timestamp, host: &Arc<str>, reason: Arc<str>, changes: &mut Vec<Change>) {
        let change = FleetChange::Quarantined { host: host.to_string(), reason: reason.clone() };
        changes.push(Change::Fleet(change));
        self.keep_out(now, host, reason);
    }

    /// Keeps a host out from now on.
    pub(crate) fn keep_out(&mut self, now: Timestamp, host: &Arc<str>, reason: Arc<str>) {
        let until = now.plus(self.limits.quarantine);
        self.hold_off(host, Quarantine { until, reason, passing: false });
    }

    fn hold_off(&mut self, host: &Arc<str>, quarantine: Quarantine) {
        let place = self.hosts.place(host);
        let until = quarantine.until;
        if let Some(before) = self.hosts.table[place.at()].quarantine.replace(quarantine) {
            self.timers.remove(&(before.until, Timer::Host(place)));
        }
        self.timers.insert((until, Timer::Host(place)));
        self.revision += 1;
    }

    /// A worker is gone. Whoever was here for long, brought a result or had nothing in hand did not die of anything.
    pub(crate) fn note_gone(&mut self, now: Timestamp, at: WorkerAt) {
        let worker = &self.workers[at.at()];
        if worker.unfinished && !worker.fruitful && now.since(worker.since) < self.limits.short_life {
            let place = self.hosts.place(&worker.host.clone());
            self.hosts.table[place.at()].fallen = Some(Fallen { worker: at, replaced: false });
        }
    }

    /// A worker is here that was not, perhaps with folds in hand that were given to it.
    pub(crate) fn note_come(
        &mut self,
        now: Timestamp,
        at: WorkerAt,
        in_hand: bool,
        changes: &mut Vec<Change>,
    ) {
        let worker = &mut self.workers[at.at()];
        (worker.since, worker.fruitful, worker.unfinished) = (now, false, false);
        let host = worker.host.clone();
        let Some(place) = self.hosts.places.get(&host) else { return };
        let entry = &mut self.hosts.table[place.at()];
        let Some(fallen) = &mut entry.fallen else { return };
        if in_hand {
            if fallen.worker == at {
                entry.deaths = entry.deaths.saturating_sub(fallen.replaced.into());
                entry.fallen = None; // it was cut off, no more
            }
        } else if !std::mem::replace(&mut fallen.replaced, true) {
            entry.deaths += 1;
            self.weigh_deaths(now, &host, changes);
        }
    }

    /// Back-off, then quarantine.
    fn weigh_deaths(&mut self, now: Timestamp, host: &Arc<str>, changes: &mut Vec<Change>) {
        let place = self.hosts.place(host);
        let Host { deaths, ref quarantine, .. } = self.hosts.table[place.at()];
        let Some(further) = deaths.checked_sub(2) else { return };
        if quarantine.as_ref().is_some_and(|kept| !kept.passing) {
            return;
        }
        let reason = format!("{deaths} workers died here one after the other, without a result in between");
        if deaths >= self.limits.most_deaths {
            self.quarantine(now, host, reason.into(), changes);
        } else {
            let wait = self.limits.back_off.saturating_mul(1 << further.min(20));
            let reason = format!("{reason}; it waits for {} s", wait.div_ceil(1000)).into();
            self.hold_off(host, Quarantine { until: now.plus(wait), reason, passing: true });
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
    pub(crate) fn release(&mut self, place: HostAt, changes: &mut Vec<Change>) {
        let host = &mut self.hosts.table[place.at()];
        let Some(Quarantine { until, passing, .. }) = host.quarantine.take() else { return };
        self.timers.remove(&(until, Timer::Host(place)));
        if !passing {
            *host = Host::default();
            let mut names = self.hosts.places.iter().filter(|(_, at)| **at == place);
            let released = names.next().map(|(name, _)| FleetChange::Released { host: name.to_string() });
            changes.extend(released.map(Change::Fleet));
        }
        self.revision += 1;
        self.supply += 1;
    }

    pub(crate) fn release_host_of(&mut self, worker: WorkerAt, changes: &mut Vec<Change>) {
        if let Some(place) = self.hosts.places.get(&self.workers[worker.at()].host).copied() {
            let host = &mut self.hosts.table[place.at()];
            (host.deaths, host.fallen) = (0, None);
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
