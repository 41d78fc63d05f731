//! What must hold after every event, whatever happened. Tests call it after each step; it looks at everything
//! and is slow. A failure here is a bug of this crate, never a peer's fault.

use std::collections::{BTreeSet, HashSet};

use togl_sweeps::race;

use crate::demand::Waiting;
use crate::fold::{Issue, State, Wait};
use crate::limits::Timestamp;
use crate::place::{FoldAt, HostAt, SweepAt, WorkerAt};
use crate::queue::Queues;
use crate::standing::Standing;
use crate::state::{Draining, Scheduler, Timer};
use crate::views::Counts;
use crate::words::SweepState;

/// An invariant that does not hold, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("broken invariant: {0}")]
pub struct BrokenInvariant(pub String);

type Checked = Result<(), BrokenInvariant>;

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(BrokenInvariant(what())) }
}

impl Scheduler {
    /// Checks that all parts of the state agree with each other.
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
        self.check_data()?;
        ensure(self.due.is_empty(), || "a look is due".to_owned())?;
        let mut totals = Counts::default();
        let mut waiting = Waiting::default();
        for fold in self.folds.iter() {
            *totals.of(&fold.state) += 1;
            waiting.enter(fold);
        }
        ensure(waiting == self.waiting, || "the folds that wait are counted wrong".to_owned())?;
        ensure(totals == self.totals, || "the totals are wrong".to_owned())?;
        let present = self.workers.iter().filter(|worker| worker.presence.is_some()).count();
        ensure(present == self.connected, || "the number of connected workers is wrong".to_owned())
    }

    fn check_fold(&self, at: FoldAt) -> Checked {
        let fold = &self.folds[at.at()];
        let say = |what: &str| format!("{}: {what}", fold.key.short());
        ensure(self.place_of(&fold.key) == Some(at), || say("its key leads elsewhere"))?;
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
                let open = |issue: &&Issue| issue.worker == *worker && issue.ending.is_none();
                ensure(fold.issue(*attempt).filter(open).is_some(), || say("its lease was never issued"))?;
                ensure(self.workers[worker.at()].leases.contains(&at), || say("its worker does not have it"))
            }
            State::Finished { attempt, .. } => {
                let own = fold.issue(*attempt).is_some() && !self.replicates.contains_key(&(at, *attempt));
                ensure(own, || say("its result is not its own"))
            }
            State::Pending(_) | State::Failed(_) => Ok(()),
        }
    }

    /// Whoever disagrees about data has a result.
    fn check_data(&self) -> Checked {
        for data in &self.data.table {
            for fold in data.dissent.keys() {
                let state = self.place_of(fold).map(|at| &self.folds[at.at()].state);
                ensure(matches!(state, Some(State::Finished { .. })), || {
                    format!("{}: it disagrees about {} and has no result", fold.short(), data.name)
                })?;
            }
        }
        Ok(())
    }

    fn check_sweep(&self, at: SweepAt) -> Checked {
        let sweep = &self.sweeps[at.at()];
        let say = |what: &str| format!("{}: {what}", sweep.name);
        let mut standing = Standing::default();
        let mut queues = Queues::default();
        for (position, fold) in (0..).zip(&sweep.folds) {
            let fold = &self.folds[fold.at()];
            ensure(fold.sweeps.contains(&(at, position)), || say("a fold does not know it"))?;
            standing.admit(position, fold);
            match sweep.has_stopped(fold.key.trial) {
                true => standing.stopped += u64::from(matches!(fold.state, State::Pending(_))),
                false => queues.enter(position, &fold.state),
            }
        }
        self.check_race(at)?;
        ensure(standing == sweep.standing, || say("its counts are wrong"))?;
        ensure(queues == sweep.queues, || say("its queues are wrong"))?;
        let serves = sweep.state == SweepState::Active && sweep.waiting() > 0;
        ensure(serves == sweep.listed.is_some(), || {
            say("it is served though it should not be, or the reverse")
        })
    }

    /// Stops are a function of stored results.
    fn check_race(&self, at: SweepAt) -> Checked {
        let sweep = &self.sweeps[at.at()];
        let mut stopped = HashSet::new();
        for (race, group) in
            sweep.race.iter().flat_map(|race| race.groups.iter().map(move |group| (race, group)))
        {
            let heat = race::run(race, group, |fold| self.outcome(fold));
            for (place, _, trial) in group.all().filter(|(place, rung, _)| heat.holds(*place, *rung)) {
                stopped.insert(trial);
                let same = sweep.why_stopped(trial).map(|stopped| stopped.look)
                    == heat.stop(place).map(|stop| stop.look);
                ensure(same, || format!("{}: {trial} is not stopped as its results say", sweep.name))?;
            }
        }
        let name = &sweep.name;
        ensure(stopped == sweep.stopped, || {
            format!("{name}: stopped are {:?}, not {stopped:?}", sweep.stopped)
        })
    }

    fn check_worker_entry(&self, at: WorkerAt) -> Checked {
        let worker = &self.workers[at.at()];
        let say = |what: &str| format!("{}: {what}", worker.id);
        let vacant = self.vacant.contains(&at);
        ensure(vacant != (self.by_worker.get(&worker.id) == Some(&at)), || say("its place is wrong"))?;
        let known = worker.remembered || worker.presence.is_some() || worker.is_draining();
        ensure(!(vacant && known), || say("it is here and gone"))?;
        let gone = match worker.draining {
            Draining::No => worker.presence.is_none(),
            Draining::Here => false,
            Draining::Gone { .. } => true,
        };
        ensure(gone == worker.presence.is_none(), || say("it drains and is not where it does so"))?;
        let mut busy = BTreeSet::new();
        for fold in &worker.leases {
            let state = &self.folds[fold.at()].state;
            let State::Leased { worker: holder, slot, .. } = state else {
                return ensure(false, || say("it has a lease that its fold does not know"));
            };
            ensure(*holder == at, || say("it has another worker's lease"))?;
            ensure(busy.insert(*slot), || say("two leases are on one slot"))?;
        }
        match &worker.presence {
            Some(presence) => {
                ensure(worker.leases.len() <= presence.info.slots as usize, || {
                    say("more leases than slots")
                })?;
                ensure(busy.is_disjoint(&presence.free), || say("a slot is free and busy"))?;
                busy.extend(&presence.free);
                ensure(busy.into_iter().eq(0..presence.info.slots), || say("a slot is neither free nor busy"))
            }
            None => Ok(()),
        }
    }

    fn expected_timers(&self) -> BTreeSet<(Timestamp, Timer)> {
        let folds = (0..).zip(self.folds.iter()).filter_map(|(index, fold)| match fold.state {
            State::Leased { deadline, .. } => Some((deadline, Timer::Lease(FoldAt(index)))),
            State::Pending(Wait::Another { until, .. }) => Some((until, Timer::Held(FoldAt(index)))),
            _ => None,
        });
        let workers = (0..).zip(&self.workers).filter_map(|(index, worker)| {
            let presence = worker.presence.as_ref()?;
            Some((presence.deadline, Timer::Worker(WorkerAt(index))))
        });
        let hosts = (0..).zip(&self.hosts.table).filter_map(|(index, host)| {
            host.quarantine.as_ref().map(|quarantine| (quarantine.until, Timer::Host(HostAt(index))))
        });
        let drains = (0..).zip(&self.workers).filter_map(|(index, worker)| match worker.draining {
            Draining::Gone { until } => Some((until, Timer::Drain(WorkerAt(index)))),
            Draining::No | Draining::Here => None,
        });
        folds.chain(workers).chain(hosts).chain(drains).collect()
    }
}
