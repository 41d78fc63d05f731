//! From what a store holds to a running scheduler, and back. Running leases get one fresh term, so that
//! workers that outlived the coordinator find their folds where they left them; quarantines and the memory of drained
//! workers start anew too, because times are not stored.

use togl_sweeps::{Attempt, FoldKey};

use crate::change::{SavedAttempt, SavedData, SavedFold, SavedState, Snapshot};
use crate::data::DataSet;
use crate::fold::{Fold, Issue, State, Wait};
use crate::limits::{Limits, Timestamp};
use crate::place::{FoldAt, SweepAt};
use crate::state::{Draining, Scheduler};
use crate::verdict::should_go_elsewhere;
use crate::words::{Ending, SweepSaved};

impl Scheduler {
    /// Starts from what a store holds. References to folds that the store does not hold are left out.
    pub fn restore(limits: Limits, snapshot: Snapshot, now: Timestamp) -> Self {
        let mut scheduler = Self::empty(limits);
        scheduler.awake = now;
        for (name, saved) in snapshot.data {
            scheduler.restore_data(&name, saved);
        }
        scheduler.trials.reserve(snapshot.trials.len());
        for (trial, canonical) in snapshot.trials {
            scheduler.add_trial(trial, canonical);
        }
        for (trial, bytes) in snapshot.floors {
            if let Some(trial) = scheduler.trials.get_mut(&trial) {
                trial.floor = bytes;
            }
        }
        scheduler.reserve(snapshot.folds.len());
        if !snapshot.folds.is_empty() {
            scheduler.reunion = now.plus(scheduler.limits.lease_term);
        }
        for (key, saved) in snapshot.folds {
            scheduler.restore_fold(now, key, saved);
        }
        for (worker, host) in snapshot.drains {
            let at = scheduler.enrol(&worker, &host);
            scheduler.workers[at.at()].draining = Draining::Here;
            scheduler.remember_drain(now, at);
        }
        for (host, reason) in snapshot.quarantines {
            scheduler.keep_out(now, &host.into(), reason);
        }
        let mut sweeps: Vec<SweepSaved> = snapshot.sweeps.into_values().collect();
        sweeps.sort_by_key(|sweep| sweep.order);
        for sweep in sweeps {
            scheduler.restore_sweep(sweep);
        }
        scheduler.settle_races(now, &mut Vec::new()); // what nobody wants was let go when it was stopped
        scheduler
    }

    fn restore_data(&mut self, name: &str, saved: SavedData) {
        let at = self.data.enrol(name);
        let data = &mut self.data.table[at.at()];
        data.digest = Some(saved.digest.into());
        data.dissent = saved.dissent.into_iter().map(|(fold, digest)| (fold, digest.into())).collect();
    }

    fn restore_fold(&mut self, now: Timestamp, key: FoldKey, saved: SavedFold) {
        let at = self.add_fold(key);
        self.folds[at.at()].forgiven = saved.forgiven;
        self.folds[at.at()].attempts.reserve_exact(saved.attempts.len());
        for (number, SavedAttempt { worker, host, ending, replicate }) in (1..).zip(saved.attempts) {
            let worker = self.enrol(&worker, &host);
            self.workers[worker.at()].remembered = true;
            self.folds[at.at()].attempts.push(Issue { worker, ending });
            if let Some(digest) = replicate {
                self.replicates.insert((at, Attempt(number)), digest);
            }
        }
        let state = self.restored_state(now, &self.folds[at.at()], saved.state);
        self.set_state(at, state);
    }

    fn restored_state(&self, now: Timestamp, fold: &Fold, saved: SavedState) -> State {
        let last = fold.attempts.last();
        match (saved, last) {
            (SavedState::Leased, Some(issue)) => {
                let deadline = now.plus(self.limits.lease_term);
                // Which slot it was is asked again when the worker is back.
                let slot = u32::try_from(self.workers[issue.worker.at()].leases.len()).unwrap_or(u32::MAX);
                State::Leased { attempt: fold.last_attempt(), worker: issue.worker, slot, deadline }
            }
            (SavedState::Finished { attempt, digest, score }, _) => {
                State::Finished { attempt, digest, score }
            }
            (SavedState::Failed(failure), _) => State::Failed(Box::new(failure)),
            (SavedState::Pending, Some(Issue { worker, ending: Some(Ending::Failed(class)) }))
                if fold.forgiven < fold.last_attempt().0 && should_go_elsewhere(*class) =>
            {
                let until = now.plus(self.limits.avoidance);
                State::Pending(Wait::Another { worker: *worker, until })
            }
            (SavedState::Pending | SavedState::Leased, _) => State::Pending(Wait::Nothing),
        }
    }

    fn restore_sweep(&mut self, saved: SweepSaved) {
        let at = self.add_sweep(&saved.name);
        let folds: Vec<FoldAt> = saved.folds.iter().filter_map(|key| self.place_of(key)).collect();
        let mut trials: Vec<_> = saved.folds.iter().map(|fold| fold.trial).collect();
        trials.sort_unstable();
        trials.dedup();
        let sweep = &mut self.sweeps[at.at()];
        sweep.yaml = saved.yaml;
        sweep.priority = saved.priority;
        sweep.limits = saved.limits;
        sweep.resources = saved.resources;
        sweep.race = saved.race;
        (sweep.state, sweep.note) = (saved.state, saved.note);
        sweep.trials = trials.len() as u64;
        self.link(at, folds);
    }

    /// What a store that was given every change holds now. Costs as much as a restore; for tests and backups.
    pub fn snapshot(&self) -> Snapshot {
        let sweeps = (0..self.sweeps.len()).map(|index| self.saved_sweep(SweepAt::next(index)));
        let floors = self.trials.iter().filter(|(_, trial)| trial.floor > 0);
        let folds = (0..).map(FoldAt).zip(self.folds.iter());
        let drains = self.workers.iter().filter(|worker| worker.is_draining());
        let quarantines = self.hosts.quarantines();
        Snapshot {
            sweeps: sweeps.map(|sweep| (sweep.name.clone(), sweep)).collect(),
            trials: self.trials.iter().map(|(id, trial)| (*id, trial.canonical.clone())).collect(),
            floors: floors.map(|(id, trial)| (*id, trial.floor)).collect(),
            data: self.data.table.iter().filter_map(saved_data).collect(),
            drains: drains.map(|worker| (worker.id.clone(), worker.host.to_string())).collect(),
            quarantines: quarantines.map(|(host, kept)| (host.to_owned(), kept.reason.clone())).collect(),
            folds: folds.map(|(at, fold)| (fold.key, self.saved_fold(at, fold))).collect(),
        }
    }

    fn saved_sweep(&self, at: SweepAt) -> SweepSaved {
        let sweep = &self.sweeps[at.at()];
        SweepSaved {
            name: sweep.name.clone(),
            order: at.0.into(),
            yaml: sweep.yaml.clone(),
            priority: sweep.priority,
            limits: sweep.limits.clone(),
            resources: sweep.resources.clone(),
            race: sweep.race.clone(),
            state: sweep.state,
            note: sweep.note.clone(),
            folds: sweep.folds.iter().map(|at| self.folds[at.at()].key).collect(),
            gathered: 0,
        }
    }

    fn saved_fold(&self, at: FoldAt, fold: &Fold) -> SavedFold {
        let state = match &fold.state {
            State::Pending(_) => SavedState::Pending,
            State::Leased { .. } => SavedState::Leased,
            State::Finished { attempt, digest, score } => {
                SavedState::Finished { attempt: *attempt, digest: *digest, score: *score }
            }
            State::Failed(failure) => SavedState::Failed(failure.as_ref().clone()),
        };
        let attempts = (1..).map(Attempt).zip(&fold.attempts).map(|(attempt, issue)| {
            let worker = &self.workers[issue.worker.at()];
            SavedAttempt {
                worker: worker.id.clone(),
                host: worker.host.to_string(),
                ending: issue.ending,
                replicate: self.replicates.get(&(at, attempt)).copied(),
            }
        });
        SavedFold { state, forgiven: fold.forgiven, attempts: attempts.collect() }
    }
}

fn saved_data(data: &DataSet) -> Option<(String, SavedData)> {
    let digest = data.digest.as_ref()?.to_string();
    let dissent = data.dissent.iter().map(|(fold, digest)| (*fold, digest.to_string())).collect();
    Some((data.name.to_string(), SavedData { digest, dissent }))
}
