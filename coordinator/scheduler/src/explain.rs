//! Why is this fold not running? One answer, the nearest obstacle first, in words for people. Reads the state,
//! changes nothing.

use std::fmt;
use std::sync::Arc;

use togl_sweeps::blocks::DeviceKind;
use togl_sweeps::{Attempt, Capability, Failure, FoldKey, SweepName, WorkerId};

use crate::fit::Obstacle;
use crate::fold::{Fold, State, Wait};
use crate::limits::Timestamp;
use crate::place::WorkerAt;
use crate::queue::Sweep;
use crate::race::TrialStop;
use crate::state::{Presence, Scheduler};
use crate::verdict::bytes;
use crate::words::{Ending, SweepState};

/// Workers that are named.
const NAMES: usize = 5;

/// Folds ahead of another that are counted.
const AHEAD: usize = 10_000;

/// What is known about a fold and what keeps it from running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Which fold.
    pub fold: FoldKey,
    /// The nearest obstacle, or that there is none.
    pub reason: Reason,
    /// The sweeps that have it.
    pub sweeps: Vec<SweepName>,
    /// Every attempt so far: to whom, and how it ended if it brought no result.
    pub attempts: Vec<(Attempt, WorkerId, Option<Ending>)>,
}

/// What keeps a fold from running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Nothing: it has a result.
    Finished {
        /// Of which attempt.
        attempt: Attempt,
    },
    /// It was given up.
    Failed(Failure),
    /// Nothing: it runs.
    Running {
        /// By whom.
        worker: WorkerId,
        /// Which attempt.
        attempt: Attempt,
    },
    /// No sweep has it, or all that have it are cancelled or archived.
    NotWanted,
    /// The race of the sweep that has it has stopped its trial.
    Stopped {
        /// Which sweep.
        sweep: SweepName,
        /// Why.
        stopped: TrialStop,
    },
    /// The sweep that has it trains only the best of a rung for longer, and has not come so far.
    WaitsForRung {
        /// Which sweep.
        sweep: SweepName,
        /// The rung that has to end, from 1.
        rung: u32,
        /// Rungs that there are.
        of: u32,
    },
    /// The sweeps that have it are paused.
    Paused {
        /// Why, if one did so by itself.
        note: Option<Arc<str>>,
    },
    /// Results of its data set come from different data.
    Disputed {
        /// Which data set.
        data: Arc<str>,
        /// The digests under dispute, the one that counted so far first.
        digests: Vec<Arc<str>>,
    },
    /// Nobody is connected.
    NoWorkers,
    /// Everybody who is connected is draining or about to be lost.
    NoWorkerTakesMore,
    /// Those who could train it are kept out for a while.
    Quarantined {
        /// Those workers, and why each is.
        workers: Vec<(WorkerId, Arc<str>)>,
    },
    /// Nobody who takes folds has such a device.
    NoSuchDevice {
        /// The kind that its sweep asks for.
        device: DeviceKind,
        /// The memory that it needs, in bytes; 0 if any will do.
        memory: u64,
    },
    /// Nobody who takes folds offers what it needs.
    NobodyOffers {
        /// What that is.
        what: Capability,
    },
    /// Everybody who could train it runs a version that cannot read its settings.
    Unreadable {
        /// Those versions.
        versions: Vec<String>,
    },
    /// It failed on the only worker that is free, and waits for another one.
    WaitsForAnother {
        /// On whom it failed.
        worker: WorkerId,
        /// Until it may go to the same one.
        milliseconds: u64,
    },
    /// Nobody who could train it will live long enough.
    NoTime {
        /// Seconds that folds of its sweep take.
        seconds: u64,
    },
    /// Everybody who could train it is busy.
    AllBusy {
        /// Slots of those who take folds.
        slots: u64,
    },
    /// It is about to be handed out.
    Queued {
        /// Folds of its sweep before it; not counted beyond ten thousand.
        ahead: u64,
    },
}

impl fmt::Display for Reason {
    #[expect(clippy::too_many_lines, reason = "one sentence a reason")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished { attempt } => write!(f, "it is finished (attempt {attempt})"),
            Self::Failed(failure) => write!(f, "it failed: {failure}; `togl retry` gives it a clean slate"),
            Self::Running { worker, attempt } => write!(f, "it runs on {worker} (attempt {attempt})"),
            Self::NotWanted => write!(f, "no sweep wants it: those that have it are cancelled or archived"),
            Self::Stopped {
                sweep,
                stopped: TrialStop { look, of, leader: Some(leader), halving: true, .. },
            } => write!(
                f,
                "the halving of {sweep} stopped its trial after rung {look} of {of}: others of its group were better, {} the best",
                leader.short()
            ),
            Self::Stopped { sweep, stopped: TrialStop { look, of, leader: None, halving: true, .. } } => {
                write!(
                    f,
                    "the halving of {sweep} stopped its trial after rung {look} of {of}, because a fold of it failed"
                )
            }
            Self::WaitsForRung { sweep, rung, of } => write!(
                f,
                "it waits for rung {rung} of its group: {sweep} trains only the best of each of its {of} rungs for longer"
            ),
            Self::Stopped { sweep, stopped: TrialStop { look, of, leader: Some(leader), .. } } => write!(
                f,
                "the race of {sweep} stopped its trial after {look} of {of} splits: {} was clearly better",
                leader.short()
            ),
            Self::Stopped { sweep, stopped: TrialStop { look, of, leader: None, .. } } => {
                write!(
                    f,
                    "the race of {sweep} stopped its trial after {look} of {of} splits, because a fold of it failed"
                )
            }
            Self::Paused { note: None } => write!(f, "its sweep is paused; `togl resume` goes on"),
            Self::Paused { note: Some(note) } => write!(f, "its sweep is paused: {note}"),
            Self::Disputed { data, digests } => write!(
                f,
                "results of data set `{data}` come from different data ({}); say which is right",
                digests.join(", ")
            ),
            Self::NoWorkers => write!(f, "no worker is connected; start one with `togl-worker join`"),
            Self::NoWorkerTakesMore => write!(f, "every connected worker is draining or has just been lost"),
            Self::Quarantined { workers } => write!(f, "who could train it is kept out: {}", names(workers)),
            Self::NoSuchDevice { device, memory } => {
                write!(f, "no connected worker has a {}", slot_words(*device, *memory))
            }
            Self::NobodyOffers { what } => {
                write!(f, "no connected worker {}; {}", what.does(), what.hint())
            }
            Self::Unreadable { versions } => write!(
                f,
                "no connected worker can read its settings (tried: {}); update the workers",
                versions.join(", ")
            ),
            Self::WaitsForAnother { worker, milliseconds } => write!(
                f,
                "it failed on {worker} and waits for another worker; {worker} may try again in {} s",
                milliseconds.div_ceil(1000)
            ),
            Self::NoTime { seconds } => write!(
                f,
                "such folds take up to {seconds} s and begin anew elsewhere, and no connected worker will live long enough; \
                 give workers a longer `--lifetime`"
            ),
            Self::AllBusy { slots } => write!(f, "all {slots} slots are busy"),
            Self::Queued { ahead } => {
                let least = if *ahead >= AHEAD as u64 { "at least " } else { "" };
                write!(f, "it is next in line after {least}{ahead} folds of its sweep")
            }
        }
    }
}

/// Workers by name, each with why it is kept out; of many only the first.
fn names(workers: &[(WorkerId, Arc<str>)]) -> String {
    let mut names: Vec<String> = workers.iter().map(|(worker, why)| format!("{worker} ({why})")).collect();
    names.sort_unstable();
    let more = names.len().saturating_sub(NAMES);
    names.truncate(NAMES);
    let names = names.join(", ");
    if more == 0 { names } else { format!("{names} and {more} more") }
}

/// A slot, as people would ask for it.
fn slot_words(device: DeviceKind, memory: u64) -> String {
    let device = if device == DeviceKind::Any { "device" } else { device.as_str() };
    if memory == 0 {
        format!("{device} slot")
    } else {
        format!("{device} slot with {} of memory", bytes(memory))
    }
}

/// What the workers that take folds could do with one of them.
#[derive(Default)]
struct Offers {
    /// Workers that could train it and are kept out.
    quarantined: Vec<(WorkerId, Arc<str>)>,
    /// Slots of workers that take folds.
    slots: u64,
    /// Whether one has a device that fits, and of those one that offers what it needs, one that can read it, one that lives long enough, one that is
    /// free, another one.
    fits: bool,
    offers: bool,
    reads: bool,
    lasts: bool,
    free: bool,
    free_elsewhere: bool,
}

impl Scheduler {
    /// Why a fold is not running; none if there is no such fold.
    pub fn explain(&self, now: Timestamp, key: &FoldKey) -> Option<Explanation> {
        let fold = &self.folds[self.place_of(key)?.at()];
        let attempts = (1..).zip(&fold.attempts).map(|(number, issue)| {
            (Attempt(number), self.workers[issue.worker.at()].id.clone(), issue.ending)
        });
        Some(Explanation {
            fold: *key,
            reason: self.reason(now, fold),
            sweeps: self.sweeps_of(fold).map(|sweep| sweep.name.clone()).collect(),
            attempts: attempts.collect(),
        })
    }

    pub(crate) fn reason(&self, now: Timestamp, fold: &Fold) -> Reason {
        match &fold.state {
            State::Finished { attempt, .. } => Reason::Finished { attempt: *attempt },
            State::Failed(failure) => Reason::Failed(failure.as_ref().clone()),
            State::Leased { attempt, worker, .. } => {
                Reason::Running { worker: self.workers[worker.at()].id.clone(), attempt: *attempt }
            }
            State::Pending(_) if !self.is_wanted(fold) => self.why_unwanted(fold),
            State::Pending(_) if self.wanted_by(fold).is_empty() => {
                Reason::Paused { note: self.sweeps_of(fold).find_map(|sweep| sweep.note.clone()) }
            }
            State::Pending(wait) => self.why_pending(now, fold, *wait),
        }
    }

    fn why_unwanted(&self, fold: &Fold) -> Reason {
        let wants = || self.sweeps_of(fold).filter(|sweep| sweep.wants());
        let waits = wants().find_map(|sweep| {
            let (rung, of) = sweep.why_waiting(fold.key.trial)?;
            Some(Reason::WaitsForRung { sweep: sweep.name.clone(), rung, of })
        });
        let stopped = wants().find_map(|sweep| {
            let stopped = sweep.why_stopped(fold.key.trial)?;
            Some(Reason::Stopped { sweep: sweep.name.clone(), stopped })
        });
        waits.or(stopped).unwrap_or(Reason::NotWanted)
    }

    fn why_pending(&self, now: Timestamp, fold: &Fold, wait: Wait) -> Reason {
        let obstacle = self.obstacle_of(fold);
        if let Some(data) = obstacle.disputed.and_then(|data| self.data.table.get(data.at())) {
            let digests = data.digest.iter().chain(data.dissent.values());
            let mut digests: Vec<Arc<str>> = digests.cloned().collect();
            digests.dedup();
            return Reason::Disputed { data: data.name.clone(), digests };
        }
        if self.connected == 0 {
            return Reason::NoWorkers;
        }
        let offers = self.offers(now, fold, obstacle, wait);
        match wait {
            _ if !offers.fits && !offers.quarantined.is_empty() => {
                Reason::Quarantined { workers: offers.quarantined }
            }
            _ if offers.slots == 0 => Reason::NoWorkerTakesMore,
            _ if !offers.fits => self.no_such_device(fold, obstacle),
            _ if !offers.offers
                && let Some(what) = obstacle.needs =>
            {
                Reason::NobodyOffers { what }
            }
            _ if !offers.reads => Reason::Unreadable { versions: self.version_names(obstacle.unread) },
            _ if !offers.lasts => Reason::NoTime { seconds: self.seconds_of(fold) },
            _ if !offers.free => Reason::AllBusy { slots: offers.slots },
            Wait::Another { worker, until } if !offers.free_elsewhere => Reason::WaitsForAnother {
                worker: self.workers[worker.at()].id.clone(),
                milliseconds: until.since(now),
            },
            _ => Reason::Queued { ahead: self.ahead_of(fold) },
        }
    }

    fn wanted_by<'a>(&'a self, fold: &'a Fold) -> Vec<&'a Sweep> {
        let wants = |sweep: &&Sweep| sweep.state == SweepState::Active && !sweep.has_stopped(fold.key.trial);
        self.sweeps_of(fold).filter(wants).collect()
    }

    fn seconds_of(&self, fold: &Fold) -> u64 {
        self.wanted_by(fold).iter().filter_map(|sweep| sweep.pace.p90()).min().unwrap_or(0)
    }

    fn offers(&self, now: Timestamp, fold: &Fold, obstacle: Obstacle, wait: Wait) -> Offers {
        let mut offers = Offers::default();
        let wanted = self.wanted_by(fold);
        for (at, worker) in (0..).map(WorkerAt).zip(&self.workers) {
            let takes = |presence: &&Presence| !presence.closed && !worker.is_draining();
            let Some(presence) = worker.presence.as_ref().filter(takes) else { continue };
            if self.is_kept_out(at) {
                let fits =
                    wanted.iter().any(|wanted| presence.could_train(&wanted.resources, obstacle.floor));
                let objection = self.objection_to(worker).filter(|_| fits);
                offers.quarantined.extend(objection.map(|why| (worker.id.clone(), why)));
                continue;
            }
            let avoided = matches!(wait, Wait::Another { worker, .. } if worker == at);
            offers.add(now, presence, obstacle, &wanted, avoided);
        }
        offers
    }

    fn no_such_device(&self, fold: &Fold, obstacle: Obstacle) -> Reason {
        let wanted = self.wanted_by(fold);
        let least = wanted.iter().map(|wanted| wanted.resources.memory.unwrap_or(0)).min().unwrap_or(0);
        let device = wanted.first().map_or(DeviceKind::Any, |wanted| wanted.resources.device);
        Reason::NoSuchDevice { device, memory: least.max(obstacle.floor) }
    }

    fn version_names(&self, bits: u64) -> Vec<String> {
        let names = self.fitting.versions.iter().enumerate();
        names.filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| name.clone()).collect()
    }

    /// Pending folds before this one in the sweep where it is nearest to the front.
    fn ahead_of(&self, fold: &Fold) -> u64 {
        let places = fold.sweeps.iter().filter_map(|(at, position)| {
            let sweep = &self.sweeps[at.at()];
            let active = sweep.state == SweepState::Active;
            active.then(|| sweep.queues.open.range(..position).take(AHEAD).count() as u64)
        });
        places.min().unwrap_or(0)
    }
}

impl Offers {
    fn add(
        &mut self,
        now: Timestamp,
        presence: &Presence,
        obstacle: Obstacle,
        wanted: &[&Sweep],
        avoided: bool,
    ) {
        self.slots += presence.slots.len() as u64;
        let fits = wanted.iter().any(|wanted| presence.could_train(&wanted.resources, obstacle.floor));
        let able = fits && presence.offers(obstacle.needs);
        let reads = able && obstacle.unread & presence.version == 0;
        let lasts = |sweep: &&&Sweep| presence.lasts(now, obstacle.resumable, || sweep.pace.p90());
        let mut lasting = wanted.iter().filter(lasts).peekable();
        self.lasts |= reads && lasting.peek().is_some();
        let free =
            reads && lasting.any(|wanted| presence.free_slot(&wanted.resources, obstacle.floor).is_some());
        self.fits |= fits;
        self.offers |= able;
        self.reads |= reads;
        self.free |= free;
        self.free_elsewhere |= free && !avoided;
    }
}
