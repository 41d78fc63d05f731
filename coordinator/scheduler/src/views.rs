//! What can be seen from outside: sweeps with counts, workers, folds. Reads the state, changes nothing. Whoever decides
//! waits while somebody looks, so a look costs what it shows, and shows a bounded part.

use std::sync::Arc;

use togl_sweeps::plan::FoldWord;
use togl_sweeps::{Attempt, Failure, FailureClass, FoldKey, SweepName, WorkerId};

use crate::event::WorkerInfo;
use crate::fold::{Fold, State};
use crate::limits::Timestamp;
use crate::place::FoldAt;
use crate::queue::Sweep;
use crate::standstill::Standstill;
use crate::state::{Scheduler, Worker};
use crate::words::SweepState;

/// Running folds of a sweep that are listed.
const RUNNING: usize = 200;

/// Failed folds of a sweep that are listed.
const FAILED: usize = 100;

/// Bytes of what a failed fold said that are shown in lists; the history of the fold has all of it.
const MESSAGE: usize = 2_000;

/// Folds of a sweep by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Waiting; in views of a sweep without what its race has stopped.
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

/// A sweep with what runs and what failed. The lists are cut; the counts say how long they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepDetail {
    /// The one line.
    pub summary: SweepView,
    /// The text as written.
    pub yaml: Arc<str>,
    /// Trials all of whose folds are finished.
    pub trials_finished: u64,
    /// Folds in training, the first of them.
    pub running: Vec<RunningFold>,
    /// Folds given up, the first of them.
    pub failed: Vec<FailedFold>,
    /// All folds given up, by class.
    pub classes: Vec<(FailureClass, u64)>,
    /// Why nothing runs, if nothing does and something should.
    pub standstill: Option<Standstill>,
}

/// A fold in training.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningFold {
    /// Trial, split and seed.
    pub fold: FoldKey,
    /// Which attempt.
    pub attempt: Attempt,
    /// The worker that trains it.
    pub worker: WorkerId,
    /// Canonical JSON of the trial.
    pub trial: Arc<str>,
}

/// A fold given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedFold {
    /// Trial, split and seed.
    pub fold: FoldKey,
    /// What its last attempt died of.
    pub failure: Failure,
    /// Where that was: the host, or the worker if it never named one.
    pub host: Arc<str>,
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
        /// The worker that trains or trained it.
        worker: WorkerId,
    },
    /// With a result.
    Finished {
        /// Of which attempt.
        attempt: Attempt,
        /// The worker that trains or trained it.
        worker: WorkerId,
    },
    /// Given up.
    Failed(Failure),
}

impl FoldState {
    /// It in one word.
    pub fn word(&self) -> FoldWord {
        match self {
            Self::Pending => FoldWord::Pending,
            Self::Running { .. } => FoldWord::Running,
            Self::Finished { .. } => FoldWord::Finished,
            Self::Failed(_) => FoldWord::Failed,
        }
    }
}

/// A fold in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldView {
    /// Trial, split and seed.
    pub fold: FoldKey,
    /// Where it stands.
    pub state: FoldState,
    /// Attempts so far.
    pub attempts: u32,
}

togl_sweeps::words!(
    /// How a worker is connected. The words are those of the wire.
    Connection {
        /// Connected, and given leases.
        Connected = "connected",
        /// Its connection closed a moment ago.
        Grace = "disconnected",
        /// Connected, finishing what it runs.
        Draining = "draining",
        /// Connected, and given nothing for a while; its note says why.
        Quarantined = "quarantined",
    }
);

/// A worker that is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerView {
    /// The name it gave itself.
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

    /// One sweep with what runs and what failed. Costs what it shows, however large the sweep is.
    pub fn sweep_detail(&self, now: Timestamp, name: &SweepName) -> Option<SweepDetail> {
        let sweep = &self.sweeps[self.by_name.get(name)?.at()];
        let fold_at = |position: &u32| Some(&self.folds[sweep.folds.get(*position as usize)?.at()]);
        let running = sweep.standing.running.iter().filter_map(fold_at).filter_map(|fold| self.running(fold));
        let failed = sweep.standing.failed.iter().filter_map(fold_at).filter_map(|fold| self.failed(fold));
        Some(SweepDetail {
            summary: sweep.view(),
            yaml: sweep.yaml.clone(),
            trials_finished: sweep.trials_finished(),
            running: running.take(RUNNING).collect(),
            failed: failed.take(FAILED).collect(),
            classes: sweep.standing.classes.iter().map(|(class, folds)| (*class, *folds)).collect(),
            standstill: self.standstill(now, sweep),
        })
    }

    fn running(&self, fold: &Fold) -> Option<RunningFold> {
        let State::Leased { attempt, worker, .. } = fold.state else { return None };
        let worker = self.workers[worker.at()].id.clone();
        Some(RunningFold { fold: fold.key, attempt, worker, trial: self.canonical(fold) })
    }

    fn failed(&self, fold: &Fold) -> Option<FailedFold> {
        let State::Failed(failure) = &fold.state else { return None };
        let worker = fold.issue(fold.last_attempt()).map(|issue| &self.workers[issue.worker.at()]);
        let host = worker.map_or_else(Arc::default, |worker| match worker.host.is_empty() {
            true => worker.id.as_str().into(),
            false => worker.host.clone(),
        });
        Some(FailedFold { fold: fold.key, failure: shown(failure), host, trial: self.canonical(fold) })
    }

    fn canonical(&self, fold: &Fold) -> Arc<str> {
        self.trials.get(&fold.key.trial).map(|trial| trial.canonical.clone()).unwrap_or_default()
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
            State::Failed(failure) => FoldState::Failed(shown(failure)),
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

/// A failure as lists show it.
fn shown(failure: &Failure) -> Failure {
    let cut = failure.message.floor_char_boundary(MESSAGE);
    let (kept, rest) = failure.message.split_at(cut);
    match rest.len() {
        0 => Failure::clone(failure),
        bytes => Failure::new(failure.class, format!("{kept} ... and {bytes} bytes more")),
    }
}

impl Sweep {
    /// Pending folds that are still to be trained.
    pub(crate) fn waiting(&self) -> u64 {
        self.standing.counts.pending.saturating_sub(self.standing.stopped)
    }

    pub(crate) fn view(&self) -> SweepView {
        SweepView {
            name: self.name.clone(),
            state: self.state,
            note: self.note.clone(),
            priority: self.priority,
            trials: self.trials,
            counts: Counts { pending: self.waiting(), ..self.standing.counts },
        }
    }
}
