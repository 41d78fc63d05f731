//! Races of sweeps: which trials a sweep wants no more folds of. What makes a trial clearly worse is `togl_sweeps::race`; here it is
//! kept in step with results. Stops are a function of stored results and are not stored themselves (docs/adr/0024). A fold that
//! ends costs a count; a look costs what it compares; only what changes under a look already made starts its group anew. A halving
//! is such a race over rungs, whose later rungs are trials that nobody wants before their turn (docs/adr/0025).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use togl_sweeps::race::{FoldStanding, Heat, Race, RaceGroup, SplitScores, Stop};
use togl_sweeps::{FoldKey, TrialId};

use crate::change::Change;
use crate::fold::State;
use crate::limits::Timestamp;
use crate::place::{FoldAt, SweepAt};
use crate::queue::Sweep;
use crate::state::Scheduler;

/// The race of one sweep on its way.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) race: Arc<Race>,
    /// One for each group.
    heats: Vec<Running>,
    /// The group of a trial, its place there, and its rung.
    places: HashMap<TrialId, (usize, usize, usize)>,
}

#[derive(Debug)]
struct Running {
    heat: Heat,
    /// Folds that the next look waits for.
    missing: u64,
    /// Whether something changed that a look has seen.
    outdated: bool,
}

/// A trial that is stopped, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrialStop {
    /// Which trial.
    pub trial: TrialId,
    /// Splits that were compared, or rungs of a halving.
    pub look: u32,
    /// Splits, or rungs, that there are.
    pub of: u32,
    /// Which trial was better; none if a fold failed.
    pub leader: Option<TrialId>,
    /// Whether it is a halving that stopped it.
    pub halving: bool,
}

impl Course {
    fn new(race: Arc<Race>) -> Self {
        let heats = race.groups.iter().map(|group| Self::heat(&race, group));
        let heats = heats.map(|heat| Running { heat, missing: 0, outdated: true }).collect();
        let mut places = HashMap::new();
        for (at, group) in race.groups.iter().enumerate() {
            places.extend(group.all().map(|(place, rung, trial)| (trial, (at, place, rung))));
        }
        Self { race, heats, places }
    }

    fn heat(race: &Race, group: &RaceGroup) -> Heat {
        Heat::new(race.terms, group.trials.len(), group.stages())
    }

    /// A fold came to an end, or is open again. Gives the group that has to be looked at, if one has to.
    fn note(&mut self, fold: &FoldKey, was_ended: bool, is_ended: bool) -> Option<usize> {
        let (at, trial, rung) = *self.places.get(&fold.trial)?;
        let group = &self.race.groups[at];
        let has = |(split, seeds): &(u32, Vec<u64>)| *split == fold.split && seeds.contains(&fold.seed);
        let split = group.splits.iter().position(has)?;
        let Running { heat, missing, outdated } = &mut self.heats[at];
        let split = u32::try_from(if group.is_halving() { rung } else { split }).unwrap_or(u32::MAX);
        if heat.stop(trial).is_some_and(|stop| split >= stop.look) || split > heat.looks() {
            return None; // no look has seen it, and the next one does not want it
        }
        if split < heat.looks() {
            *outdated = true;
            return Some(at);
        }
        match (was_ended, is_ended) {
            (false, true) => *missing = missing.saturating_sub(1),
            (true, false) => *missing += 1,
            (false, false) | (true, true) => {}
        }
        (*missing == 0).then_some(at)
    }

    /// Makes the looks that are due. Gives the trials that nobody wants from now on, and those that are wanted again or at last.
    fn go_on(
        &mut self,
        at: usize,
        stopped: &HashSet<TrialId>,
        outcome: impl Fn(&FoldKey) -> FoldStanding,
    ) -> (Vec<TrialId>, Vec<TrialId>) {
        let (group, by) = (&self.race.groups[at], self.race.by);
        let Running { heat, missing, outdated } = &mut self.heats[at];
        if std::mem::take(outdated) {
            *heat = Self::heat(&self.race, group);
        }
        while !heat.is_over() {
            let split = heat.looks() as usize;
            let folds = heat.live().flat_map(|trial| group.folds(trial, split));
            *missing = folds.filter(|fold| outcome(fold) == FoldStanding::Open).count() as u64;
            if *missing > 0 || heat.live().next().is_none() {
                break;
            }
            let of = |trial: usize| group.ended(by, trial, split, &outcome);
            heat.look(|trial| of(trial).unwrap_or(SplitScores::Failed)); // nothing is open
        }
        let changed = |to: bool| {
            let changes = |(place, rung, trial): &(usize, usize, TrialId)| {
                stopped.contains(trial) != to && heat.holds(*place, *rung) == to
            };
            group.all().filter(changes).map(|(_, _, trial)| trial).collect()
        };
        (changed(true), changed(false))
    }

    /// Why a trial is stopped, if it is.
    fn stopped(&self, trial: TrialId) -> Option<TrialStop> {
        let (at, place, _) = *self.places.get(&trial)?;
        let Stop { look, leader } = self.heats[at].heat.stop(place)?;
        let group = &self.race.groups[at];
        let halving = group.is_halving();
        let of = u32::try_from(group.stages()).unwrap_or(u32::MAX);
        // What was better was so on the rung that was looked at.
        let rung = if halving { look as usize - 1 } else { 0 };
        Some(TrialStop { trial, look, of, leader: leader.map(|leader| group.on_rung(leader, rung)), halving })
    }

    /// The rung that a trial waits for, and how many there are, if it waits.
    fn waits(&self, trial: TrialId) -> Option<(u32, u32)> {
        let (at, place, rung) = *self.places.get(&trial)?;
        let heat = &self.heats[at].heat;
        let rungs = u32::try_from(self.race.groups[at].stages()).unwrap_or(u32::MAX);
        (heat.stop(place).is_none() && heat.holds(place, rung)).then(|| (heat.looks() + 1, rungs))
    }

    /// Who is stopped: each with the first of its trials that are not trained.
    fn all_stopped(&self) -> impl Iterator<Item = TrialId> + '_ {
        self.race.groups.iter().zip(&self.heats).flat_map(|(group, running)| {
            (0..group.trials.len()).filter_map(move |place| {
                let stop = running.heat.stop(place)?;
                Some(group.on_rung(place, if group.is_halving() { stop.look as usize } else { 0 }))
            })
        })
    }

    /// All folds of a trial.
    fn folds(&self, trial: TrialId) -> Vec<FoldKey> {
        let Some((at, place, rung)) = self.places.get(&trial).copied() else { return Vec::new() };
        let group = &self.race.groups[at];
        let stages = if group.is_halving() { rung..rung + 1 } else { 0..group.stages() };
        stages.flat_map(|stage| group.folds(place, stage)).collect()
    }
}

/// Whether a fold will not change by itself any more.
pub(crate) fn is_ended(state: &State) -> bool {
    match state {
        State::Finished { .. } | State::Failed(_) => true,
        State::Pending(_) | State::Leased { .. } => false,
    }
}

impl Scheduler {
    /// The trials of a sweep that its race has stopped, in the order of the groups.
    pub fn stopped(&self, sweep: &togl_sweeps::SweepName) -> Vec<TrialStop> {
        let Some(at) = self.by_name.get(sweep) else { return Vec::new() };
        let course = self.sweeps[at.at()].course.as_deref();
        let trials = course.into_iter().flat_map(Course::all_stopped);
        trials.filter_map(|trial| self.sweeps[at.at()].why_stopped(trial)).collect()
    }

    /// A sweep has other folds, or another race: all of it is looked at anew at the end of the event.
    pub(crate) fn begin_race(&mut self, at: SweepAt) {
        self.due.retain(|(sweep, _)| *sweep != at);
        let sweep = &mut self.sweeps[at.at()];
        sweep.course = sweep.race.clone().map(|race| Box::new(Course::new(race)));
        let groups = sweep.course.as_ref().map_or(0, |course| course.heats.len());
        self.due.extend((0..groups).map(|group| (at, group)));
    }

    /// A fold has changed its state.
    pub(crate) fn note_for_races(&mut self, at: FoldAt, was_ended: bool) {
        let fold = &self.folds[at.at()];
        let is_ended = is_ended(&fold.state);
        if !was_ended && !is_ended {
            return;
        }
        for (sweep, _) in &fold.sweeps {
            let course = self.sweeps[sweep.at()].course.as_mut();
            let due = course.and_then(|course| course.note(&fold.key, was_ended, is_ended));
            self.due.extend(due.map(|group| (*sweep, group)));
        }
    }

    /// Makes the looks that are due, at the end of every event.
    pub(crate) fn settle_races(&mut self, now: Timestamp, changes: &mut Vec<Change>) {
        while let Some((sweep, group)) = self.due.pop_first() {
            let Some(mut course) = self.sweeps[sweep.at()].course.take() else { continue };
            let stopped = &self.sweeps[sweep.at()].stopped;
            let (stopped, revived) = course.go_on(group, stopped, |fold| self.outcome(fold));
            let folds =
                |trials: &[TrialId]| trials.iter().map(|trial| (*trial, course.folds(*trial))).collect();
            let (stopped, revived): (Vec<_>, Vec<_>) = (folds(&stopped), folds(&revived));
            self.sweeps[sweep.at()].course = Some(course);
            for (trial, folds) in revived {
                self.set_stopped(sweep, trial, &folds, false);
            }
            for (trial, folds) in stopped {
                let places = self.set_stopped(sweep, trial, &folds, true);
                self.abandon_unwanted(now, &places, changes);
            }
        }
    }

    /// How a fold stands, for a race: the result that counts, and nothing that is kept beside it.
    pub(crate) fn outcome(&self, fold: &FoldKey) -> FoldStanding {
        match self.place_of(fold).map(|at| &self.folds[at.at()].state) {
            Some(State::Finished { score, .. }) => FoldStanding::Scored(*score),
            Some(State::Failed(_)) => FoldStanding::Failed,
            Some(State::Pending(_) | State::Leased { .. }) | None => FoldStanding::Open,
        }
    }

    /// A sweep wants no more folds of a trial, or wants them again. Moves them in the books of that sweep only.
    fn set_stopped(&mut self, at: SweepAt, trial: TrialId, folds: &[FoldKey], stopped: bool) -> Vec<FoldAt> {
        let places: Vec<FoldAt> = folds.iter().filter_map(|fold| self.place_of(fold)).collect();
        let sweep = &mut self.sweeps[at.at()];
        let position = |fold: &crate::fold::Fold| {
            fold.sweeps.iter().find(|(sweep, _)| *sweep == at).map(|(_, position)| *position)
        };
        for place in &places {
            let fold = &self.folds[place.at()];
            position(fold).into_iter().for_each(|position| sweep.leave(position, fold));
        }
        match stopped {
            true => _ = sweep.stopped.insert(trial),
            false => _ = sweep.stopped.remove(&trial),
        }
        for place in &places {
            let fold = &self.folds[place.at()];
            position(fold).into_iter().for_each(|position| sweep.enter(position, fold));
            self.touched.note(*place);
        }
        self.relist(at);
        places
    }
}

impl Sweep {
    /// Why the race has stopped a trial, if it has.
    pub(crate) fn why_stopped(&self, trial: TrialId) -> Option<TrialStop> {
        self.course.as_ref().filter(|_| self.has_stopped(trial))?.stopped(trial)
    }

    /// The rung of a halving that a trial waits for, and how many there are, if it waits.
    pub(crate) fn why_waiting(&self, trial: TrialId) -> Option<(u32, u32)> {
        self.course.as_ref().filter(|_| self.has_stopped(trial))?.waits(trial)
    }

    /// Whether the race has stopped a trial, or a halving does not want it yet.
    pub(crate) fn has_stopped(&self, trial: TrialId) -> bool {
        !self.stopped.is_empty() && self.stopped.contains(&trial)
    }

    /// Whether folds of a trial shall be trained for this sweep, now or after a pause.
    pub(crate) fn wants_trial(&self, trial: TrialId) -> bool {
        self.wants() && !self.has_stopped(trial)
    }
}
