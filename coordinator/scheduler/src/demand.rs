//! How many folds could start now if there were slots for them, by what they need: the one view that whoever starts
//! workers decides by, be it Slurm, Kubernetes or a person. Also how long folds of a sweep take, and whether a worker that
//! will not live for ever still has the time. Pending folds are counted by trial and by the sweeps that have them, so that
//! a look costs trials and workers and not folds, and a fold of several sweeps counts once. Reads the state, starts nobody.

use std::collections::{BTreeMap, HashMap};

use smallvec::SmallVec;
use togl_sweeps::blocks::{DeviceKind, Resources};
use togl_sweeps::{Capability, TrialId};

use crate::fold::{Fold, State};
use crate::limits::Timestamp;
use crate::place::{SweepAt, WorkerAt};
use crate::queue::Sweep;
use crate::state::{Presence, Scheduler};
use crate::words::SweepState;

/// Folds that could start now, and slots that are free for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Demand {
    /// By what they need, the most demanding first.
    pub shapes: Vec<FoldShape>,
    /// Free slots of workers that take folds, whether or not there is anything for them.
    pub free_slots: u64,
}

/// Folds that need the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldShape {
    /// The kind of device.
    pub device: DeviceKind,
    /// Bytes of memory, with what was learnt; 0 if any will do.
    pub memory: u64,
    /// Whether another worker can go on where one had to stop. Kernels begin anew.
    pub resumable: bool,
    /// Seconds that nine of ten finished folds of its sweep took at the most; none before the first, and forgotten when the
    /// coordinator restarts.
    pub p90_seconds: Option<u64>,
    /// How many could start now.
    pub folds: u64,
    /// Slots that are free for them; no slot counts for two shapes.
    pub free_slots: u64,
}

impl Demand {
    /// Slots that would be busy at once if somebody brought them.
    pub fn slots_wanted(&self) -> u64 {
        self.shapes.iter().map(FoldShape::slots_wanted).sum()
    }
}

impl FoldShape {
    /// Folds for which no slot is free.
    pub fn slots_wanted(&self) -> u64 {
        self.folds.saturating_sub(self.free_slots)
    }
}

/// The sweeps that have a fold.
type Members = SmallVec<[SweepAt; 2]>;

/// Pending folds by trial and by the sweeps that have them. A recount is equal to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting(HashMap<(TrialId, Members), u64>);

impl Waiting {
    /// A fold has come to its state, or to its sweeps.
    pub(crate) fn enter(&mut self, fold: &Fold) {
        if let Some(key) = key(fold) {
            *self.0.entry(key).or_default() += 1;
        }
    }

    /// A fold is about to leave its state, or its sweeps.
    pub(crate) fn leave(&mut self, fold: &Fold) {
        let Some(key) = key(fold) else { return };
        if let Some(count) = self.0.get_mut(&key) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.0.remove(&key);
            }
        }
    }
}

fn key(fold: &Fold) -> Option<(TrialId, Members)> {
    let waits = matches!(fold.state, State::Pending(_)) && !fold.sweeps.is_empty();
    waits.then(|| (fold.key.trial, fold.sweeps.iter().map(|(sweep, _)| *sweep).collect()))
}

/// How long the finished folds of a sweep took: counts by length, each step a quarter longer than the one before. In memory
/// only.
#[derive(Debug, Default)]
pub(crate) struct Pace(Vec<u64>);

impl Pace {
    /// A fold took so many seconds.
    pub(crate) fn note(&mut self, seconds: f64) {
        let step = lengths().position(|length| length as f64 >= seconds);
        let Some(step) = step else { return }; // longer than any machine lives, or no number
        if self.0.len() <= step {
            self.0.resize(step + 1, 0);
        }
        self.0[step] += 1;
    }

    /// What nine of ten took at the most.
    pub(crate) fn p90(&self) -> Option<u64> {
        let all: u64 = self.0.iter().sum();
        let mut shorter = 0;
        let step = self.0.iter().position(|count| {
            shorter += count;
            shorter > 0 && shorter * 10 >= all * 9
        });
        lengths().nth(step?)
    }
}

/// 1, 2, 3, 4, 5, 6, 7, 8, 10, ... seconds, up to some years.
fn lengths() -> impl Iterator<Item = u64> {
    let next = |length: &u64| Some((length + 1).max(length * 5 / 4));
    std::iter::successors(Some(1), next).take_while(|length| *length < 1 << 28)
}

/// What pending folds need, as far as it decides who can train them. The most demanding is the least, so that slots go to
/// those first that have the smaller choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Need {
    any_device: bool,
    device: DeviceKind,
    memory: std::cmp::Reverse<u64>,
    resumable: bool,
    seconds: std::cmp::Reverse<Option<u64>>,
    unread: u64,
    needs: Option<Capability>,
}

impl Scheduler {
    /// How many folds could start now if there were slots: those of active sweeps that nothing but a slot keeps from
    /// running. Paused, disputed and unwanted work is left out, and what no version of the worker can read.
    pub fn demand(&self, now: Timestamp) -> Demand {
        let mut folds: BTreeMap<Need, (u64, u64)> = BTreeMap::new();
        for ((trial, members), count) in &self.waiting.0 {
            if let Some(need) = self.need(trial, members) {
                folds.entry(need).or_default().0 += count;
            }
        }
        let free_slots = self.count_free(now, &mut folds);
        let mut demand = Demand { shapes: Vec::new(), free_slots };
        for (need, (folds, free_slots)) in folds {
            demand.add(need, folds, free_slots);
        }
        demand
    }

    /// What the pending folds of a trial that these sweeps have need; none if they could not start now.
    fn need(&self, trial: &TrialId, members: &[SweepAt]) -> Option<Need> {
        let id = *trial;
        let trial = self.trials.get(trial)?;
        if trial.data.is_some_and(|data| self.data.is_disputed(data)) || self.nobody_reads(trial.unread) {
            return None;
        }
        let active = members.iter().map(|at| &self.sweeps[at.at()]);
        let active = active.filter(|sweep| sweep.state == SweepState::Active && !sweep.has_stopped(id));
        let modest = |sweep: &&Sweep| (sweep.resources.device != DeviceKind::Any, sweep.resources.memory);
        let sweep = active.min_by_key(modest)?;
        let Resources { device, memory, .. } = sweep.resources;
        Some(Need {
            any_device: device == DeviceKind::Any,
            device,
            memory: std::cmp::Reverse(memory.unwrap_or(0).max(trial.floor)),
            resumable: trial.resumable,
            seconds: std::cmp::Reverse(sweep.pace.p90()),
            unread: trial.unread,
            needs: trial.needs,
        })
    }

    /// Whether every version of the worker program that was ever here has failed to read something.
    fn nobody_reads(&self, unread: u64) -> bool {
        unread != 0 && unread.count_ones() as usize >= self.fitting.versions.len()
    }

    /// Gives each free slot to the most demanding folds that it can train and that have none yet.
    fn count_free(&self, now: Timestamp, folds: &mut BTreeMap<Need, (u64, u64)>) -> u64 {
        let mut all = 0;
        for presence in self.takers() {
            for slot in presence.free.iter().filter_map(|slot| presence.slots.get(*slot as usize)) {
                all += 1;
                let taken = folds.iter_mut().find(|(need, (folds, free))| {
                    let wanted = Resources { device: need.device, memory: None };
                    free < folds
                        && slot.fits(&wanted, need.memory.0)
                        && need.unread & presence.version == 0
                        && presence.offers(need.needs)
                        && presence.lasts(now, need.resumable, || need.seconds.0)
                });
                if let Some((_, (_, free))) = taken {
                    *free += 1;
                }
            }
        }
        all
    }

    /// Workers that are given folds. Whether anybody is left is asked once, not once a worker.
    fn takers(&self) -> impl Iterator<Item = &Presence> {
        let here = (0..).map(WorkerAt).zip(&self.workers).filter_map(|(_, worker)| {
            let presence = worker.presence.as_ref().filter(|presence| !presence.closed)?;
            (!worker.is_draining() && !worker.needs_upgrade).then_some((worker, presence))
        });
        let sound: Vec<bool> = here.clone().map(|(worker, _)| self.objection_to(worker).is_none()).collect();
        let anybody =
            here.clone().zip(&sound).any(|((_, presence), sound)| *sound && !presence.slots.is_empty());
        // A quarantine is lifted while nobody else is left.
        here.zip(sound).filter(move |(_, sound)| *sound || !anybody).map(|((_, presence), _)| presence)
    }
}

impl Demand {
    /// Versions are of no concern to whoever starts workers: needs that differ in nothing else are one shape.
    fn add(&mut self, need: Need, folds: u64, free_slots: u64) {
        let shape = FoldShape {
            device: need.device,
            memory: need.memory.0,
            resumable: need.resumable,
            p90_seconds: need.seconds.0,
            folds: 0,
            free_slots: 0,
        };
        let same = |known: &FoldShape| FoldShape { folds: 0, free_slots: 0, ..known.clone() } == shape;
        if !self.shapes.last().is_some_and(same) {
            self.shapes.push(shape);
        }
        if let Some(shape) = self.shapes.last_mut() {
            shape.folds += folds;
            shape.free_slots += free_slots;
        }
    }
}

impl Presence {
    /// Whether this worker lives long enough for a fold that takes about so many seconds. One that somebody else can go on
    /// with needs no time; of one whose length nobody knows yet the first attempt will tell.
    pub(crate) fn lasts(
        &self,
        now: Timestamp,
        resumable: bool,
        seconds: impl FnOnce() -> Option<u64>,
    ) -> bool {
        let Some(until) = self.until else { return true };
        let left = until.since(now);
        let begins_anew = !(resumable && self.info.moves_checkpoints);
        match seconds().filter(|_| begins_anew) {
            Some(seconds) => needed(seconds) <= left,
            None => left > 0,
        }
    }
}

/// Milliseconds that a worker must have left for a fold of a sweep of which nine of ten take so many seconds: half as much
/// again, and two minutes for reading data and for machines that are slower.
fn needed(seconds: u64) -> u64 {
    seconds.saturating_mul(1_500).saturating_add(120_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_of_ten_folds_took_no_longer_than_said_and_a_quarter_more_at_the_most() {
        let mut pace = Pace::default();
        assert_eq!(pace.p90(), None);
        for seconds in 1..=100 {
            pace.note(f64::from(seconds));
        }
        let p90 = pace.p90().unwrap();
        assert!((90..=90 * 5 / 4).contains(&p90), "{p90}");
        pace.note(f64::NAN);
        pace.note(f64::INFINITY);
        assert_eq!(pace.p90(), Some(p90), "what is no length says nothing");
    }
}
