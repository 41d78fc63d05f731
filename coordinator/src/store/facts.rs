//! What people look at, from the tables of either database. A result whose digest does not fit is refused rather than shown.

use togl_scheduler::Counts;
use togl_sweeps::{Failure, FoldKey, SweepName, WorkerId};

use super::database::{Cell, Database, Row, Value, all, first};
use super::history::{ACTS, Acted, Happened};
use super::queries::{self, Query};
use super::rows::fold_state;
use super::{
    FoldAttempt, FoldDetail, FoldPage, FoldQuery, LogPiece, PastWorker, Reader, ResultPage, ResultQuery,
    ResultRow, ResultSummary, StoreError, StoredFold, StoredSweep, SweepCounts, decode, impossible, lookup,
    unknown_sweep,
};

/// A store whose tables can be asked, one question after the other.
pub(super) trait Tables: Send {
    fn ask<T: Send>(
        &self,
        question: impl FnOnce(&mut dyn Database) -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError>;
}

impl<S: Tables> Reader for S {
    fn sweeps(&self) -> Result<Vec<StoredSweep>, StoreError> {
        self.ask(sweeps)
    }

    fn counts(&self, sweep: &SweepName) -> Result<SweepCounts, StoreError> {
        self.ask(|on| counts(on, sweep))
    }

    fn results(&self, query: &ResultQuery) -> Result<ResultPage, StoreError> {
        self.ask(|on| results(on, query))
    }

    fn result(&self, fold: &FoldKey) -> Result<Option<ResultRow>, StoreError> {
        self.ask(|on| first(on, queries::RESULT_OF, &key(fold), result_row))
    }

    fn folds(&self, query: &FoldQuery) -> Result<FoldPage, StoreError> {
        self.ask(|on| folds(on, query))
    }

    fn count_folds(&self, query: &FoldQuery) -> Result<u64, StoreError> {
        self.ask(|on| count_folds(on, query))
    }

    fn fold(&self, fold: &FoldKey) -> Result<Option<FoldDetail>, StoreError> {
        self.ask(|on| fold_detail(on, fold))
    }

    fn folds_between(&self, least: &FoldKey, greatest: &FoldKey) -> Result<Vec<FoldKey>, StoreError> {
        let ([from, split, seed], [to, ..]) = (key(least), key(greatest));
        self.ask(|on| all(on, queries::BETWEEN, &[from, to, split, seed], |row| row.fold(0)))
    }

    fn digits(&self) -> Result<usize, StoreError> {
        Ok(lookup::digits(self.ask(|on| all(on, queries::TRIALS, &[], |row| row.get(0)))?))
    }

    fn log(&self, fold: &FoldKey) -> Result<Vec<LogPiece>, StoreError> {
        let piece = |row: &Row<'_>| Ok(LogPiece { fold: *fold, attempt: row.get(0)?, text: row.get(1)? });
        self.ask(|on| all(on, queries::LOG, &key(fold), piece))
    }

    fn history(&self, fold: &FoldKey) -> Result<Vec<Happened>, StoreError> {
        self.ask(|on| history(on, fold))
    }

    fn acts(&self, sweep: Option<&SweepName>) -> Result<Vec<Acted>, StoreError> {
        self.ask(|on| acts(on, sweep))
    }

    fn workers(&self) -> Result<Vec<PastWorker>, StoreError> {
        self.ask(|on| all(on, queries::WORKERS, &[], past_worker))
    }

    fn transactions(&self) -> Result<u64, StoreError> {
        let number = self.ask(|on| first(on, queries::TRANSACTIONS, &[], |row| row.get::<i64>(0)))?;
        Ok(number.unwrap_or_default().unsigned_abs())
    }
}

/// What a fold is found by: trial, split and seed.
pub(super) fn key(fold: &FoldKey) -> [Cell<'_>; 3] {
    [
        Cell::Bytes(fold.trial.as_bytes()),
        Cell::Number(fold.split.into()),
        Cell::Number(fold.seed.cast_signed()),
    ]
}

fn sweeps(on: &mut dyn Database) -> Result<Vec<StoredSweep>, StoreError> {
    all(on, queries::SWEEPS, &[], |row| {
        let (name, state) = (row.word("name of a sweep", 0)?, row.word("state of a sweep", 2)?);
        Ok(StoredSweep { name, yaml: row.get(1)?, state, priority: row.get(3)? })
    })
}

/// The row of a sweep.
fn sweep_id(on: &mut dyn Database, sweep: &SweepName) -> Result<i64, StoreError> {
    let name = Cell::Text(sweep.as_str());
    let found = first(on, "SELECT id FROM sweep WHERE name = $1", &[name], |row| row.get(0))?;
    found.ok_or_else(|| unknown_sweep(sweep))
}

fn counts(on: &mut dyn Database, sweep: &SweepName) -> Result<SweepCounts, StoreError> {
    let id = sweep_id(on, sweep)?;
    let note = first(on, "SELECT note FROM sweep WHERE id = $1", &[Cell::Number(id)], |row| row.get(0))?;
    let note: String = note.flatten().unwrap_or_default();
    let counted = first(on, queries::COUNTS, &[Cell::Number(id)], |row| {
        let (pending, running, finished) = (row.get(2)?, row.get(3)?, row.get(4)?);
        let folds = Counts { pending, running, finished, failed: row.get(5)? };
        Ok(SweepCounts { trials: row.get(0)?, trials_finished: row.get(1)?, folds, note: note.clone() })
    });
    counted?.ok_or_else(|| impossible("count", "no row"))
}

fn results(on: &mut dyn Database, query: &ResultQuery) -> Result<ResultPage, StoreError> {
    let sweep = sweep_id(on, &query.sweep)?;
    let limit = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let (from, next) = (limit(query.from), limit(query.from.saturating_add(query.limit)));
    let values =
        [query.kind.as_str()].map(Cell::Text).into_iter().chain([sweep, from, next].map(Cell::Number));
    let rows = all(on, queries::RESULTS, &values.collect::<Vec<_>>(), result_row)?;
    let more = first(on, queries::MORE, &[sweep, next].map(Cell::Number), |row| row.get(0))?;
    Ok(ResultPage { rows, next: (more == Some(true)).then_some(next.cast_unsigned()) })
}

fn result_row(row: &Row<'_>) -> Result<ResultRow, StoreError> {
    let fold = row.fold(0)?;
    let result = decode(&fold, row.get(6)?, row.get(7)?)?;
    Ok(ResultRow { fold, attempt: row.get(3)?, worker: row.word("worker", 4)?, trial: row.get(5)?, result })
}

fn folds(on: &mut dyn Database, query: &FoldQuery) -> Result<FoldPage, StoreError> {
    let sweep = sweep_id(on, &query.sweep)?;
    let Query { sql, values } = queries::folds(query, sweep, on.dialect());
    let values: Vec<Cell<'_>> = values.iter().map(Value::cell).collect();
    let (mut folds, mut last): (_, u64) = (Vec::new(), 0);
    on.each(&sql, &values, &mut |row| {
        last = row.get(12)?;
        folds.push(stored_fold(row)?);
        Ok(())
    })?;
    let full = folds.len() as u64 == query.limit && !folds.is_empty();
    Ok(FoldPage { folds, next: full.then_some(last.saturating_add(1)) })
}

fn count_folds(on: &mut dyn Database, query: &FoldQuery) -> Result<u64, StoreError> {
    let sweep = sweep_id(on, &query.sweep)?;
    let Query { sql, values } = queries::count_folds(query, sweep, on.dialect());
    let values: Vec<Cell<'_>> = values.iter().map(Value::cell).collect();
    first(on, &sql, &values, |row| row.get(0))?.ok_or_else(|| impossible("count", "no row"))
}

fn stored_fold(row: &Row<'_>) -> Result<StoredFold, StoreError> {
    let worker: Option<WorkerId> = row.maybe_word("worker", 8)?;
    let failure = match row.maybe_word("failure class", 5)? {
        Some(class) => Some(Failure { class, message: row.get::<Option<_>>(6)?.unwrap_or_default() }),
        None => None,
    };
    Ok(StoredFold {
        fold: row.fold(0)?,
        trial: row.get(3)?,
        state: fold_state(row.get(4)?, row.get::<Option<_>>(7)?.zip(worker.clone()), failure)?,
        attempts: row.get(10)?,
        worker,
        outcome: row.get::<Option<_>>(9)?.map(ResultSummary::read).transpose()?,
    })
}

fn fold_detail(on: &mut dyn Database, fold: &FoldKey) -> Result<Option<FoldDetail>, StoreError> {
    let found = first(on, &queries::fold(), &key(fold), |row| Ok((row.get(11)?, stored_fold(row)?)))?;
    let Some((id, fold)) = found else { return Ok(None) };
    let sweeps = all(on, queries::SWEEPS_OF, &[Cell::Number(id)], |row| {
        Ok((row.word("name of a sweep", 0)?, row.word("state of a sweep", 1)?))
    })?;
    let attempts = all(on, queries::ATTEMPTS_OF, &[Cell::Number(id)], |row| {
        let (worker, ending) = (row.word("worker", 1)?, row.maybe_word("ending", 2)?);
        Ok(FoldAttempt { attempt: row.get(0)?, worker, ending })
    })?;
    Ok(Some(FoldDetail { fold, sweeps, attempts }))
}

fn past_worker(row: &Row<'_>) -> Result<PastWorker, StoreError> {
    Ok(PastWorker {
        worker: row.word("worker", 0)?,
        host: row.get(1)?,
        attempts: row.get(2)?,
        finished: row.get(3)?,
        last_at: row.get(4)?,
    })
}

fn history(on: &mut dyn Database, fold: &FoldKey) -> Result<Vec<Happened>, StoreError> {
    let Some(id) = first(on, queries::FOLD_ID, &key(fold), |row| row.get(0))? else { return Ok(Vec::new()) };
    all(on, queries::HISTORY, &[Cell::Number(id)], |row| {
        // The row of an attempt says where it was leased, in place of a note.
        let detail = match row.get(4)? {
            Some(detail) => detail,
            None => format!("on {}", row.get::<&str>(5)?),
        };
        Ok(Happened {
            at: row.get(0)?,
            event: row.get(1)?,
            attempt: row.get(2)?,
            worker: row.maybe_word("worker", 3)?,
            detail,
        })
    })
}

fn acts(on: &mut dyn Database, sweep: Option<&SweepName>) -> Result<Vec<Acted>, StoreError> {
    let (sql, named) = match sweep {
        Some(sweep) => (queries::ACTS_OF_SWEEP, Some(Cell::Text(sweep.as_str()))),
        None => (queries::ACTS, None),
    };
    let values: Vec<Cell<'_>> = named.into_iter().chain([Cell::Number(ACTS as i64)]).collect();
    let mut acts = all(on, sql, &values, |row| {
        let (sweep, about): (Option<String>, Option<String>) = (row.get(3)?, row.get(4)?);
        Ok(Acted {
            at: row.get(0)?,
            by: row.get(1)?,
            act: row.get(2)?,
            about: sweep.or(about).unwrap_or_default(),
            detail: row.get(5)?,
            reason: row.get(6)?,
        })
    })?;
    acts.reverse(); // the last ones were asked for
    Ok(acts)
}
