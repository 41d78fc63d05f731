//! Sweeps come, change and go: submit, cancel, archive, pause, resume, retry, prioritise. Folds belong to no sweep, so a sweep
//! only gains and loses references; whoever has a result already is adopted as it is. A large sweep comes in parts, between
//! which others are heard; it is there, or changed, with the last of them.

use std::collections::HashSet;
use std::sync::Arc;

use togl_sweeps::{FoldKey, SweepName, SweepSpec, TrialId, nearest};

use crate::change::{Change, FoldChange, SweepChange, TrialChange};
use crate::early_warning::EarlyWarning;
use crate::event::{Part, Submission};
use crate::fold::{State, Wait};
use crate::limits::Timestamp;
use crate::place::{FoldAt, SweepAt};
use crate::queue::Sweep;
use crate::reply::{Rejection, Reply, Submitted};
use crate::state::Scheduler;
use crate::words::{Ending, SweepSaved, SweepState};

/// The folds of a sweep that is being submitted, each once, in order.
#[derive(Debug)]
pub(crate) struct Arriving {
    sweep: SweepName,
    folds: Vec<FoldAt>,
    seen: HashSet<FoldAt>,
}

impl Arriving {
    fn new(sweep: SweepName, folds: usize) -> Self {
        Self { sweep, folds: Vec::with_capacity(folds), seen: HashSet::with_capacity(folds) }
    }
}

/// What a sweep has of some folds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compared {
    /// Changes when the sweep gets other folds.
    pub edition: u64,
    /// Folds that the sweep has.
    pub of: u64,
    /// How many of these it has.
    pub has: u64,
    /// How many of these are finished, whoever has them.
    pub finished: u64,
}

impl Compared {
    /// Both together, the later one last; none if the sweep got other folds in between.
    pub fn and(self, next: Self) -> Option<Self> {
        let (has, finished) = (self.has + next.has, self.finished + next.finished);
        (self.edition == next.edition).then_some(Self { has, finished, ..next })
    }
}

impl Scheduler {
    /// Takes in part of a large sweep. Its folds belong to no sweep yet, so nobody gets or sees them.
    pub(crate) fn gather(&mut self, part: Part, changes: &mut Vec<Change>) -> Result<Reply, Rejection> {
        let Part { sweep, from, all, trials, folds } = part;
        self.check_folds(&trials, &folds)?;
        let mut arriving = match from {
            0 => self.expect_arrival(sweep, usize::try_from(all).unwrap_or(usize::MAX))?,
            _ => self.take_arriving(&sweep, from)?,
        };
        let before = arriving.folds.len();
        self.take_in(&mut arriving, trials, &folds, changes);
        let folds = arriving.folds[before..].iter().map(|at| self.folds[at.at()].key).collect();
        changes.push(Change::Sweep(SweepChange::Gathered { from, folds }));
        let folds = arriving.folds.len() as u64;
        self.arriving = Some(arriving);
        Ok(Reply::Gathered { folds })
    }

    pub(crate) fn submit(
        &mut self,
        now: Timestamp,
        mut submission: Submission,
        changes: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        let mut seen = HashSet::with_capacity(submission.folds.len());
        submission.folds.retain(|fold| seen.insert(*fold));
        self.check_submission(&submission)?;
        let mut arriving = match submission.gathered {
            0 => Arriving::new(submission.name.clone(), submission.folds.len()),
            gathered => self.take_arriving(&submission.name, gathered)?,
        };
        for (data, digest) in &submission.data_digests {
            self.expect_digest(data, digest, changes);
        }
        let (trials, folds) = (std::mem::take(&mut submission.trials), std::mem::take(&mut submission.folds));
        self.take_in(&mut arriving, trials, &folds, changes);
        let places = arriving.folds;
        let known = self.by_name.get(&submission.name).copied();
        // Somebody may have said otherwise since; a file that says what it said keeps it so.
        if let Some(sweep) = known.map(|at| &self.sweeps[at.at()])
            && SweepSpec::priority_of(&sweep.yaml) == submission.priority
        {
            submission.priority = sweep.priority;
        }
        let before = known.map(|at| sorted(&self.sweeps[at.at()].folds)).unwrap_or_default();
        let after = sorted(&places);
        let (added, removed) = (without(&after, &before), without(&before, &after));
        let at = match known {
            Some(at) if self.is_unchanged(at, &submission, &places) => at,
            _ => self.save_sweep(known, submission, places, changes),
        };
        self.abandon_unwanted(now, &removed, changes);
        let sweep = &self.sweeps[at.at()];
        let counts = sweep.standing.counts;
        Ok(Reply::Submitted(Submitted {
            trials: sweep.trials,
            folds: counts.total(),
            already_done: counts.finished,
            failed: counts.failed,
            added: added.len() as u64,
            removed: removed.len() as u64,
        }))
    }

    /// What a sweep has of these folds, each of which is there once; none if there is no such sweep. Costs a lookup a fold,
    /// so a large submission is compared in parts.
    pub fn compare(&self, sweep: &SweepName, folds: &[FoldKey]) -> Option<Compared> {
        let at = *self.by_name.get(sweep)?;
        let Sweep { gathered: edition, standing, .. } = &self.sweeps[at.at()];
        let mut compared = Compared { edition: *edition, of: standing.counts.total(), ..Compared::default() };
        for fold in folds.iter().filter_map(|key| self.place_of(key)).map(|place| &self.folds[place.at()]) {
            compared.has += u64::from(fold.sweeps.iter().any(|(sweep, _)| *sweep == at));
            compared.finished += u64::from(matches!(fold.state, State::Finished { .. }));
        }
        Some(compared)
    }

    fn check_submission(&self, submission: &Submission) -> Result<(), Rejection> {
        let folds = submission.gathered + submission.folds.len() as u64;
        if folds == 0 {
            return Err(Rejection::EmptySweep { name: submission.name.clone() });
        }
        if folds > submission.limits.max_folds {
            return Err(Rejection::TooManyFolds { folds, most: submission.limits.max_folds });
        }
        self.check_digests(&submission.data_digests)?;
        self.check_folds(&submission.trials, &submission.folds)?;
        if submission.gathered > 0 && !self.has_arrived(&submission.name, submission.gathered) {
            return Err(Rejection::PartsMissing { name: submission.name.clone() });
        }
        Ok(())
    }

    /// Whether these folds can be taken in.
    fn check_folds(&self, trials: &[(TrialId, String)], folds: &[FoldKey]) -> Result<(), Rejection> {
        let sent: HashSet<TrialId> = trials.iter().map(|(trial, _)| *trial).collect();
        let mut new = 0;
        for fold in folds {
            if !sent.contains(&fold.trial) && !self.trials.contains_key(&fold.trial) {
                return Err(Rejection::UnknownTrial { fold: *fold });
            }
            new += usize::from(self.place_of(fold).is_none());
        }
        self.check_room(new)
    }

    /// Whether the store may hold so many folds more.
    fn check_room(&self, new: usize) -> Result<(), Rejection> {
        let (folds, most) = (self.folds.len().saturating_add(new), self.limits.max_folds);
        match folds > most {
            true => Err(Rejection::TooManyFolds { folds: folds as u64, most: most as u64 }),
            false => Ok(()),
        }
    }

    fn has_arrived(&self, sweep: &SweepName, folds: u64) -> bool {
        self.arriving.as_ref().is_some_and(|here| here.sweep == *sweep && here.folds.len() as u64 == folds)
    }

    /// Makes room for a large sweep, if there is any. What an earlier one of that name has is taken to be in it.
    fn expect_arrival(&mut self, sweep: SweepName, all: usize) -> Result<Arriving, Rejection> {
        let known = self.by_name.get(&sweep).map_or(0, |at| self.sweeps[at.at()].folds.len());
        let new = all.saturating_sub(known);
        self.check_room(new)?;
        self.reserve(new);
        Ok(Arriving::new(sweep, all))
    }

    /// The parts that came so far.
    fn take_arriving(&mut self, sweep: &SweepName, folds: u64) -> Result<Arriving, Rejection> {
        let here = if self.has_arrived(sweep, folds) { self.arriving.take() } else { None };
        here.ok_or_else(|| Rejection::PartsMissing { name: sweep.clone() })
    }

    /// Adds trials and folds that are new, and lists the folds.
    fn take_in(
        &mut self,
        arriving: &mut Arriving,
        trials: Vec<(TrialId, String)>,
        folds: &[FoldKey],
        changes: &mut Vec<Change>,
    ) {
        let used: HashSet<TrialId> = folds.iter().map(|fold| fold.trial).collect();
        self.save_trials(trials, &used, changes);
        self.reserve(folds.iter().filter(|key| self.place_of(key).is_none()).count());
        for key in folds {
            let at = self.find_or_add(*key, changes);
            if arriving.seen.insert(at) {
                arriving.folds.push(at);
            }
        }
    }

    /// Whether submitting this again would change nothing. A cancelled sweep is revived by submitting it.
    fn is_unchanged(&self, at: SweepAt, new: &Submission, folds: &[FoldAt]) -> bool {
        let sweep = &self.sweeps[at.at()];
        sweep.wants()
            && *sweep.yaml == *new.yaml
            && sweep.priority == new.priority
            && sweep.limits == new.limits
            && sweep.resources == new.resources
            && sweep.race == new.race
            && sweep.folds == folds
    }

    fn save_sweep(
        &mut self,
        known: Option<SweepAt>,
        submission: Submission,
        places: Vec<FoldAt>,
        changes: &mut Vec<Change>,
    ) -> SweepAt {
        let at = known.unwrap_or_else(|| self.add_sweep(&submission.name));
        let folds: Vec<FoldKey> = places.iter().map(|at| self.folds[at.at()].key).collect();
        let sweep = &mut self.sweeps[at.at()];
        sweep.yaml = submission.yaml.into();
        sweep.priority = submission.priority;
        sweep.limits = submission.limits;
        sweep.resources = submission.resources;
        sweep.race = submission.race;
        sweep.early_warning = EarlyWarning::default();
        sweep.trials = folds.iter().map(|fold| fold.trial).collect::<HashSet<_>>().len() as u64;
        if !sweep.wants() {
            (sweep.state, sweep.note) = (SweepState::Active, None);
        }
        let saved = SweepSaved {
            name: submission.name,
            order: at.0.into(),
            yaml: sweep.yaml.clone(),
            priority: sweep.priority,
            limits: sweep.limits.clone(),
            resources: sweep.resources.clone(),
            race: sweep.race.clone(),
            state: sweep.state,
            note: sweep.note.clone(),
            folds,
            gathered: submission.gathered,
        };
        changes.push(Change::Sweep(SweepChange::Saved(Box::new(saved))));
        self.link(at, places);
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
                changes.push(Change::Trial(trial, TrialChange::Saved(canonical)));
            }
        }
    }

    fn find_or_add(&mut self, key: FoldKey, changes: &mut Vec<Change>) -> FoldAt {
        self.place_of(&key).unwrap_or_else(|| {
            changes.push(Change::Fold(key, FoldChange::Added));
            self.add_fold(key)
        })
    }

    pub(crate) fn add_sweep(&mut self, name: &SweepName) -> SweepAt {
        let at = SweepAt::next(self.sweeps.len());
        self.sweeps.push(Sweep::new(name.clone()));
        self.by_name.insert(name.clone(), at);
        at
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
        let sweep = &self.sweeps[at.at()];
        let folds = sweep.places(&sweep.standing.running);
        let abandoned = self.abandon_unwanted(now, &folds, changes);
        Ok(Reply::Cancelled { abandoned, finished: self.sweeps[at.at()].standing.counts.finished })
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
        self.sweeps[at.at()].early_warning = EarlyWarning::Ignored;
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
            let sweep = name.clone();
            changes.push(Change::Sweep(SweepChange::PrioritySet { sweep, priority }));
            self.relist(at);
        }
        Ok(Reply::Done)
    }

    pub(crate) fn retry(&mut self, name: &SweepName, changes: &mut Vec<Change>) -> Result<Reply, Rejection> {
        let sweep = self.find_running_sweep(name)?;
        let failed = self.sweeps[sweep.at()].places(&self.sweeps[sweep.at()].standing.failed);
        for at in &failed {
            let fold = &mut self.folds[at.at()];
            fold.forgiven = fold.last_attempt().0;
            changes.push(Change::Fold(fold.key, FoldChange::Retried));
            self.set_state(*at, State::Pending(Wait::Nothing));
        }
        self.sweeps[sweep.at()].early_warning = EarlyWarning::default();
        Ok(Reply::Retried { folds: failed.len() as u64 })
    }

    /// Ends what runs among `folds` and is wanted by nobody; its worker hears of it with the next renewal.
    pub(crate) fn abandon_unwanted(
        &mut self,
        now: Timestamp,
        folds: &[FoldAt],
        changes: &mut Vec<Change>,
    ) -> u64 {
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

    pub(crate) fn find_sweep(&self, name: &SweepName) -> Result<SweepAt, Rejection> {
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

fn sorted(places: &[FoldAt]) -> Vec<FoldAt> {
    let mut places = places.to_vec();
    places.sort_unstable();
    places
}

/// Those of `all` that are not among `others`; both are in order.
fn without(all: &[FoldAt], others: &[FoldAt]) -> Vec<FoldAt> {
    all.iter().filter(|place| others.binary_search(place).is_err()).copied().collect()
}
