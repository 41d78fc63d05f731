//! What a reader hands out and what it can be asked: plain values, the same for every store. Reads nothing itself.

use std::str::FromStr;

use serde::Deserialize;
use togl_scheduler::{Counts, Ending, FoldState, Reason, SweepState};
use togl_sweeps::plan::FoldWord;
use togl_sweeps::result::Metrics;
use togl_sweeps::{Attempt, Failure, FailureClass, FoldKey, FoldResult, SweepName, TrialId, WorkerId};

use super::{StoreError, impossible};

/// A sweep as a reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSweep {
    /// Its name.
    pub name: SweepName,
    /// The text as written.
    pub yaml: String,
    /// Whether it runs.
    pub state: SweepState,
    /// Higher runs first.
    pub priority: i32,
}

/// What has become of the folds of a sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SweepCounts {
    /// Distinct trials.
    pub trials: u64,
    /// Trials all of whose folds are finished.
    pub trials_finished: u64,
    /// Folds by state.
    pub folds: Counts,
    /// Why the sweep paused itself; empty otherwise.
    pub note: String,
}

/// Which results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultQuery {
    /// Of this sweep.
    pub sweep: SweepName,
    /// Of this kind.
    pub kind: ResultKind,
    /// From this position in the order of the sweep's folds: the key of a page.
    pub from: u64,
    /// Folds to look at; those without a result are left out.
    pub limit: u64,
}

impl ResultQuery {
    /// The first page of the accepted results of a sweep.
    pub fn accepted(sweep: SweepName) -> Self {
        Self { sweep, kind: ResultKind::Accepted, from: 0, limit: 1_000 }
    }
}

togl_sweeps::words!(
    /// What a stored result is.
    ResultKind {
        /// The fold's result: at most one a fold.
        Accepted = "accepted",
        /// Another attempt's result of a finished fold.
        Replicate = "replicate",
        /// A second, different report of an attempt.
        Conflict = "conflict",
    }
);

impl FromStr for ResultKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::from_word(text).ok_or_else(|| format!("`{text}` is no kind of result"))
    }
}

/// Some results, and where the next ones begin.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultPage {
    /// In the order of the sweep's folds.
    pub rows: Vec<ResultRow>,
    /// [`ResultQuery::from`] of the next page; none after the last.
    pub next: Option<u64>,
}

/// One result with what it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultRow {
    /// Which fold.
    pub fold: FoldKey,
    /// Which attempt brought it.
    pub attempt: Attempt,
    /// Who had that attempt.
    pub worker: WorkerId,
    /// Canonical JSON of the trial.
    pub trial: String,
    /// The result.
    pub result: FoldResult,
}

/// Output of a trainer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPiece {
    /// Of which fold.
    pub fold: FoldKey,
    /// Of which attempt.
    pub attempt: Attempt,
    /// As written.
    pub text: String,
}

/// Which folds of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldQuery {
    /// Of this sweep.
    pub sweep: SweepName,
    /// Only these.
    pub filter: FoldFilter,
    /// From this position in the order of the sweep's folds: the key of a page.
    pub from: u64,
    /// Folds that fit and are left out before the first.
    pub skip: u64,
    /// Folds at the most.
    pub limit: u64,
}

/// What folds must be like; whatever is left out fits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoldFilter {
    /// In one of these states; in any if there are none.
    pub states: Vec<FoldWord>,
    /// This worker has it, or had it last.
    pub worker: Option<WorkerId>,
    /// Failed like this.
    pub class: Option<FailureClass>,
    /// Of the trials between these, both included.
    pub trials: Option<[TrialId; 2]>,
    /// On this data set, in capitals or not.
    pub dataset: Option<String>,
}

/// The word of a state in the tables.
pub(super) fn stored(word: FoldWord) -> &'static str {
    match word {
        FoldWord::Running => "leased",
        FoldWord::Pending | FoldWord::Finished | FoldWord::Failed => word.as_str(),
    }
}

/// Some folds, and where the next ones begin.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldPage {
    /// In the order of the sweep.
    pub folds: Vec<StoredFold>,
    /// [`FoldQuery::from`] of the next page; none after the last.
    pub next: Option<u64>,
}

/// A fold as a reader sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredFold {
    /// Trial, split and seed.
    pub fold: FoldKey,
    /// Canonical JSON of the trial.
    pub trial: String,
    /// Where it stands.
    pub state: FoldState,
    /// Attempts so far.
    pub attempts: u32,
    /// Who has it, finished it or had it last.
    pub worker: Option<WorkerId>,
    /// What its result says, in short.
    pub outcome: Option<ResultSummary>,
}

/// What people want to know of a result at a glance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResultSummary {
    /// The data set's metric on the test part.
    pub value: f64,
    /// Seconds of training.
    pub seconds: f64,
    /// When training ended, in milliseconds since 1970, if the result says so.
    pub finished_at: Option<u64>,
}

impl ResultSummary {
    /// From a stored result, of which the rest is not looked at.
    pub(super) fn read(body: &str) -> Result<Self, StoreError> {
        #[derive(Deserialize)]
        struct Part {
            test: Metrics,
            seconds: f64,
            finished_at: Option<u64>,
        }
        let Part { test, seconds, finished_at } =
            serde_json::from_str(body).map_err(|error| impossible("result", error))?;
        Ok(Self { value: test.accuracy, seconds, finished_at })
    }

    /// The same of a whole result.
    pub(super) fn of(result: &FoldResult) -> Self {
        Self { value: result.test.accuracy, seconds: result.seconds, finished_at: result.finished_at }
    }
}

/// Where a fold stands, by what its rows say.
pub(super) fn fold_state(
    word: &str,
    had: Option<(Attempt, WorkerId)>,
    failure: Option<Failure>,
) -> Result<FoldState, StoreError> {
    match (word, had, failure) {
        ("pending", ..) => Ok(FoldState::Pending),
        ("leased", Some((attempt, worker)), _) => Ok(FoldState::Running { attempt, worker }),
        ("finished", Some((attempt, worker)), _) => Ok(FoldState::Finished { attempt, worker }),
        ("failed", _, Some(failure)) => Ok(FoldState::Failed(failure)),
        (other, ..) => Err(impossible("state of a fold", format!("`{other}` without what belongs to it"))),
    }
}

/// Everything about a fold but what it wrote and what happened to it.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldDetail {
    /// In one line.
    pub fold: StoredFold,
    /// The sweeps that have it, with their states.
    pub sweeps: Vec<(SweepName, SweepState)>,
    /// Every attempt so far.
    pub attempts: Vec<FoldAttempt>,
}

impl FoldDetail {
    /// What keeps it from running, as far as a store that nobody serves can tell.
    pub fn reason(&self) -> String {
        let wants = |state: SweepState| !matches!(state, SweepState::Cancelled | SweepState::Archived);
        let wanted: Vec<SweepState> =
            self.sweeps.iter().map(|(_, state)| *state).filter(|state| wants(*state)).collect();
        match &self.fold.state {
            FoldState::Finished { attempt, .. } => Reason::Finished { attempt: *attempt }.to_string(),
            FoldState::Failed(failure) => Reason::Failed(failure.clone()).to_string(),
            FoldState::Running { worker, attempt } => {
                format!("it ran on {worker} (attempt {attempt}) when the coordinator was last here")
            }
            FoldState::Pending if wanted.is_empty() => Reason::NotWanted.to_string(),
            FoldState::Pending if wanted.iter().all(|state| *state == SweepState::Paused) => {
                Reason::Paused { note: None }.to_string()
            }
            FoldState::Pending => "it waits for a coordinator; `togl serve` goes on".to_owned(),
        }
    }
}

/// An attempt at a fold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldAttempt {
    /// Its number, from 1.
    pub attempt: Attempt,
    /// The worker that it was handed to.
    pub worker: WorkerId,
    /// How it ended if it brought no result.
    pub ending: Option<Ending>,
}

/// Somebody who had folds once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastWorker {
    /// The name it gave itself.
    pub worker: WorkerId,
    /// On which host.
    pub host: String,
    /// Attempts it was given.
    pub attempts: u64,
    /// Those that brought the result that counts.
    pub finished: u64,
    /// When it was given the last one, in milliseconds since 1970; 0 if that was not kept.
    pub last_at: i64,
}
