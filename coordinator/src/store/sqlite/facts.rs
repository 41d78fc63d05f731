//! What people look at, from the tables. Everything that comes back is checked: a value that cannot have been stored is a
//! typed error, and a result whose digest does not fit is refused rather than shown.

use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};
use togl_scheduler::{Counts, Digest};
use togl_sweeps::{Attempt, Failure, FoldKey, SweepName, TrialId, WorkerId};

use super::super::history::Happened;
use super::super::queries::{self, Dialect, Query};
use super::super::rows::fold_state;
use super::super::{
    FoldAttempt, FoldDetail, FoldPage, FoldQuery, LogPiece, Outcome, PastWorker, Reader, ResultPage,
    ResultQuery, ResultRow, StoreError, StoredFold, StoredSweep, SweepCounts, decode, lookup, unknown_sweep,
    word,
};
use super::known::find_fold;
use super::read::fold_key;
use super::{SqliteReader, refine};

/// All sweeps, in the order of their first submission.
fn sweeps(on: &Connection) -> Result<Vec<StoredSweep>, StoreError> {
    let mut statement =
        on.prepare_cached("SELECT name, yaml, state, priority FROM sweep WHERE name <> '' ORDER BY place")?;
    let mut rows = statement.query([])?;
    let mut sweeps = Vec::new();
    while let Some(row) = rows.next()? {
        let (name, state): (String, String) = (row.get(0)?, row.get(2)?);
        let (name, state) = (word("name of a sweep", &name)?, word("state of a sweep", &state)?);
        sweeps.push(StoredSweep { name, yaml: row.get(1)?, state, priority: row.get(3)? });
    }
    Ok(sweeps)
}

/// The row of a sweep.
fn sweep_id(on: &Connection, sweep: &SweepName) -> Result<i64, StoreError> {
    let mut statement = on.prepare_cached("SELECT id FROM sweep WHERE name = ?1")?;
    let found = statement.query_row([sweep.as_str()], |row| row.get(0)).optional()?;
    found.ok_or_else(|| unknown_sweep(sweep))
}

/// What has become of the folds of a sweep.
fn counts(on: &Connection, sweep: &SweepName) -> Result<SweepCounts, StoreError> {
    let id = sweep_id(on, sweep)?;
    let note: Option<String> =
        on.query_row("SELECT note FROM sweep WHERE id = ?1", [id], |row| row.get(0))?;
    let number = |row: &Row<'_>, column| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)?.cast_unsigned());
    let counts = on.prepare_cached(queries::COUNTS)?.query_row([id], |row| {
        Ok(SweepCounts {
            trials: number(row, 0)?,
            trials_finished: number(row, 1)?,
            folds: Counts {
                pending: number(row, 2)?,
                running: number(row, 3)?,
                finished: number(row, 4)?,
                failed: number(row, 5)?,
            },
            note: note.unwrap_or_default(),
        })
    });
    Ok(counts?)
}

/// A page of results.
fn results(on: &Connection, query: &ResultQuery) -> Result<ResultPage, StoreError> {
    let sweep = sweep_id(on, &query.sweep)?;
    let limit = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let (from, next) = (limit(query.from), limit(query.from.saturating_add(query.limit)));
    let mut statement = on.prepare_cached(queries::RESULTS)?;
    let mut found = statement.query(params![query.kind.as_str(), sweep, from, next])?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        rows.push(result_row(row)?);
    }
    let more: bool = on.prepare_cached(queries::MORE)?.query_row([sweep, next], |row| row.get(0))?;
    Ok(ResultPage { rows, next: more.then_some(next.cast_unsigned()) })
}

fn result_row(row: &Row<'_>) -> Result<ResultRow, StoreError> {
    let fold = fold_key(row, 0)?;
    let body = row.get_ref(7)?.as_str().map_err(rusqlite::Error::from)?;
    let result = decode(&fold, Digest(row.get::<_, i64>(6)?.cast_unsigned()), body)?;
    let worker = worker(&row.get::<_, String>(4)?)?;
    Ok(ResultRow { fold, attempt: Attempt(row.get(3)?), worker, trial: row.get(5)?, result })
}

fn worker(name: &str) -> Result<WorkerId, StoreError> {
    word("worker", name)
}

/// A page of folds.
fn folds(on: &Connection, query: &FoldQuery) -> Result<FoldPage, StoreError> {
    let Query { sql, values } = queries::folds(query, sweep_id(on, &query.sweep)?, Dialect::Sqlite);
    let mut statement = on.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let (mut folds, mut last) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        last = row.get::<_, i64>(12)?.cast_unsigned();
        folds.push(stored_fold(row)?);
    }
    let full = folds.len() as u64 == query.limit && !folds.is_empty();
    Ok(FoldPage { folds, next: full.then_some(last.saturating_add(1)) })
}

/// How many folds a query has.
fn count_folds(on: &Connection, query: &FoldQuery) -> Result<u64, StoreError> {
    let Query { sql, values } = queries::count_folds(query, sweep_id(on, &query.sweep)?, Dialect::Sqlite);
    let count: i64 = on.prepare_cached(&sql)?.query_row(params_from_iter(values), |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

fn stored_fold(row: &Row<'_>) -> Result<StoredFold, StoreError> {
    let (state, class): (String, Option<String>) = (row.get(4)?, row.get(5)?);
    let (attempt, name): (Option<u32>, Option<String>) = (row.get(7)?, row.get(8)?);
    let had_by = name.map(|name| worker(&name)).transpose()?;
    let failure = match class {
        Some(class) => Some(Failure {
            class: word("failure class", &class)?,
            message: row.get::<_, Option<String>>(6)?.unwrap_or_default(),
        }),
        None => None,
    };
    let body = row.get_ref(9)?.as_str_or_null().map_err(rusqlite::Error::from)?;
    Ok(StoredFold {
        fold: fold_key(row, 0)?,
        trial: row.get(3)?,
        state: fold_state(&state, attempt.map(Attempt).zip(had_by.clone()), failure)?,
        attempts: row.get(10)?,
        worker: had_by,
        outcome: body.map(Outcome::read).transpose()?,
    })
}

/// Everything about a fold.
fn fold_detail(on: &Connection, fold: &FoldKey) -> Result<Option<FoldDetail>, StoreError> {
    let mut statement = on.prepare_cached(&queries::fold())?;
    let mut rows = statement.query(params![fold.trial.as_bytes(), fold.split, fold.seed.cast_signed()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let (id, fold): (i64, StoredFold) = (row.get(11)?, stored_fold(row)?);
    let (mut sweeps, mut attempts) = (Vec::new(), Vec::new());
    let mut statement = on.prepare_cached(queries::SWEEPS_OF)?;
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        let (name, state): (String, String) = (row.get(0)?, row.get(1)?);
        sweeps.push((word("name of a sweep", &name)?, word("state of a sweep", &state)?));
    }
    let mut statement = on.prepare_cached(queries::ATTEMPTS_OF)?;
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        let (name, ending): (String, Option<String>) = (row.get(1)?, row.get(2)?);
        let ending = ending.map(|ending| word("ending", &ending)).transpose()?;
        attempts.push(FoldAttempt { attempt: Attempt(row.get(0)?), worker: worker(&name)?, ending });
    }
    Ok(Some(FoldDetail { fold, sweeps, attempts }))
}

/// The first two folds between two trials.
fn folds_between(on: &Connection, least: &FoldKey, greatest: &FoldKey) -> Result<Vec<FoldKey>, StoreError> {
    let seed = least.seed.cast_signed();
    let mut statement = on.prepare_cached(queries::BETWEEN)?;
    let mut rows =
        statement.query(params![least.trial.as_bytes(), greatest.trial.as_bytes(), least.split, seed])?;
    let mut folds = Vec::new();
    while let Some(row) = rows.next()? {
        folds.push(fold_key(row, 0)?);
    }
    Ok(folds)
}

/// How many digits tell all trials apart.
fn digits(on: &Connection) -> Result<usize, StoreError> {
    let mut statement = on.prepare_cached(queries::TRIALS)?;
    let trials = statement.query_map([], |row| Ok(TrialId::from_bytes(row.get(0)?)))?;
    Ok(lookup::digits(trials.collect::<Result<Vec<_>, _>>()?))
}

/// Everybody who ever had a fold.
fn workers(on: &Connection) -> Result<Vec<PastWorker>, StoreError> {
    let mut statement = on.prepare_cached(queries::WORKERS)?;
    let mut rows = statement.query([])?;
    let mut workers = Vec::new();
    while let Some(row) = rows.next()? {
        workers.push(PastWorker {
            worker: worker(&row.get::<_, String>(0)?)?,
            host: row.get(1)?,
            attempts: row.get::<_, i64>(2)?.cast_unsigned(),
            finished: row.get::<_, i64>(3)?.cast_unsigned(),
            last_at: row.get(4)?,
        });
    }
    Ok(workers)
}

/// What the trainers of a fold wrote.
fn log(on: &Connection, fold: &FoldKey) -> Result<Vec<LogPiece>, StoreError> {
    let Some(id) = find_fold(on, fold)? else { return Ok(Vec::new()) };
    let mut statement =
        on.prepare_cached("SELECT attempt, text FROM log WHERE fold = ?1 ORDER BY attempt")?;
    let pieces = statement.query_map([id], |row| {
        Ok(LogPiece { fold: *fold, attempt: Attempt(row.get(0)?), text: row.get(1)? })
    })?;
    Ok(pieces.collect::<Result<_, _>>()?)
}

/// What happened to a fold.
fn history(on: &Connection, fold: &FoldKey) -> Result<Vec<Happened>, StoreError> {
    let Some(id) = find_fold(on, fold)? else { return Ok(Vec::new()) };
    let sql = "SELECT h.at, h.event, h.attempt, worker.name, coalesce(h.detail, 'on ' || worker.host)
               FROM (SELECT number, at, event, attempt, detail FROM history WHERE fold = ?1
                   UNION ALL
                   SELECT number, at, 'leased', attempt, NULL FROM attempt WHERE fold = ?1 AND number <> 0
                   UNION ALL
                   SELECT number, at, 'accepted', attempt, '' FROM result WHERE fold = ?1 AND number <> 0) AS h
               LEFT JOIN attempt ON attempt.fold = ?1 AND attempt.attempt = h.attempt
               LEFT JOIN worker ON worker.id = attempt.worker
               ORDER BY h.number";
    let mut statement = on.prepare_cached(sql)?;
    let mut rows = statement.query([id])?;
    let mut happened = Vec::new();
    while let Some(row) = rows.next()? {
        let worker: Option<String> = row.get(3)?;
        let worker = worker.map(|name| word("worker", &name)).transpose()?;
        let attempt = row.get::<_, Option<u32>>(2)?.map(Attempt);
        happened.push(Happened { at: row.get(0)?, event: row.get(1)?, attempt, worker, detail: row.get(4)? });
    }
    Ok(happened)
}

impl SqliteReader {
    fn refined<T>(&self, read: Result<T, StoreError>) -> Result<T, StoreError> {
        read.map_err(|error| refine(&self.path, error))
    }
}

impl Reader for SqliteReader {
    fn sweeps(&self) -> Result<Vec<StoredSweep>, StoreError> {
        self.refined(sweeps(&self.connection))
    }

    fn counts(&self, sweep: &SweepName) -> Result<SweepCounts, StoreError> {
        self.refined(counts(&self.connection, sweep))
    }

    fn results(&self, query: &ResultQuery) -> Result<ResultPage, StoreError> {
        self.refined(results(&self.connection, query))
    }

    fn folds(&self, query: &FoldQuery) -> Result<FoldPage, StoreError> {
        self.refined(folds(&self.connection, query))
    }

    fn count_folds(&self, query: &FoldQuery) -> Result<u64, StoreError> {
        self.refined(count_folds(&self.connection, query))
    }

    fn fold(&self, fold: &FoldKey) -> Result<Option<FoldDetail>, StoreError> {
        self.refined(fold_detail(&self.connection, fold))
    }

    fn folds_between(&self, least: &FoldKey, greatest: &FoldKey) -> Result<Vec<FoldKey>, StoreError> {
        self.refined(folds_between(&self.connection, least, greatest))
    }

    fn digits(&self) -> Result<usize, StoreError> {
        self.refined(digits(&self.connection))
    }

    fn log(&self, fold: &FoldKey) -> Result<Vec<LogPiece>, StoreError> {
        self.refined(log(&self.connection, fold))
    }

    fn history(&self, fold: &FoldKey) -> Result<Vec<Happened>, StoreError> {
        self.refined(history(&self.connection, fold))
    }

    fn workers(&self) -> Result<Vec<PastWorker>, StoreError> {
        self.refined(workers(&self.connection))
    }
}
