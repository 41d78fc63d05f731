//! What can be seen from outside: sweeps with counts, workers, folds. Reads the books, changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use togl_sweeps::{Attempt, Failure, FoldKey, SweepName, TrialId, WorkerId};

use crate::books::{Scheduler, Worker};
use crate::change::SweepState;
use crate::event::WorkerInfo;
use crate::fold::{Fold, State};
use crate::place::FoldAt;
use crate::queue::Sweep;

/// Folds of a sweep by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Waiting.
    pub pending: u64,
    /// Leased to a worker.
    pub running: u64,
    /// With a result.
    pub finished: u64,
    /// Given up.
    pub failed: u64,
}

impl Counts {
    pub(crate) fn of(&mut self, state: &State) -> &mut u64 {
        match state {
            State::Pending(_) => &mut self.pending,
            State::Leased { .. } => &mut self.running,
            State::Finished { .. } => &mut self.finished,
            State::Failed(_) => &mut self.failed,
        }
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.pending + self.running + self.finished + self.failed
    }
}

/// A sweep in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepView {
    /// Its name.
    pub name: SweepName,
    /// Whether it runs.
    pub state: SweepState,
    /// Why it is in that state, if it went there by itself.
    pub note: Option<Arc<str>>,
    /// Higher runs first.
    pub priority: i32,
    /// Distinct trials.
    pub trials: u64,
    /// Folds by state.
    pub counts: Counts,
}

impl SweepView {
    /// Whether nothing more will happen by itself: all folds finished or failed, or nobody wants it.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, SweepState::Cancelled | SweepState::Archived)
            || self.counts.pending + self.counts.running == 0
    }
}

/// A sweep with what runs and what failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepDetail {
    /// The one line.
    pub summary: SweepView,
    /// The text as written.
    pub yaml: Arc<str>,
    /// Trials all of whose folds are finished.
    pub trials_finished: u64,
    /// Folds in training.
    pub running: Vec<RunningFold>,
    /// Folds given up.
    pub failed: Vec<FailedFold>,
}

/// A fold in training.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningFold {
    /// Which.
    pub fold: FoldKey,
    /// Which attempt.
    pub attempt: Attempt,
    /// By whom.
    pub worker: WorkerId,
    /// Canonical JSON of the trial.
    pub trial: Arc<str>,
}

/// A fold given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedFold {
    /// Which.
    pub fold: FoldKey,
    /// Why.
    pub failure: Failure,
    /// Canonical JSON of the trial.
    pub trial: Arc<str>,
}

/// Where a fold stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoldState {
    /// Waiting.
    Pending,
    /// Leased.
    Running {
        /// Which attempt.
        attempt: Attempt,
        /// By whom.
        worker: WorkerId,
    },
    /// With a result.
    Finished {
        /// Of which attempt.
        attempt: Attempt,
        /// By whom.
        worker: WorkerId,
    },
    /// Given up.
    Failed(Failure),
}

impl FoldState {
    /// The one word for it: `pending`, `running`, `finished`, `failed`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running { .. } => "running",
            Self::Finished { .. } => "finished",
            Self::Failed(_) => "failed",
        }
    }
}

/// A fold in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldView {
    /// Which.
    pub fold: FoldKey,
    /// Where it stands.
    pub state: FoldState,
    /// Attempts so far.
    pub attempts: u32,
}

/// How a worker is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection {
    /// Connected, and given leases.
    Connected,
    /// Its connection closed a moment ago.
    Grace,
    /// Connected, finishing what it runs.
    Draining,
    /// Connected, and given nothing for a while; its note says why.
    Quarantined,
}

impl Connection {
    /// The one spelling, as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Grace => "disconnected",
            Self::Draining => "draining",
            Self::Quarantined => "quarantined",
        }
    }
}

/// A worker that is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerView {
    /// Who.
    pub worker: WorkerId,
    /// What it said about itself.
    pub info: WorkerInfo,
    /// How it is connected.
    pub connection: Connection,
    /// Why it is kept out, if it is.
    pub note: Option<Arc<str>>,
    /// What it has leases on.
    pub running: Vec<(FoldKey, Attempt)>,
}

impl Scheduler {
    /// All sweeps but the archived ones, in the order of their first submission.
    pub fn sweeps(&self) -> Vec<SweepView> {
        self.sweeps.iter().filter(|sweep| sweep.state != SweepState::Archived).map(Sweep::view).collect()
    }

    /// The archived sweeps, in the order of their first submission.
    pub fn archived(&self) -> Vec<SweepView> {
        self.sweeps.iter().filter(|sweep| sweep.state == SweepState::Archived).map(Sweep::view).collect()
    }

    /// Folds of all sweeps by state; each fold counts once.
    pub fn totals(&self) -> Counts {
        self.totals
    }

    /// One sweep in one line.
    pub fn sweep(&self, name: &SweepName) -> Option<SweepView> {
        self.by_name.get(name).map(|at| self.sweeps[at.at()].view())
    }

    /// One sweep with what runs and what failed. Looks at all its folds.
    pub fn sweep_detail(&self, name: &SweepName) -> Option<SweepDetail> {
        let sweep = &self.sweeps[self.by_name.get(name)?.at()];
        let mut unfinished: BTreeMap<TrialId, u64> = BTreeMap::new();
        let (mut running, mut failed) = (Vec::new(), Vec::new());
        for at in &sweep.folds {
            let Fold { key, state, .. } = &self.folds[at.at()];
            *unfinished.entry(key.trial).or_default() += u64::from(!matches!(state, State::Finished { .. }));
            let trial =
                || self.trials.get(&key.trial).map(|trial| trial.canonical.clone()).unwrap_or_default();
            match state {
                State::Leased { attempt, worker, .. } => {
                    let worker = self.workers[worker.at()].id.clone();
                    running.push(RunningFold { fold: *key, attempt: *attempt, worker, trial: trial() });
                }
                State::Failed(failure) => {
                    failed.push(FailedFold { fold: *key, failure: Failure::clone(failure), trial: trial() });
                }
                _ => {}
            }
        }
        let trials_finished = unfinished.values().filter(|open| **open == 0).count() as u64;
        Some(SweepDetail {
            summary: sweep.view(),
            yaml: sweep.yaml.clone(),
            trials_finished,
            running,
            failed,
        })
    }

    /// One fold in one line.
    pub fn fold(&self, key: &FoldKey) -> Option<FoldView> {
        self.place_of(key).map(|at| self.fold_view(at))
    }

    /// Workers that are connected, or were a moment ago, by name.
    pub fn workers(&self) -> Vec<WorkerView> {
        let mut views: Vec<_> = self.workers.iter().filter_map(|worker| self.worker_view(worker)).collect();
        views.sort_by(|a, b| a.worker.cmp(&b.worker));
        views
    }

    /// Whether `attempt` of `fold` was given to `worker`, ever.
    pub fn has_issued(&self, fold: &FoldKey, attempt: Attempt, worker: &WorkerId) -> bool {
        let fold = self.place_of(fold).map(|at| &self.folds[at.at()]);
        let issue = fold.and_then(|fold| fold.issue(attempt));
        issue.is_some_and(|issue| self.workers[issue.worker.at()].id == *worker)
    }

    pub(crate) fn fold_view(&self, at: FoldAt) -> FoldView {
        let fold = &self.folds[at.at()];
        let state = match &fold.state {
            State::Pending(_) => FoldState::Pending,
            State::Leased { attempt, worker, .. } => {
                FoldState::Running { attempt: *attempt, worker: self.workers[worker.at()].id.clone() }
            }
            State::Finished { attempt, .. } => match fold.issue(*attempt) {
                Some(issue) => FoldState::Finished {
                    attempt: *attempt,
                    worker: self.workers[issue.worker.at()].id.clone(),
                },
                None => FoldState::Pending, // cannot be: only issued attempts finish
            },
            State::Failed(failure) => FoldState::Failed(Failure::clone(failure)),
        };
        FoldView { fold: fold.key, state, attempts: fold.last_attempt().0 }
    }

    fn worker_view(&self, worker: &Worker) -> Option<WorkerView> {
        let presence = worker.presence.as_ref()?;
        let note = self.objection_to(worker);
        let connection = match (presence.closed, worker.is_draining()) {
            (true, _) => Connection::Grace,
            (false, true) => Connection::Draining,
            (false, false) if note.is_some() => Connection::Quarantined,
            (false, false) => Connection::Connected,
        };
        let running = worker.leases.iter().map(|at| &self.folds[at.at()]);
        let running = running.map(|fold| (fold.key, fold.last_attempt())).collect();
        Some(WorkerView { worker: worker.id.clone(), info: presence.info.clone(), connection, note, running })
    }
}

impl Sweep {
    fn view(&self) -> SweepView {
        SweepView {
            name: self.name.clone(),
            state: self.state,
            note: self.note.clone(),
            priority: self.priority,
            trials: self.trials,
            counts: self.counts,
        }
    }
}
