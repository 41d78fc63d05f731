//! Why is this fold not running? One answer, the nearest obstacle first, in words for people. Also finds
//! folds by the beginning of their trial's id. Reads the books, changes nothing.

use std::fmt;

use togl_sweeps::{Attempt, Failure, FoldKey, SweepName, WorkerId};

use crate::books::{Fold, Scheduler, State, Sweep};
use crate::change::{Ending, SweepState};
use crate::limits::Timestamp;

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
    /// No sweep has it, or all that have it are cancelled.
    NotWanted,
    /// The sweeps that have it are paused.
    Paused,
    /// Nobody is connected.
    NoWorkers,
    /// Everybody who is connected is draining or about to be lost.
    NoWorkerTakesMore,
    /// It failed on the only worker that is free, and waits for another one.
    WaitsForAnother {
        /// On whom it failed.
        worker: WorkerId,
        /// Until it may go to the same one.
        milliseconds: u64,
    },
    /// Everybody is busy.
    AllBusy {
        /// Slots of those who take folds.
        slots: u64,
    },
    /// It is about to be handed out.
    Queued {
        /// Folds of its sweep before it.
        ahead: u64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished { attempt } => write!(f, "it is finished (attempt {attempt})"),
            Self::Failed(failure) => write!(f, "it failed: {failure}; `togl retry` gives it a clean slate"),
            Self::Running { worker, attempt } => write!(f, "it runs on {worker} (attempt {attempt})"),
            Self::NotWanted => write!(f, "no sweep wants it: those that have it are cancelled"),
            Self::Paused => write!(f, "its sweep is paused; `togl resume` goes on"),
            Self::NoWorkers => write!(f, "no worker is connected; start one with `togl worker join`"),
            Self::NoWorkerTakesMore => write!(f, "every connected worker is draining or has just been lost"),
            Self::WaitsForAnother { worker, milliseconds } => write!(
                f,
                "it failed on {worker} and waits for another worker; {worker} may try again in {} s",
                milliseconds.div_ceil(1000)
            ),
            Self::AllBusy { slots } => write!(f, "all {slots} slots are busy"),
            Self::Queued { ahead } => write!(f, "it is next in line after {ahead} folds of its sweep"),
        }
    }
}

/// A fold that could not be found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FoldLookupError {
    /// Not `TRIAL/split/seed`.
    #[error("`{0}` is not a fold: expected TRIAL/split/seed, where TRIAL may be shortened")]
    Malformed(String),
    /// Nothing begins like that.
    #[error("there is no fold `{0}`; `togl folds SWEEP` lists them")]
    Unknown(String),
    /// Several trials begin like that.
    #[error("`{text}` may mean {first} or {second}; add more digits")]
    Ambiguous {
        /// As asked.
        text: String,
        /// One that fits.
        first: FoldKey,
        /// Another one.
        second: FoldKey,
    },
}

impl Scheduler {
    /// Why a fold is not running; none if there is no such fold.
    pub fn explain(&self, now: Timestamp, key: &FoldKey) -> Option<Explanation> {
        let fold = &self.folds[self.by_key.get(key)?.at()];
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

    fn sweeps_of<'a>(&'a self, fold: &'a Fold) -> impl Iterator<Item = &'a Sweep> {
        fold.sweeps.iter().map(|(sweep, _)| &self.sweeps[sweep.at()])
    }

    fn reason(&self, now: Timestamp, fold: &Fold) -> Reason {
        match &fold.state {
            State::Finished { attempt, .. } => Reason::Finished { attempt: *attempt },
            State::Failed(failure) => Reason::Failed(failure.as_ref().clone()),
            State::Leased { attempt, worker, .. } => {
                Reason::Running { worker: self.workers[worker.at()].id.clone(), attempt: *attempt }
            }
            State::Pending { .. } if !self.is_wanted(fold) => Reason::NotWanted,
            State::Pending { .. } if self.sweeps_of(fold).all(|sweep| sweep.state != SweepState::Active) => {
                Reason::Paused
            }
            State::Pending { avoid } => self.why_pending(now, fold, *avoid),
        }
    }

    fn why_pending(
        &self,
        now: Timestamp,
        fold: &Fold,
        avoid: Option<(crate::books::WorkerAt, Timestamp)>,
    ) -> Reason {
        if self.connected == 0 {
            return Reason::NoWorkers;
        }
        let (mut slots, mut free, mut free_others) = (0u64, 0u64, 0u64);
        for (index, worker) in self.workers.iter().enumerate() {
            if let Some(presence) = worker.presence.as_ref().filter(|p| !p.draining && !p.closed) {
                let room = u64::from(presence.info.slots).saturating_sub(worker.leases.len() as u64);
                slots += u64::from(presence.info.slots);
                free += room;
                free_others += if avoid.is_some_and(|(at, _)| at.at() == index) { 0 } else { room };
            }
        }
        match avoid {
            _ if slots == 0 => Reason::NoWorkerTakesMore,
            _ if free == 0 => Reason::AllBusy { slots },
            Some((worker, until)) if free_others == 0 => Reason::WaitsForAnother {
                worker: self.workers[worker.at()].id.clone(),
                milliseconds: until.since(now),
            },
            _ => Reason::Queued { ahead: self.ahead_of(fold) },
        }
    }

    /// Pending folds before this one in the sweep where it is nearest to the front.
    fn ahead_of(&self, fold: &Fold) -> u64 {
        let places = fold.sweeps.iter().filter_map(|(at, position)| {
            let sweep = &self.sweeps[at.at()];
            let active = sweep.state == SweepState::Active;
            active.then(|| sweep.queue.range(..position).count() as u64)
        });
        places.min().unwrap_or(0)
    }

    /// The fold that `text` means: `TRIAL/split/seed`, where the trial may be any unambiguous beginning.
    pub fn find_fold(&self, text: &str) -> Result<FoldKey, FoldLookupError> {
        let malformed = || FoldLookupError::Malformed(text.to_owned());
        let mut parts = text.split('/');
        let (Some(trial), Some(split), Some(seed), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(malformed());
        };
        let split: u32 = split.parse().map_err(|_| malformed())?;
        let seed: u64 = seed.parse().map_err(|_| malformed())?;
        let mut fits: Vec<FoldKey> = self
            .by_key
            .keys()
            .filter(|key| key.split == split && key.seed == seed && key.trial.to_string().starts_with(trial))
            .copied()
            .collect();
        fits.sort_unstable();
        match fits.as_slice() {
            [] => Err(FoldLookupError::Unknown(text.to_owned())),
            [only] => Ok(*only),
            [first, second, ..] => {
                Err(FoldLookupError::Ambiguous { text: text.to_owned(), first: *first, second: *second })
            }
        }
    }
}
