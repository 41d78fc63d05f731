//! Sweeps come, change and go: submit, cancel, archive, pause, resume, retry, prioritise. Folds belong to no sweep, so a sweep
//! only gains and loses references; whoever has a result already is adopted as it is.

use std::collections::HashSet;
use std::sync::Arc;

use togl_sweeps::{FoldKey, SweepName, SweepSpec, TrialId, nearest};

use crate::books::Scheduler;
use crate::change::{Change, Ending, SweepSaved, SweepState};
use crate::event::Submission;
use crate::fold::{State, Wait};
use crate::limits::Timestamp;
use crate::omen::Omen;
use crate::place::{FoldAt, SweepAt};
use crate::queue::Sweep;
use crate::reply::{Rejection, Reply, Submitted};

impl Scheduler {
    pub(crate) fn submit(
        &mut self,
        now: Timestamp,
        mut submission: Submission,
        changes: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        let mut seen = HashSet::with_capacity(submission.folds.len());
        submission.folds.retain(|fold| seen.insert(*fold));
        self.check_submission(&submission)?;
        for (data, digest) in &submission.data_digests {
            self.expect_digest(data, digest, changes);
        }
        let known = self.by_name.get(&submission.name).copied();
        // Somebody may have said otherwise since; a file that says what it said keeps it so.
        if let Some(sweep) = known.map(|at| &self.sweeps[at.at()])
            && SweepSpec::priority_of(&sweep.yaml) == submission.priority
        {
            submission.priority = sweep.priority;
        }
        let before = known.map(|at| self.keys_of(at)).unwrap_or_default();
        let at = match known {
            Some(at) if self.is_unchanged(at, &submission) => at,
            _ => self.save_sweep(now, known, submission, &seen, &before, changes),
        };
        Ok(Reply::Submitted(self.submitted(at, &seen, &before)))
    }

    /// What a submission would change, without changing anything. None if there is no sweep of its name, or it is archived.
    pub fn preview(&self, submission: &Submission) -> Option<Submitted> {
        let at = *self.by_name.get(&submission.name)?;
        let folds: HashSet<FoldKey> = submission.folds.iter().copied().collect();
        let trials: HashSet<TrialId> = folds.iter().map(|fold| fold.trial).collect();
        let before = self.keys_of(at);
        let is_done = |fold: &&FoldKey| {
            let place = self.place_of(fold);
            place.is_some_and(|at| matches!(self.folds[at.at()].state, State::Finished { .. }))
        };
        Some(Submitted {
            trials: trials.len() as u64,
            folds: folds.len() as u64,
            already_done: folds.iter().filter(is_done).count() as u64,
            added: folds.difference(&before).count() as u64,
            removed: before.difference(&folds).count() as u64,
            ..Submitted::default()
        })
    }

    fn check_submission(&self, submission: &Submission) -> Result<(), Rejection> {
        let folds = submission.folds.len() as u64;
        if folds == 0 {
            return Err(Rejection::EmptySweep { name: submission.name.clone() });
        }
        if folds > submission.limits.max_folds {
            return Err(Rejection::TooManyFolds { folds, most: submission.limits.max_folds });
        }
        self.check_digests(&submission.data_digests)?;
        let sent: HashSet<TrialId> = submission.trials.iter().map(|(trial, _)| *trial).collect();
        let mut new = 0;
        for fold in &submission.folds {
            if !sent.contains(&fold.trial) && !self.trials.contains_key(&fold.trial) {
                return Err(Rejection::UnknownTrial { fold: *fold });
            }
            new += usize::from(self.place_of(fold).is_none());
        }
        if self.folds.len() + new > self.limits.max_folds {
            let (folds, most) = (self.folds.len() + new, self.limits.max_folds);
            return Err(Rejection::TooManyFolds { folds: folds as u64, most: most as u64 });
        }
        Ok(())
    }

    /// Whether submitting this again would change nothing. A cancelled sweep is revived by submitting it.
    fn is_unchanged(&self, at: SweepAt, new: &Submission) -> bool {
        let sweep = &self.sweeps[at.at()];
        let keys = sweep.folds.iter().map(|at| self.folds[at.at()].key);
        sweep.wants()
            && *sweep.yaml == *new.yaml
            && sweep.priority == new.priority
            && sweep.limits == new.limits
            && sweep.resources == new.resources
            && keys.eq(new.folds.iter().copied())
    }

    fn save_sweep(
        &mut self,
        now: Timestamp,
        known: Option<SweepAt>,
        submission: Submission,
        folds: &HashSet<FoldKey>,
        before: &HashSet<FoldKey>,
        changes: &mut Vec<Change>,
    ) -> SweepAt {
        let used: HashSet<TrialId> = folds.iter().map(|fold| fold.trial).collect();
        self.save_trials(submission.trials, &used, changes);
        self.reserve(folds.iter().filter(|key| self.place_of(key).is_none()).count());
        let places = submission.folds.iter().map(|key| self.find_or_add(*key, changes)).collect();
        let at = known.unwrap_or_else(|| self.add_sweep(&submission.name));
        let sweep = &mut self.sweeps[at.at()];
        sweep.yaml = submission.yaml.into();
        sweep.priority = submission.priority;
        sweep.limits = submission.limits;
        sweep.resources = submission.resources;
        sweep.omen = Omen::default();
        sweep.trials = used.len() as u64;
        if !sweep.wants() {
            (sweep.state, sweep.note) = (SweepState::Active, None);
        }
        changes.push(Change::SweepSaved(Box::new(SweepSaved {
            name: submission.name,
            order: at.0.into(),
            yaml: sweep.yaml.clone(),
            priority: sweep.priority,
            limits: sweep.limits.clone(),
            resources: sweep.resources.clone(),
            state: sweep.state,
            note: sweep.note.clone(),
            folds: submission.folds,
        })));
        self.link(at, places);
        let removed = before.difference(folds).filter_map(|key| self.place_of(key));
        let mut removed: Vec<FoldAt> = removed.collect();
        removed.sort_unstable();
        self.abandon_unwanted(now, &removed, changes);
        at
    }

    fn save_trials(
        &mut self,
        trials: Vec<(TrialId, String)>,
        used: &HashSet<TrialId>,
        changes: &mut Vec<Change>,
    ) {
        for (trial, canonical) in trials {
            if used.contains(&trial) && !self.trials.contains_key(&trial) {
                let canonical: Arc<str> = canonical.into();
                self.add_trial(trial, canonical.clone());
                changes.push(Change::TrialSaved { trial, canonical });
            }
        }
    }

    fn find_or_add(&mut self, key: FoldKey, changes: &mut Vec<Change>) -> FoldAt {
        self.place_of(&key).unwrap_or_else(|| {
            changes.push(Change::FoldAdded { fold: key });
            self.add_fold(key)
        })
    }

    pub(crate) fn add_sweep(&mut self, name: &SweepName) -> SweepAt {
        let at = SweepAt::next(self.sweeps.len());
        self.sweeps.push(Sweep::new(name.clone()));
        self.by_name.insert(name.clone(), at);
        at
    }

    fn keys_of(&self, at: SweepAt) -> HashSet<FoldKey> {
        self.sweeps[at.at()].folds.iter().map(|at| self.folds[at.at()].key).collect()
    }

    fn submitted(&self, at: SweepAt, after: &HashSet<FoldKey>, before: &HashSet<FoldKey>) -> Submitted {
        let sweep = &self.sweeps[at.at()];
        Submitted {
            trials: sweep.trials,
            folds: sweep.counts.total(),
            already_done: sweep.counts.finished,
            failed: sweep.counts.failed,
            added: after.difference(before).count() as u64,
            removed: before.difference(after).count() as u64,
        }
    }

    /// Nobody wants a sweep any more: it is cancelled or archived, and what runs for it alone is stopped.
    pub(crate) fn give_up(
        &mut self,
        now: Timestamp,
        name: &SweepName,
        state: SweepState,
        changes: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        let at = self.find_sweep(name)?;
        if self.sweeps[at.at()].state == SweepState::Archived && state != SweepState::Archived {
            return Err(Rejection::CancelledSweep { name: name.clone() });
        }
        self.set_sweep_state(at, state, None, changes);
        let folds = self.sweeps[at.at()].folds.clone();
        let abandoned = self.abandon_unwanted(now, &folds, changes);
        Ok(Reply::Cancelled { abandoned, finished: self.sweeps[at.at()].counts.finished })
    }

    pub(crate) fn pause(&mut self, name: &SweepName, changes: &mut Vec<Change>) -> Result<Reply, Rejection> {
        let at = self.find_running_sweep(name)?;
        if self.sweeps[at.at()].state != SweepState::Paused {
            self.set_sweep_state(at, SweepState::Paused, None, changes);
        }
        Ok(Reply::Done)
    }

    pub(crate) fn resume(&mut self, name: &SweepName, changes: &mut Vec<Change>) -> Result<Reply, Rejection> {
        let at = self.find_running_sweep(name)?;
        self.set_sweep_state(at, SweepState::Active, None, changes);
        self.sweeps[at.at()].omen = Omen::Ignored;
        Ok(Reply::Done)
    }

    pub(crate) fn prioritise(
        &mut self,
        name: &SweepName,
        priority: i32,
        changes: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        let at = self.find_running_sweep(name)?;
        let sweep = &mut self.sweeps[at.at()];
        if sweep.priority != priority {
            sweep.priority = priority;
            changes.push(Change::SweepPrioritySet { sweep: name.clone(), priority });
            self.relist(at);
        }
        Ok(Reply::Done)
    }

    pub(crate) fn retry(&mut self, name: &SweepName, changes: &mut Vec<Change>) -> Result<Reply, Rejection> {
        let sweep = self.find_running_sweep(name)?;
        let mut folds = 0;
        for at in self.sweeps[sweep.at()].folds.clone() {
            let fold = &mut self.folds[at.at()];
            if matches!(fold.state, State::Failed(_)) {
                fold.forgiven = fold.last_attempt().0;
                changes.push(Change::FoldRetried { fold: fold.key });
                self.set_state(at, State::Pending(Wait::Nothing));
                folds += 1;
            }
        }
        self.sweeps[sweep.at()].omen = Omen::default();
        Ok(Reply::Retried { folds })
    }

    /// Ends what runs among `folds` and is wanted by nobody; its worker hears of it with the next renewal.
    fn abandon_unwanted(&mut self, now: Timestamp, folds: &[FoldAt], changes: &mut Vec<Change>) -> u64 {
        let mut abandoned = 0;
        for at in folds {
            let fold = &self.folds[at.at()];
            if matches!(fold.state, State::Leased { .. }) && !self.is_wanted(fold) {
                self.end_attempt(now, *at, Ending::Abandoned, "no sweep wants it any more", changes);
                abandoned += 1;
            }
        }
        abandoned
    }

    fn find_running_sweep(&self, name: &SweepName) -> Result<SweepAt, Rejection> {
        let at = self.find_sweep(name)?;
        let wanted = self.sweeps[at.at()].wants();
        wanted.then_some(at).ok_or_else(|| Rejection::CancelledSweep { name: name.clone() })
    }

    fn find_sweep(&self, name: &SweepName) -> Result<SweepAt, Rejection> {
        self.by_name.get(name).copied().ok_or_else(|| {
            let near = nearest::nearest(name.as_str(), self.by_name.keys().map(SweepName::as_str));
            let hint = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`togl sweeps` lists them".to_owned(),
            };
            Rejection::UnknownSweep { name: name.clone(), hint }
        })
    }
}
