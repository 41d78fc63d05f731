//! Facts that must outlive the process: what a store is asked to keep, and what each one amounts to. The memory store is a
//! [`Snapshot`], the SQL stores are measured against it, and the scheduler starts from it. Domain words only; decides nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use togl_sweeps::race::Score;
use togl_sweeps::{Attempt, CheckedResult, Failure, FoldKey, SweepName, TrialId, WorkerId};

use crate::steered::Steered;
use crate::words::{Digest, Ending, SweepSaved, SweepState};

/// One fact, by what it is about. Facts of one event belong into one transaction, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// About a trial.
    Trial(TrialId, TrialChange),
    /// About one fold.
    Fold(FoldKey, FoldChange),
    /// About a sweep.
    Sweep(SweepChange),
    /// About a data set.
    Data(DataChange),
    /// About workers and hosts.
    Fleet(FleetChange),
    /// Who did what, and why; what it led to is said by the facts beside it. For people: nobody needs it to start.
    Steered(Box<Steered>),
}

/// What became known of a trial.
#[derive(Debug, Clone, PartialEq)]
pub enum TrialChange {
    /// Its settings, as canonical JSON.
    Saved(Arc<str>),
    /// It ran out of memory: it needs at least so many bytes.
    FloorRaised(u64),
}

/// What happened to a fold.
#[derive(Debug, Clone, PartialEq)]
pub enum FoldChange {
    /// It exists from now on, pending. Its trial was saved before.
    Added,
    /// A lease was given; the attempt is known for ever.
    Issued {
        /// One more than the last.
        attempt: Attempt,
        /// To whom.
        worker: WorkerId,
        /// Where that worker runs.
        host: String,
    },
    /// An attempt was made elsewhere, and is known for ever; a result of it follows. Where the fold stands does not change.
    Adopted {
        /// One more than the last.
        attempt: Attempt,
        /// Who made it.
        worker: WorkerId,
        /// Where that worker ran.
        host: String,
    },
    /// A lease that had ended goes on: its worker came back before anybody else took the fold.
    Revived {
        /// Its last attempt.
        attempt: Attempt,
    },
    /// The current attempt ended without a result; the fold is pending unless [`FoldChange::Failed`] follows.
    Ended {
        /// The attempt that was running.
        attempt: Attempt,
        /// How it ended.
        ending: Ending,
        /// For people.
        message: String,
    },
    /// It will not be tried again by itself.
    Failed(Failure),
    /// It failed and gets a clean slate: endings so far no longer count.
    Retried,
    /// It has its result.
    Finished {
        /// The attempt that brought it.
        attempt: Attempt,
        /// The worker of that attempt.
        worker: WorkerId,
        /// Of the result.
        digest: Digest,
        /// The result.
        result: Box<CheckedResult>,
    },
    /// Its accepted result is a replicate from now on, and it is pending.
    SetAside,
    /// Another attempt brought a result too, after it was finished. At most one an attempt.
    Replicate {
        /// The attempt that brought it.
        attempt: Attempt,
        /// The worker of that attempt.
        worker: WorkerId,
        /// Of this result.
        digest: Digest,
        /// Whether it says what the accepted one says.
        agrees: bool,
        /// The result.
        result: Box<CheckedResult>,
    },
    /// An attempt reported twice, with different numbers. Said once an attempt; the store keeps the first such report.
    Conflict {
        /// Which attempt.
        attempt: Attempt,
        /// Who reported the second.
        worker: WorkerId,
        /// Of the second report.
        digest: Digest,
        /// The second report.
        result: Box<CheckedResult>,
    },
}

/// What was submitted, and how it is steered.
#[derive(Debug, Clone, PartialEq)]
pub enum SweepChange {
    /// The next folds of a sweep that is being submitted, from that position on; 0 begins anew. Nobody sees them before
    /// [`SweepChange::Saved`] says whose they are, and a restart forgets them.
    Gathered {
        /// Position of the first.
        from: u64,
        /// They were added before.
        folds: Vec<FoldKey>,
    },
    /// It was submitted or edited; replaces what was known of it.
    Saved(Box<SweepSaved>),
    /// It was cancelled, archived, paused or made active.
    StateSet {
        /// The sweep that was steered, or stopped itself.
        sweep: SweepName,
        /// Its state from now on.
        state: SweepState,
        /// Why, if it did so by itself.
        note: Option<Arc<str>>,
    },
    /// It has another priority than its text says.
    PrioritySet {
        /// The sweep that was moved in the queue.
        sweep: SweepName,
        /// Its priority from now on; higher runs first.
        priority: i32,
    },
}

/// What a data set must be.
#[derive(Debug, Clone, PartialEq)]
pub enum DataChange {
    /// From now on, by the catalogue or by its first result.
    Pinned {
        /// Which data set; generated ones with their seed.
        data: String,
        /// Its digest.
        digest: String,
    },
    /// The result of a fold comes from other data; none of the data set's folds is handed out until
    /// [`DataChange::Settled`].
    Disputed {
        /// Which data set.
        data: String,
        /// Whose result.
        fold: FoldKey,
        /// The digest of the data it comes from.
        digest: String,
    },
    /// The operator decided. Results from other data were set aside before.
    Settled {
        /// Which data set.
        data: String,
        /// Its digest.
        digest: String,
    },
}

/// Who gets no work.
#[derive(Debug, Clone, PartialEq)]
pub enum FleetChange {
    /// A worker gets nothing new until [`FleetChange::Undrained`].
    Drained {
        /// The worker, which may be away at the moment.
        worker: WorkerId,
        /// Where it runs.
        host: String,
    },
    /// A worker gets work again, or will not come back.
    Undrained {
        /// The worker that was drained before.
        worker: WorkerId,
    },
    /// A host is kept out until [`FleetChange::Released`].
    Quarantined {
        /// The machine, by the name that its workers say.
        host: String,
        /// What happened there, for people.
        reason: Arc<str>,
    },
    /// A host is no longer kept out.
    Released {
        /// The machine that was quarantined before.
        host: String,
    },
}

/// Everything that the scheduler needs to go on after a restart. Results themselves are not part of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// Sweeps by name.
    pub sweeps: BTreeMap<SweepName, SweepSaved>,
    /// Canonical JSON of each trial.
    pub trials: BTreeMap<TrialId, Arc<str>>,
    /// Bytes that trials need at least, of those that ran out of memory.
    pub floors: BTreeMap<TrialId, u64>,
    /// Data sets whose digest is known.
    pub data: BTreeMap<String, SavedData>,
    /// Workers that get nothing new, and where they run.
    pub drains: BTreeMap<WorkerId, String>,
    /// Hosts that are kept out, and why.
    pub quarantines: BTreeMap<String, Arc<str>>,
    /// Every fold that was ever in a sweep.
    pub folds: BTreeMap<FoldKey, SavedFold>,
}

/// A data set as it is kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SavedData {
    /// The digest that counts.
    pub digest: String,
    /// Finished folds whose results come from other data, with their digests.
    pub dissent: BTreeMap<FoldKey, String>,
}

/// A fold as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedFold {
    /// Where it stands.
    pub state: SavedState,
    /// Attempts whose endings no longer count, because somebody asked for a retry after them.
    pub forgiven: u32,
    /// Every attempt that was issued, the first one first.
    pub attempts: Vec<SavedAttempt>,
}

/// Where a fold stands.
#[derive(Debug, Clone, PartialEq)]
pub enum SavedState {
    /// Waits for a worker, or for somebody to want it.
    Pending,
    /// The last attempt is running.
    Leased,
    /// Has a result.
    Finished {
        /// The attempt that brought it.
        attempt: Attempt,
        /// Of the result.
        digest: Digest,
        /// What races know of the result.
        score: Score,
    },
    /// Will not be tried again by itself.
    Failed(Failure),
}

/// An issued attempt as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedAttempt {
    /// Who got it.
    pub worker: WorkerId,
    /// Where that worker ran.
    pub host: String,
    /// How it ended, if it ended without a result.
    pub ending: Option<Ending>,
    /// Of its result, if that is kept as a replicate.
    pub replicate: Option<Digest>,
}

impl Snapshot {
    /// Applies one fact. A fact about something unknown changes nothing.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Trial(trial, TrialChange::Saved(canonical)) => {
                self.trials.insert(*trial, canonical.clone());
            }
            Change::Trial(trial, TrialChange::FloorRaised(bytes)) => _ = self.floors.insert(*trial, *bytes),
            Change::Fold(fold, FoldChange::Added) => {
                let new = SavedFold { state: SavedState::Pending, forgiven: 0, attempts: Vec::new() };
                self.folds.entry(*fold).or_insert(new);
            }
            Change::Fold(fold, change) => {
                if let Some(fold) = self.folds.get_mut(fold) {
                    fold.apply(change);
                }
            }
            Change::Sweep(change) => self.apply_to_sweep(change),
            Change::Data(change) => self.apply_to_data(change),
            Change::Fleet(change) => self.apply_to_fleet(change),
            Change::Steered(_) => {}
        }
    }

    fn apply_to_sweep(&mut self, change: &SweepChange) {
        match change {
            SweepChange::Gathered { .. } => {} // told again, and whose they are, when the sweep is saved
            SweepChange::Saved(sweep) => {
                let whole = SweepSaved { gathered: 0, ..SweepSaved::clone(sweep) };
                self.sweeps.insert(sweep.name.clone(), whole);
            }
            SweepChange::StateSet { sweep, state, note } => {
                if let Some(sweep) = self.sweeps.get_mut(sweep) {
                    (sweep.state, sweep.note) = (*state, note.clone());
                }
            }
            SweepChange::PrioritySet { sweep, priority } => {
                if let Some(sweep) = self.sweeps.get_mut(sweep) {
                    sweep.priority = *priority;
                }
            }
        }
    }

    fn apply_to_data(&mut self, change: &DataChange) {
        match change {
            DataChange::Pinned { data, digest } | DataChange::Settled { data, digest } => {
                let saved = SavedData { digest: digest.clone(), dissent: BTreeMap::new() };
                self.data.insert(data.clone(), saved);
            }
            DataChange::Disputed { data, fold, digest } => {
                if let Some(data) = self.data.get_mut(data) {
                    data.dissent.insert(*fold, digest.clone());
                }
            }
        }
    }

    fn apply_to_fleet(&mut self, change: &FleetChange) {
        match change {
            FleetChange::Drained { worker, host } => {
                self.drains.insert(worker.clone(), host.clone());
            }
            FleetChange::Undrained { worker } => _ = self.drains.remove(worker),
            FleetChange::Quarantined { host, reason } => {
                self.quarantines.insert(host.clone(), reason.clone());
            }
            FleetChange::Released { host } => _ = self.quarantines.remove(host),
        }
    }
}

impl SavedFold {
    fn apply(&mut self, change: &FoldChange) {
        match change {
            FoldChange::Added => {} // it is there
            FoldChange::Issued { worker, host, attempt: _ } => {
                let (worker, host) = (worker.clone(), host.clone());
                self.attempts.push(SavedAttempt { worker, host, ending: None, replicate: None });
                self.state = SavedState::Leased;
            }
            FoldChange::Adopted { worker, host, attempt: _ } => {
                let (worker, host) = (worker.clone(), host.clone());
                self.attempts.push(SavedAttempt { worker, host, ending: None, replicate: None });
            }
            FoldChange::Revived { attempt } => {
                self.with(*attempt, |saved| saved.ending = None);
                self.state = SavedState::Leased;
            }
            FoldChange::Ended { attempt, ending, message: _ } => {
                self.with(*attempt, |saved| saved.ending = Some(*ending));
                self.state = SavedState::Pending;
            }
            FoldChange::Failed(failure) => self.state = SavedState::Failed(failure.clone()),
            FoldChange::Retried => {
                self.forgiven = u32::try_from(self.attempts.len()).unwrap_or(u32::MAX);
                self.state = SavedState::Pending;
            }
            FoldChange::Finished { attempt, digest, result, .. } => {
                let score = Score::of(result);
                self.state = SavedState::Finished { attempt: *attempt, digest: *digest, score };
            }
            FoldChange::SetAside => {
                if let SavedState::Finished { attempt, digest, .. } = self.state {
                    self.with(attempt, |saved| saved.replicate = Some(digest));
                    self.state = SavedState::Pending;
                }
            }
            FoldChange::Replicate { attempt, digest, .. } => {
                self.with(*attempt, |saved| saved.replicate = Some(*digest));
            }
            FoldChange::Conflict { .. } => {} // kept beside
        }
    }

    fn with(&mut self, attempt: Attempt, edit: impl FnOnce(&mut SavedAttempt)) {
        let index = attempt.0.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        if let Some(saved) = index.and_then(|index| self.attempts.get_mut(index)) {
            edit(saved);
        }
    }
}
