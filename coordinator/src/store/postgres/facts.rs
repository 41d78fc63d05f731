//! What people look at, from the tables. Everything that comes back is checked: a value that cannot have been stored is a
//! typed error, and a result whose digest does not fit is refused rather than shown.

use ::postgres::types::ToSql;
use ::postgres::{Client, Row};
use togl_scheduler::{Counts, Digest};
use togl_sweeps::{Attempt, Failure, FoldKey, SweepName, WorkerId};

use super::super::copy::Value;
use super::super::history::Happened;
use super::super::queries::{self, Dialect, Query};
use super::super::rows::fold_state;
use super::super::{
    FoldAttempt, FoldDetail, FoldPage, FoldQuery, LogPiece, Outcome, PastWorker, ResultPage, ResultQuery,
    ResultRow, StoredFold, StoredSweep, SweepCounts, decode, impossible, lookup, unknown_sweep, word,
};
use super::Failed;
use super::read::{fold_key, number, text, trial_id};

/// All sweeps, in the order of their first submission.
pub(super) fn sweeps(client: &mut Client) -> Result<Vec<StoredSweep>, Failed> {
    let mut sweeps = Vec::new();
    for row in
        client.query("SELECT name, yaml, state, priority FROM sweep WHERE name <> '' ORDER BY place", &[])?
    {
        let priority: i64 = row.try_get(3)?;
        sweeps.push(StoredSweep {
            name: word("name of a sweep", row.try_get(0)?)?,
            yaml: text("text of a sweep", row.try_get(1)?)?,
            state: word("state of a sweep", row.try_get(2)?)?,
            priority: priority.try_into().map_err(|_| impossible("priority", priority))?,
        });
    }
    Ok(sweeps)
}

/// The row of a sweep.
fn sweep_id(client: &mut Client, sweep: &SweepName) -> Result<i64, Failed> {
    let found = client.query_opt("SELECT id FROM sweep WHERE name = $1", &[&sweep.as_str()])?;
    Ok(found.ok_or_else(|| unknown_sweep(sweep))?.try_get(0)?)
}

/// What has become of the folds of a sweep.
pub(super) fn counts(client: &mut Client, sweep: &SweepName) -> Result<SweepCounts, Failed> {
    let id = sweep_id(client, sweep)?;
    let row = client.query_one("SELECT note FROM sweep WHERE id = $1", &[&id])?;
    let note: Option<Vec<u8>> = row.try_get(0)?;
    let row = client.query_one(queries::COUNTS, &[&id])?;
    let count = |column| Ok::<_, Failed>(row.try_get::<_, i64>(column)?.cast_unsigned());
    Ok(SweepCounts {
        trials: count(0)?,
        trials_finished: count(1)?,
        folds: Counts { pending: count(2)?, running: count(3)?, finished: count(4)?, failed: count(5)? },
        note: text("note", note.unwrap_or_default())?,
    })
}

/// A page of results.
pub(super) fn results(client: &mut Client, query: &ResultQuery) -> Result<ResultPage, Failed> {
    let sweep = sweep_id(client, &query.sweep)?;
    let limit = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let (from, next) = (limit(query.from), limit(query.from.saturating_add(query.limit)));
    let mut rows = Vec::new();
    for row in client.query(queries::RESULTS, &[&query.kind.as_str(), &sweep, &from, &next])? {
        rows.push(result_row(&row)?);
    }
    let more: bool = client.query_one(queries::MORE, &[&sweep, &next])?.try_get(0)?;
    Ok(ResultPage { rows, next: more.then_some(next.cast_unsigned()) })
}

fn result_row(row: &Row) -> Result<ResultRow, Failed> {
    let fold = fold_key(row, 0)?;
    let digest = Digest(row.try_get::<_, i64>(6)?.cast_unsigned());
    Ok(ResultRow {
        fold,
        attempt: Attempt(number("attempt", row.try_get(3)?)?),
        worker: word("worker", row.try_get(4)?)?,
        trial: row.try_get(5)?,
        result: decode(&fold, digest, row.try_get(7)?)?,
    })
}

/// The rows of a statement that was put together.
fn rows_of(client: &mut Client, query: &Query) -> Result<Vec<Row>, Failed> {
    let values: Vec<&(dyn ToSql + Sync)> = query.values.iter().map(value).collect();
    Ok(client.query(&query.sql, &values)?)
}

fn value(value: &Value) -> &(dyn ToSql + Sync) {
    match value {
        Value::Null => &None::<i64>,
        Value::Number(number) => number,
        Value::Text(text) => text,
        Value::Bytes(bytes) => bytes,
    }
}

/// A page of folds.
pub(super) fn folds(client: &mut Client, query: &FoldQuery) -> Result<FoldPage, Failed> {
    let sweep = sweep_id(client, &query.sweep)?;
    let (mut folds, mut last) = (Vec::new(), 0);
    for row in rows_of(client, &queries::folds(query, sweep, Dialect::Postgres))? {
        last = row.try_get::<_, i64>(12)?.cast_unsigned();
        folds.push(stored_fold(&row)?);
    }
    let full = folds.len() as u64 == query.limit && !folds.is_empty();
    Ok(FoldPage { folds, next: full.then_some(last.saturating_add(1)) })
}

/// How many folds a query has.
pub(super) fn count_folds(client: &mut Client, query: &FoldQuery) -> Result<u64, Failed> {
    let sweep = sweep_id(client, &query.sweep)?;
    let rows = rows_of(client, &queries::count_folds(query, sweep, Dialect::Postgres))?;
    let row = rows.first().ok_or_else(|| impossible("count", "no row"))?;
    Ok(row.try_get::<_, i64>(0)?.cast_unsigned())
}

fn stored_fold(row: &Row) -> Result<StoredFold, Failed> {
    let (class, message): (Option<&str>, Option<Vec<u8>>) = (row.try_get(5)?, row.try_get(6)?);
    let (attempt, name): (Option<i64>, Option<&str>) = (row.try_get(7)?, row.try_get(8)?);
    let worker: Option<WorkerId> = name.map(|name| word("worker", name)).transpose()?;
    let attempt = attempt.map(|attempt| number("attempt", attempt)).transpose()?.map(Attempt);
    let failure = match class {
        Some(class) => Some(Failure {
            class: word("failure class", class)?,
            message: text("message", message.unwrap_or_default())?,
        }),
        None => None,
    };
    let body: Option<&str> = row.try_get(9)?;
    Ok(StoredFold {
        fold: fold_key(row, 0)?,
        trial: row.try_get(3)?,
        state: fold_state(row.try_get(4)?, attempt.zip(worker.clone()), failure)?,
        attempts: number("number of attempts", row.try_get(10)?)?,
        worker,
        outcome: body.map(Outcome::read).transpose()?,
    })
}

/// Everything about a fold.
pub(super) fn fold(client: &mut Client, fold: &FoldKey) -> Result<Option<FoldDetail>, Failed> {
    let (split, seed) = (i64::from(fold.split), fold.seed.cast_signed());
    let trial: &[u8] = fold.trial.as_bytes();
    let Some(row) = client.query_opt(&queries::fold(), &[&trial, &split, &seed])? else { return Ok(None) };
    let (id, fold): (i64, StoredFold) = (row.try_get(11)?, stored_fold(&row)?);
    let (mut sweeps, mut attempts) = (Vec::new(), Vec::new());
    for row in client.query(queries::SWEEPS_OF, &[&id])? {
        sweeps.push((word("name of a sweep", row.try_get(0)?)?, word("state of a sweep", row.try_get(1)?)?));
    }
    for row in client.query(queries::ATTEMPTS_OF, &[&id])? {
        let ending: Option<&str> = row.try_get(2)?;
        attempts.push(FoldAttempt {
            attempt: Attempt(number("attempt", row.try_get(0)?)?),
            worker: word("worker", row.try_get(1)?)?,
            ending: ending.map(|ending| word("ending", ending)).transpose()?,
        });
    }
    Ok(Some(FoldDetail { fold, sweeps, attempts }))
}

/// The first two folds between two trials.
pub(super) fn folds_between(
    client: &mut Client,
    least: &FoldKey,
    greatest: &FoldKey,
) -> Result<Vec<FoldKey>, Failed> {
    let (split, seed) = (i64::from(least.split), least.seed.cast_signed());
    let [from, to]: [&[u8]; 2] = [least.trial.as_bytes(), greatest.trial.as_bytes()];
    let rows = client.query(queries::BETWEEN, &[&from, &to, &split, &seed])?;
    rows.iter().map(|row| fold_key(row, 0)).collect()
}

/// How many digits tell all trials apart.
pub(super) fn digits(client: &mut Client) -> Result<usize, Failed> {
    let rows = client.query(queries::TRIALS, &[])?;
    let trials: Result<Vec<_>, Failed> = rows.iter().map(|row| Ok(trial_id(row.try_get(0)?)?)).collect();
    Ok(lookup::digits(trials?))
}

/// Everybody who ever had a fold.
pub(super) fn workers(client: &mut Client) -> Result<Vec<PastWorker>, Failed> {
    let mut workers = Vec::new();
    for row in client.query(queries::WORKERS, &[])? {
        workers.push(PastWorker {
            worker: word("worker", row.try_get(0)?)?,
            host: text("host", row.try_get(1)?)?,
            attempts: row.try_get::<_, i64>(2)?.cast_unsigned(),
            finished: row.try_get::<_, i64>(3)?.cast_unsigned(),
            last_at: row.try_get(4)?,
        });
    }
    Ok(workers)
}

/// What the trainers of a fold wrote.
pub(super) fn log(client: &mut Client, fold: &FoldKey) -> Result<Vec<LogPiece>, Failed> {
    let sql = "SELECT log.attempt, log.text FROM trial JOIN fold ON fold.trial = trial.id
               JOIN log ON log.fold = fold.id
               WHERE trial.trial = $1 AND fold.split = $2 AND fold.seed = $3 ORDER BY log.attempt";
    let (split, seed) = (i64::from(fold.split), fold.seed.cast_signed());
    let trial: &[u8] = fold.trial.as_bytes();
    let mut pieces = Vec::new();
    for row in client.query(sql, &[&trial, &split, &seed])? {
        let attempt = Attempt(number("attempt", row.try_get(0)?)?);
        pieces.push(LogPiece { fold: *fold, attempt, text: text("log", row.try_get(1)?)? });
    }
    Ok(pieces)
}

/// What happened to a fold.
pub(super) fn history(client: &mut Client, fold: &FoldKey) -> Result<Vec<Happened>, Failed> {
    let sql = "SELECT h.at, h.event, h.attempt, worker.name, coalesce(h.detail, 'on '::bytea || worker.host)
               FROM trial JOIN fold ON fold.trial = trial.id
               CROSS JOIN LATERAL (
                   SELECT number, at, event, attempt, detail FROM history WHERE history.fold = fold.id
                   UNION ALL
                   SELECT number, at, 'leased', attempt, NULL FROM attempt
                   WHERE attempt.fold = fold.id AND number <> 0
                   UNION ALL
                   SELECT number, at, 'accepted', attempt, ''::bytea FROM result
                   WHERE result.fold = fold.id AND number <> 0) AS h
               LEFT JOIN attempt ON attempt.fold = fold.id AND attempt.attempt = h.attempt
               LEFT JOIN worker ON worker.id = attempt.worker
               WHERE trial.trial = $1 AND fold.split = $2 AND fold.seed = $3 ORDER BY h.number";
    let (split, seed) = (i64::from(fold.split), fold.seed.cast_signed());
    let trial: &[u8] = fold.trial.as_bytes();
    let mut happened = Vec::new();
    for row in client.query(sql, &[&trial, &split, &seed])? {
        let (attempt, worker): (Option<i64>, Option<&str>) = (row.try_get(2)?, row.try_get(3)?);
        happened.push(Happened {
            at: row.try_get(0)?,
            event: row.try_get(1)?,
            attempt: attempt.map(|attempt| number("attempt", attempt)).transpose()?.map(Attempt),
            worker: worker.map(|name| word("worker", name)).transpose()?,
            detail: text("detail", row.try_get(4)?)?,
        });
    }
    Ok(happened)
}
