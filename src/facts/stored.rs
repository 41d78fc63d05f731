//! Facts from a store, whether or not a coordinator is serving it. Every request opens a reader of its own, which sees one
//! state.

use togl_coordinator::store::address::StoreAddress;
use togl_coordinator::store::history::Happened;
use togl_coordinator::store::reading::{Reading, Wanted};
use togl_coordinator::store::{LogPiece, Reader, Readers, StoreError, find_fold};
use togl_sweeps::FoldKey;
use tonic::async_trait;

use super::{AttemptLine, Explanation, Facts, Take};
use crate::embedded::RESTORE;
use crate::problem::Problem;
use crate::state::StateDir;

/// A store.
pub struct Stored {
    store: StoreAddress,
}

impl Stored {
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

#[async_trait]
impl Facts for Stored {
    fn is_live(&self) -> bool {
        false
    }

    async fn read(&mut self, wanted: Wanted, take: &mut Take<'_>) -> Result<(), Problem> {
        let mut reading = Reading::new(self.open()?, wanted).map_err(problem)?;
        while let Some(page) = reading.page().map_err(problem)? {
            page.into_iter().try_for_each(&mut *take)?;
        }
        Ok(())
    }

    async fn log(&mut self, fold: &str) -> Result<Vec<LogPiece>, Problem> {
        let reader = self.open()?;
        let fold = find_fold(reader.as_ref(), fold).map_err(problem)?;
        reader.log(&fold).map_err(problem)
    }

    async fn explain(&mut self, fold: &str) -> Result<Explanation, Problem> {
        let reader = self.open()?;
        let fold = find_fold(reader.as_ref(), fold).map_err(problem)?;
        let detail = reader.fold(&fold).map_err(problem)?;
        let detail = detail.ok_or_else(|| Problem::negative(format!("there is no fold {fold}")))?;
        let attempts = detail.attempts.iter().map(|line| AttemptLine {
            attempt: line.attempt.0,
            worker: line.worker.to_string(),
            ending: line.ending.map_or_else(String::new, |ending| ending.to_string()),
        });
        Ok(Explanation {
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
}
