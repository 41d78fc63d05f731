//! Which slot can train which fold: the kind of device and the memory that sweeps ask for, the memory that a
//! trial turned out to need, versions of the worker program that cannot read a trial, and data sets under
//! dispute. What is unknown about a slot is taken to fit: the attempt will tell.

use std::collections::BTreeMap;

use togl_sweeps::Capability;
use togl_sweeps::blocks::{DeviceKind, Resources};

use crate::change::{Change, TrialChange};
use crate::event::WorkerInfo;
use crate::fold::Fold;
use crate::limits::Timestamp;
use crate::place::{DataAt, FoldAt, ObstacleAt, WorkerAt};
use crate::queue::Sweep;
use crate::state::{Presence, Scheduler};

/// Versions of the worker program that are told apart; all further ones share the last bit.
const VERSIONS: usize = 64;

/// A device slot of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    /// None if the worker did not say, or said something new.
    kind: Option<DeviceKind>,
    /// In bytes; 0 if unknown.
    memory: u64,
}

/// Why not everybody may have a fold. Few different ones exist at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Obstacle {
    /// Bytes that it needs.
    pub(crate) floor: u64,
    /// Versions of the worker program that cannot read it.
    pub(crate) unread: u64,
    /// Its data set, if that is disputed.
    pub(crate) disputed: Option<DataAt>,
    /// Whether a worker can go on where another one had to stop; if not, one must have the time for all of it.
    pub(crate) resumable: bool,
    /// What a worker must offer to train it.
    pub(crate) needs: Option<Capability>,
}

/// What is known about devices and versions.
#[derive(Debug, Default)]
pub(crate) struct Fitting {
    pub(crate) obstacles: Vec<Obstacle>,
    places: BTreeMap<Obstacle, ObstacleAt>,
    pub(crate) versions: Vec<String>,
    /// The most memory seen by kind of device; `u64::MAX` once one did not say.
    seen: BTreeMap<u8, u64>,
}

impl Slot {
    /// Whether a fold of a sweep that asks for `wanted` and that needs `floor` bytes can be trained here.
    pub(crate) fn fits(self, wanted: &Resources, floor: u64) -> bool {
        let needed = wanted.memory.unwrap_or(0).max(floor);
        self.is_kind(wanted.device) && (self.memory == 0 || self.memory >= needed)
    }

    fn is_kind(self, wanted: DeviceKind) -> bool {
        wanted == DeviceKind::Any || self.kind.is_none_or(|kind| kind == wanted)
    }
}

/// The slots that a worker says it has.
pub(crate) fn slots(info: &WorkerInfo) -> Vec<Slot> {
    let slot = |number: usize| Slot {
        kind: info.devices.get(number).and_then(|device| {
            let word = device.split(':').next().unwrap_or_default();
            DeviceKind::from_word(word).filter(|kind| *kind != DeviceKind::Any)
        }),
        memory: info.memories.get(number).copied().unwrap_or(0),
    };
    (0..info.slots as usize).map(slot).collect()
}

impl Fitting {
    /// The bit of a version of the worker program.
    pub(crate) fn version(&mut self, name: &str) -> u64 {
        let known = self.versions.iter().position(|known| known == name);
        let number = known.unwrap_or_else(|| {
            if self.versions.len() < VERSIONS - 1 {
                self.versions.push(name.to_owned());
                self.versions.len() - 1
            } else {
                VERSIONS - 1
            }
        });
        1 << number
    }

    pub(crate) fn see(&mut self, slots: &[Slot]) {
        for slot in slots {
            let memory = if slot.memory == 0 { u64::MAX } else { slot.memory };
            let seen = self.seen.entry(kind_number(slot.kind)).or_default();
            *seen = memory.max(*seen);
        }
    }

    /// The most memory of a device that a sweep would take, as far as was ever seen.
    fn most_memory(&self, wanted: DeviceKind) -> u64 {
        let fits = |kind: u8| wanted == DeviceKind::Any || kind == 0 || kind == kind_number(Some(wanted));
        let seen = self.seen.iter().filter(|(kind, _)| fits(**kind)).map(|(_, memory)| *memory);
        seen.max().unwrap_or(0)
    }

    fn place(&mut self, obstacle: Obstacle) -> ObstacleAt {
        let next = ObstacleAt::next(self.obstacles.len());
        let at = *self.places.entry(obstacle).or_insert(next);
        if at == next {
            self.obstacles.push(obstacle);
        }
        at
    }
}

fn kind_number(kind: Option<DeviceKind>) -> u8 {
    match kind {
        None | Some(DeviceKind::Any) => 0,
        Some(DeviceKind::Cpu) => 1,
        Some(DeviceKind::Cuda) => 2,
        Some(DeviceKind::Mps) => 3,
    }
}

impl Presence {
    /// Whether the worker offers what a trial needs.
    pub(crate) fn offers(&self, needs: Option<Capability>) -> bool {
        needs.is_none_or(|needed| self.info.offers.contains(&needed))
    }

    /// A free slot for such a fold; the lowest number that fits.
    pub(crate) fn free_slot(&self, wanted: &Resources, floor: u64) -> Option<u32> {
        let fits = |number: &&u32| self.slots.get(**number as usize).is_some_and(|s| s.fits(wanted, floor));
        self.free.iter().find(fits).copied()
    }

    /// Whether any slot, free or not, could train such a fold.
    pub(crate) fn could_train(&self, wanted: &Resources, floor: u64) -> bool {
        self.slots.iter().any(|slot| slot.fits(wanted, floor))
    }
}

impl Scheduler {
    /// What stands in the way of a fold now.
    pub(crate) fn obstacle_of(&self, fold: &Fold) -> Obstacle {
        let trial = self.trials.get(&fold.key.trial);
        let disputed = trial.and_then(|trial| trial.data).filter(|data| self.data.is_disputed(*data));
        let (floor, unread) = trial.map_or((0, 0), |trial| (trial.floor, trial.unread));
        let needs = trial.and_then(|trial| trial.needs);
        Obstacle { floor, unread, disputed, resumable: trial.is_none_or(|trial| trial.resumable), needs }
    }

    /// Whether a worker may have a fold of this sweep behind this obstacle.
    pub(crate) fn opens(
        &self,
        now: Timestamp,
        obstacle: Obstacle,
        presence: &Presence,
        sweep: &Sweep,
    ) -> bool {
        obstacle.disputed.is_none_or(|data| !self.data.is_disputed(data))
            && obstacle.unread & presence.version == 0
            && presence.offers(obstacle.needs)
            && presence.lasts(now, obstacle.resumable, || sweep.pace.p90())
            && presence.free_slot(&sweep.resources, obstacle.floor).is_some()
    }

    pub(crate) fn obstacle_place(&mut self, obstacle: Obstacle) -> ObstacleAt {
        self.fitting.place(obstacle)
    }

    /// The memory of the slot that a fold ran out of; 0 if unknown. Raises the trial's floor above it.
    pub(crate) fn raise_floor(
        &mut self,
        at: FoldAt,
        worker: WorkerAt,
        slot: u32,
        changes: &mut Vec<Change>,
    ) -> u64 {
        let presence = self.workers[worker.at()].presence.as_ref();
        let slot = presence.and_then(|presence| presence.slots.get(slot as usize));
        let memory = slot.map_or(0, |slot| slot.memory);
        let trial = self.folds[at.at()].key.trial;
        if let Some(entry) = self.trials.get_mut(&trial)
            && memory > 0
            && entry.floor <= memory
        {
            entry.floor = memory.saturating_add(1);
            changes.push(Change::Trial(trial, TrialChange::FloorRaised(entry.floor)));
        }
        memory
    }

    /// The most memory of the devices ever seen that a sweep of this fold would take. Soon after a restart nobody
    /// knows: a worker with more may be on its way back.
    pub(crate) fn most_memory_for(&self, now: Timestamp, fold: FoldAt) -> u64 {
        if now < self.reunion {
            return u64::MAX;
        }
        let sweeps = self.sweeps_of(&self.folds[fold.at()]).filter(|sweep| sweep.wants());
        sweeps.map(|sweep| self.fitting.most_memory(sweep.resources.device)).max().unwrap_or(0)
    }

    /// The version that this worker has cannot read the fold's trial: nobody of that version gets it again.
    pub(crate) fn note_unreadable(&mut self, at: FoldAt, worker: WorkerAt) {
        let version = self.workers[worker.at()].presence.as_ref().map_or(0, |presence| presence.version);
        if let Some(trial) = self.trials.get_mut(&self.folds[at.at()].key.trial) {
            trial.unread |= version;
        }
    }
}
