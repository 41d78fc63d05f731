//! Facts from a store, whether or not a coordinator is serving it. Every request opens a reader of its own, which sees one
//! state.

use std::collections::BTreeMap;

use togl_coordinator::store::address::StoreAddress;
use togl_coordinator::store::history::{Acted, Happened};
use togl_coordinator::store::reading::{self, Fact, Reading, Wanted, find_sweep};
use togl_coordinator::store::{
    FoldFilter, FoldQuery, FoldState, FoldWord, LogPiece, Reader, Readers, StoreError, StoredFold,
    StoredSweep, SweepCounts, SweepState, find_fold,
};
use togl_sweeps::identity::respelled;
use togl_sweeps::{FoldKey, WorkerId};
use tonic::async_trait;

use super::{AttemptLine, Facts, FoldExplanation, KnownWorkers, TakeFacts, sweep_name};
use crate::embedded::RESTORE;
use crate::problem::Problem;
use crate::remote::{FoldGivenUp, FoldInTraining, ListedSweep, SweepStatus, fold_title, scale};
use crate::state::StateDir;

/// Folds of one kind that a status shows.
const SHOWN: u64 = 100;

/// A store.
pub struct StoredFacts {
    store: StoreAddress,
}

impl StoredFacts {
    /// The store of a state directory.
    pub fn new(state: &StateDir) -> Self {
        Self { store: state.store().clone() }
    }

    fn open(&self) -> Result<Box<dyn Reader>, Problem> {
        self.store.open_reader().map_err(|error| match error.is_damage() {
            true => Problem::usage(error).hint(RESTORE),
            false => Problem::usage(error).hint("run a sweep first, or choose another folder with --state"),
        })
    }
}

/// What an error of a store that was opened means for the user.
fn problem(error: StoreError) -> Problem {
    match error {
        StoreError::UnknownSweep { .. } | StoreError::Fold(_) => Problem::negative(error),
        other => Problem::ours(other),
    }
}

/// Results of a data set that was spelt in another way belong to the trial that is called so now. A store is renamed only
/// by who writes to it, and this reads.
pub fn under_its_name(mut fact: Fact) -> Fact {
    let (fold, trial) = match &mut fact {
        Fact::Result(row) => (&mut row.fold, &mut row.trial),
        Fact::Replicate(row) => (&mut row.fold, &mut row.trial),
        Fact::Sweep(_) | Fact::Folds { .. } | Fact::Fold(_) => return fact, // ids of folds are looked up as they are
    };
    if let Some((id, text)) = respelled(trial) {
        (fold.trial, *trial) = (id, text);
    }
    fact
}

fn sweep(stored: StoredSweep, counts: SweepCounts) -> ListedSweep {
    let SweepCounts { trials, folds, note, .. } = counts;
    let sweep = ListedSweep {
        name: stored.name.to_string(),
        state: stored.state.to_string(),
        trials,
        folds: folds.total(),
        pending: folds.pending,
        running: folds.running,
        finished: folds.finished,
        failed: folds.failed,
        priority: stored.priority,
        note,
    };
    sweep.settled()
}

fn running(fold: StoredFold) -> Option<FoldInTraining> {
    let FoldState::Running { attempt, worker } = fold.state else { return None };
    Some(FoldInTraining {
        title: fold_title(&fold.trial, fold.fold.split, fold.fold.seed),
        fold: fold.fold.to_string(),
        attempt: attempt.0,
        worker: worker.to_string(),
        slot: 0,
        epoch: 0,
        max_epochs: 0,
        validation_accuracy: None,
        scale: scale(&fold.trial),
    })
}

fn failed(fold: StoredFold) -> Option<FoldGivenUp> {
    let FoldState::Failed(failure) = fold.state else { return None };
    Some(FoldGivenUp {
        title: fold_title(&fold.trial, fold.fold.split, fold.fold.seed),
        fold: fold.fold.to_string(),
        class: failure.class.to_string(),
        message: failure.message,
        host: fold.worker.as_ref().map(WorkerId::to_string).unwrap_or_default(),
    })
}

#[async_trait]
impl Facts for StoredFacts {
    fn is_live(&self) -> bool {
        false
    }

    async fn read(&mut self, wanted: Wanted, take: &mut TakeFacts<'_>) -> Result<(), Problem> {
        let mut reading = Reading::new(self.open()?, wanted).map_err(problem)?;
        while let Some(page) = reading.page().map_err(problem)? {
            page.into_iter().map(under_its_name).try_for_each(&mut *take)?;
        }
        Ok(())
    }

    async fn sweeps(&mut self, archived: bool) -> Result<Vec<ListedSweep>, Problem> {
        let reader = self.open()?;
        let mut sweeps = reader.sweeps().map_err(problem)?;
        sweeps.retain(|sweep| archived || sweep.state != SweepState::Archived);
        let counted = |stored: StoredSweep| {
            let counts = reader.counts(&stored.name).map_err(problem)?;
            Ok(sweep(stored, counts))
        };
        sweeps.into_iter().map(counted).collect()
    }

    async fn status(&mut self, name: &str) -> Result<SweepStatus, Problem> {
        let reader = self.open()?;
        let stored = find_sweep(reader.as_ref(), &sweep_name(name)?).map_err(problem)?;
        let counts = reader.counts(&stored.name).map_err(problem)?;
        let listed = |state| {
            let filter = FoldFilter { states: vec![state], ..FoldFilter::default() };
            let query = FoldQuery { sweep: stored.name.clone(), filter, from: 0, skip: 0, limit: SHOWN };
            Ok::<_, Problem>(reader.folds(&query).map_err(problem)?.folds.into_iter())
        };
        Ok(SweepStatus {
            trials_finished: counts.trials_finished,
            eta_seconds: 0,
            in_training: listed(FoldWord::Running)?.filter_map(running).collect(),
            failures: listed(FoldWord::Failed)?.filter_map(failed).collect(),
            sweep: sweep(stored, counts),
            failed_by_class: BTreeMap::new(), // only a coordinator counts them
            standstill: String::new(),
            race: String::new(),
        })
    }

    async fn workers(&mut self) -> Result<KnownWorkers, Problem> {
        Ok(KnownWorkers::Past(self.open()?.workers().map_err(problem)?))
    }

    async fn log(&mut self, fold: &str) -> Result<Vec<LogPiece>, Problem> {
        let reader = self.open()?;
        let fold = find_fold(reader.as_ref(), fold).map_err(problem)?;
        reader.log(&fold).map_err(problem)
    }

    async fn explain(&mut self, fold: &str) -> Result<FoldExplanation, Problem> {
        let reader = self.open()?;
        let fold = find_fold(reader.as_ref(), fold).map_err(problem)?;
        let detail = reader.fold(&fold).map_err(problem)?;
        let detail = detail.ok_or_else(|| Problem::negative(format!("there is no fold {fold}")))?;
        let attempts = detail.attempts.iter().map(|line| AttemptLine {
            attempt: line.attempt.0,
            worker: line.worker.to_string(),
            ending: line.ending.map_or_else(String::new, |ending| ending.to_string()),
        });
        Ok(FoldExplanation {
            fold: fold.to_string(),
            reason: detail.reason(),
            sweeps: detail.sweeps.iter().map(|(name, _)| name.to_string()).collect(),
            attempts: attempts.collect(),
        })
    }

    async fn history(&mut self, fold: &str) -> Result<(FoldKey, Vec<Happened>), Problem> {
        let reader = self.open()?;
        let fold = find_fold(reader.as_ref(), fold).map_err(problem)?;
        Ok((fold, reader.history(&fold).map_err(problem)?))
    }

    async fn acts(&mut self, sweep: Option<&str>) -> Result<Vec<Acted>, Problem> {
        let sweep = sweep.map(sweep_name).transpose()?;
        reading::acts(self.open()?.as_ref(), sweep.as_ref()).map_err(problem)
    }
}

#[cfg(test)]
mod tests {
    use togl_coordinator::store::ResultRow;
    use togl_sweeps::{Attempt, TrialConfig};

    use super::*;

    #[test]
    fn a_result_of_a_data_set_in_another_case_is_read_under_its_one_spelling() {
        let now = TrialConfig { dataset: "DD".to_owned(), ..TrialConfig::default() };
        let before = now.canonical().replace(r#""DD""#, r#""dd""#);
        let fold = FoldKey { trial: "0".repeat(32).parse().unwrap(), split: 3, seed: 0 };
        let (worker, result) = ("w".parse().unwrap(), togl_sweeps::result::example(0.5));
        let row = ResultRow { fold, attempt: Attempt(1), worker, trial: before, result };
        let Fact::Result(read) = under_its_name(Fact::Result(Box::new(row))) else {
            panic!("still a result")
        };
        assert_eq!((read.fold, read.trial), (FoldKey { trial: now.id(), ..fold }, now.canonical()));
    }
}
