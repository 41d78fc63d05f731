//! From what a store holds to a running scheduler, and back. Running leases get one fresh term, so that
//! workers that outlived the coordinator find their folds where they left them.

use togl_sweeps::FoldKey;

use crate::books::{Fold, FoldAt, Issue, Scheduler, State, SweepAt};
use crate::change::{Ending, SweepSaved};
use crate::limits::{Limits, Timestamp};
use crate::snapshot::{SavedAttempt, SavedFold, SavedState, Snapshot};
use crate::verdict::would_happen_again;

impl Scheduler {
    /// Starts from what a store holds. References to folds that the store does not hold are left out.
    pub fn restore(limits: Limits, snapshot: Snapshot, now: Timestamp) -> Self {
        let mut scheduler = Self::empty(limits);
        scheduler.trials = snapshot.trials.into_iter().collect();
        scheduler.folds.reserve(snapshot.folds.len());
        scheduler.by_key.reserve(snapshot.folds.len());
        for (key, saved) in snapshot.folds {
            scheduler.restore_fold(now, key, saved);
        }
        let mut sweeps: Vec<SweepSaved> = snapshot.sweeps.into_values().collect();
        sweeps.sort_by_key(|sweep| sweep.order);
        for sweep in sweeps {
            scheduler.restore_sweep(sweep);
        }
        scheduler
    }

    fn restore_fold(&mut self, now: Timestamp, key: FoldKey, saved: SavedFold) {
        let mut fold = Fold::new(key);
        fold.forgiven = saved.forgiven;
        fold.attempts.reserve_exact(saved.attempts.len());
        for SavedAttempt { worker, host, ending, replicate } in saved.attempts {
            let worker = self.enrol(&worker, &host);
            self.workers[worker.at()].remembered = true;
            fold.attempts.push(Issue { worker, ending, replicate });
        }
        let state = self.restored_state(now, &fold, saved.state);
        let at = FoldAt::next(self.folds.len());
        self.by_key.insert(key, at);
        self.folds.push(fold);
        self.set_state(at, state);
    }

    fn restored_state(&self, now: Timestamp, fold: &Fold, saved: SavedState) -> State {
        let last = fold.attempts.last();
        match (saved, last) {
            (SavedState::Leased, Some(issue)) => {
                let deadline = now.plus(self.limits.lease_term);
                State::Leased { attempt: fold.last_attempt(), worker: issue.worker, deadline }
            }
            (SavedState::Finished { attempt, digest }, _) => State::Finished { attempt, digest },
            (SavedState::Failed(failure), _) => State::Failed(Box::new(failure)),
            (SavedState::Pending, Some(issue)) if fold.forgiven < fold.last_attempt().0 => {
                let avoids = matches!(issue.ending, Some(Ending::Failed(class)) if would_happen_again(class));
                State::Pending { avoid: avoids.then(|| (issue.worker, now.plus(self.limits.avoidance))) }
            }
            (SavedState::Pending | SavedState::Leased, _) => State::Pending { avoid: None },
        }
    }

    fn restore_sweep(&mut self, saved: SweepSaved) {
        let at = self.add_sweep(&saved.name);
        let folds: Vec<FoldAt> = saved.folds.iter().filter_map(|key| self.by_key.get(key).copied()).collect();
        let mut trials: Vec<_> = saved.folds.iter().map(|fold| fold.trial).collect();
        trials.sort_unstable();
        trials.dedup();
        let sweep = &mut self.sweeps[at.at()];
        sweep.yaml = saved.yaml;
        sweep.priority = saved.priority;
        sweep.limits = saved.limits;
        sweep.state = saved.state;
        sweep.trials = trials.len() as u64;
        self.link(at, folds);
    }

    /// What a store that was given every change holds now. Costs as much as a restore; for tests and backups.
    pub fn snapshot(&self) -> Snapshot {
        let sweeps = (0..self.sweeps.len()).map(|index| self.saved_sweep(SweepAt::next(index)));
        Snapshot {
            sweeps: sweeps.map(|sweep| (sweep.name.clone(), sweep)).collect(),
            trials: self.trials.iter().map(|(trial, canonical)| (*trial, canonical.clone())).collect(),
            folds: self.folds.iter().map(|fold| (fold.key, self.saved_fold(fold))).collect(),
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
            state: sweep.state,
            folds: sweep.folds.iter().map(|at| self.folds[at.at()].key).collect(),
        }
    }

    fn saved_fold(&self, fold: &Fold) -> SavedFold {
        let state = match &fold.state {
            State::Pending { .. } => SavedState::Pending,
            State::Leased { .. } => SavedState::Leased,
            State::Finished { attempt, digest } => {
                SavedState::Finished { attempt: *attempt, digest: *digest }
            }
            State::Failed(failure) => SavedState::Failed(failure.as_ref().clone()),
        };
        let attempts = fold.attempts.iter().map(|issue| {
            let worker = &self.workers[issue.worker.at()];
            SavedAttempt {
                worker: worker.id.clone(),
                host: worker.host.clone(),
                ending: issue.ending,
                replicate: issue.replicate,
            }
        });
        SavedFold { state, forgiven: fold.forgiven, attempts: attempts.collect() }
    }
}
