//! Which rows trials, folds, sweeps and workers are: looked up once and remembered, because every fact names them and rows keep
//! their numbers for ever. Holds nothing that the tables do not say, and is forgotten when a transaction fails.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};
use togl_sweeps::{FoldKey, TrialId, WorkerId};

use super::super::{StoreError, impossible};

/// Folds that are remembered at the most: those that are being trained, and many more.
const MOST_FOLDS: usize = 16_384;

/// Rows by what they are about.
#[derive(Debug, Default)]
pub(super) struct Known {
    trials: HashMap<TrialId, i64>,
    folds: HashMap<FoldKey, i64>,
    workers: HashMap<WorkerId, (String, i64)>,
    /// The one that was asked for last: all its folds are listed one after the other.
    sweep: Option<(String, i64)>,
}

impl Known {
    /// The row of a fold that must be there.
    pub(super) fn fold(&mut self, on: &Connection, fold: &FoldKey) -> Result<i64, StoreError> {
        if let Some(id) = self.folds.get(fold) {
            return Ok(*id);
        }
        let trial = self.trial(on, &fold.trial)?;
        let sql = "SELECT id FROM fold WHERE trial = ?1 AND split = ?2 AND seed = ?3";
        let values = params![trial, fold.split, fold.seed.cast_signed()];
        let id = on.prepare_cached(sql)?.query_row(values, |row| row.get(0)).optional()?;
        let id = id.ok_or_else(|| missing("fold", fold))?;
        if self.folds.len() >= MOST_FOLDS {
            self.folds.clear();
        }
        self.folds.insert(*fold, id);
        Ok(id)
    }

    /// The row of a trial that must be there.
    pub(super) fn trial(&mut self, on: &Connection, trial: &TrialId) -> Result<i64, StoreError> {
        if let Some(id) = self.trials.get(trial) {
            return Ok(*id);
        }
        let sql = "SELECT id FROM trial WHERE trial = ?1";
        let id = on.prepare_cached(sql)?.query_row([trial.as_bytes()], |row| row.get(0)).optional()?;
        let id = id.ok_or_else(|| missing("trial", trial))?;
        self.trials.insert(*trial, id);
        Ok(id)
    }

    /// The row of a sweep, if there is one of that name.
    pub(super) fn sweep(&mut self, on: &Connection, name: &str) -> Result<Option<i64>, StoreError> {
        if let Some((last, id)) = &self.sweep
            && last == name
        {
            return Ok(Some(*id));
        }
        let sql = "SELECT id FROM sweep WHERE name = ?1";
        let id = on.prepare_cached(sql)?.query_row([name], |row| row.get(0)).optional()?;
        self.sweep = id.map(|id| (name.to_owned(), id));
        Ok(id)
    }

    /// A sweep may have another row from now on.
    pub(super) fn forget_sweep(&mut self) {
        self.sweep = None;
    }

    /// The row of a worker, which is made if it is new.
    pub(super) fn worker(
        &mut self,
        on: &Connection,
        worker: &WorkerId,
        host: &str,
    ) -> Result<i64, StoreError> {
        if let Some((at, id)) = self.workers.get(worker)
            && at == host
        {
            return Ok(*id);
        }
        let values = params![worker.as_str(), host];
        let sql = "INSERT INTO worker (name, host) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        on.prepare_cached(sql)?.execute(values)?;
        let sql = "SELECT id FROM worker WHERE name = ?1 AND host = ?2";
        let id = on.prepare_cached(sql)?.query_row(values, |row| row.get(0))?;
        self.workers.insert(worker.clone(), (host.to_owned(), id));
        Ok(id)
    }
}

/// What was named and is not in the tables.
pub(super) fn missing(what: &'static str, which: impl ToString) -> StoreError {
    impossible(what, format!("{} is not there", which.to_string()))
}
