//! SQL that both databases understand as it is, with `$1` for values, and the few words that differ. Builds text;
//! who runs it reads the rows.

use super::database::Value;
use super::tables::Dialect;
use super::{FoldFilter, FoldQuery, rows};

/// A statement with its values.
pub(super) struct Query {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

/// All sweeps, in the order of their first submission.
pub(super) const SWEEPS: &str =
    "SELECT name, yaml, state, priority FROM sweep WHERE name <> '' ORDER BY place";

/// The row of a fold: trial, split, seed.
pub(super) const FOLD_ID: &str = "
    SELECT fold.id FROM trial JOIN fold ON fold.trial = trial.id
    WHERE trial.trial = $1 AND fold.split = $2 AND fold.seed = $3";

/// What the trainers of a fold wrote, by trial, split and seed.
pub(super) const LOG: &str = "
    SELECT log.attempt, log.text FROM trial JOIN fold ON fold.trial = trial.id JOIN log ON log.fold = fold.id
    WHERE trial.trial = $1 AND fold.split = $2 AND fold.seed = $3 ORDER BY log.attempt";

/// What happened to a fold, by its row: its notes, and what the rows of its attempts and results tell.
pub(super) const HISTORY: &str = "
    SELECT h.at, h.event, h.attempt, worker.name, h.detail, worker.host
    FROM (SELECT number, at, event, attempt, detail FROM history WHERE fold = $1
        UNION ALL SELECT number, at, 'leased', attempt, NULL FROM attempt WHERE fold = $1 AND number <> 0
        UNION ALL SELECT number, at, 'accepted', attempt, '' FROM result WHERE fold = $1 AND number <> 0) AS h
    LEFT JOIN attempt ON attempt.fold = $1 AND attempt.attempt = h.attempt
    LEFT JOIN worker ON worker.id = attempt.worker
    ORDER BY h.number";

/// The last things that people did, the last one first.
pub(super) const ACTS: &str =
    "SELECT at, who, act, sweep, about, detail, reason FROM steering ORDER BY number DESC LIMIT $1";

/// The same of one sweep.
pub(super) const ACTS_OF_SWEEP: &str = "
    SELECT at, who, act, sweep, about, detail, reason FROM steering
    WHERE sweep = $1 ORDER BY number DESC LIMIT $2";

/// A page of results: kind, sweep, first position, first position after it. SQLite numbers values as they first appear.
pub(super) const RESULTS: &str = "
    SELECT trial.trial, fold.split, fold.seed, result.attempt, worker.name, trial.canonical, result.digest, result.body
    FROM sweep_fold
    JOIN result ON result.fold = sweep_fold.fold AND result.kind = $1
    JOIN attempt ON attempt.fold = result.fold AND attempt.attempt = result.attempt
    JOIN worker ON worker.id = attempt.worker
    JOIN fold ON fold.id = sweep_fold.fold
    JOIN trial ON trial.id = fold.trial
    WHERE sweep_fold.sweep = $2 AND sweep_fold.position >= $3 AND sweep_fold.position < $4
    ORDER BY sweep_fold.position, result.attempt";

/// The result of a fold that counts: trial, split, seed.
pub(super) const RESULT_OF: &str = "
    SELECT trial.trial, fold.split, fold.seed, result.attempt, worker.name, trial.canonical, result.digest, result.body
    FROM trial JOIN fold ON fold.trial = trial.id
    JOIN result ON result.fold = fold.id AND result.kind = 'accepted'
    JOIN attempt ON attempt.fold = result.fold AND attempt.attempt = result.attempt
    JOIN worker ON worker.id = attempt.worker
    WHERE trial.trial = $1 AND fold.split = $2 AND fold.seed = $3";

/// Whether a sweep has folds from a position on: one look into an index, where counting would look at all of them.
pub(super) const MORE: &str = "SELECT EXISTS (SELECT 1 FROM sweep_fold WHERE sweep = $1 AND position >= $2)";

/// Trials, finished trials, and folds that are pending, leased, finished and failed, of a sweep.
pub(super) const COUNTS: &str = "
    SELECT count(*), count(CASE WHEN finished = folds THEN 1 END), CAST(coalesce(sum(pending), 0) AS BIGINT),
        CAST(coalesce(sum(leased), 0) AS BIGINT), CAST(coalesce(sum(finished), 0) AS BIGINT),
        CAST(coalesce(sum(failed), 0) AS BIGINT)
    FROM (SELECT count(*) AS folds, count(CASE fold.state WHEN 'pending' THEN 1 END) AS pending,
            count(CASE fold.state WHEN 'leased' THEN 1 END) AS leased,
            count(CASE fold.state WHEN 'finished' THEN 1 END) AS finished,
            count(CASE fold.state WHEN 'failed' THEN 1 END) AS failed
        FROM sweep_fold JOIN fold ON fold.id = sweep_fold.fold
        WHERE sweep_fold.sweep = $1 GROUP BY fold.trial) AS trials";

/// The first two folds between two trials: least, greatest, split, seed.
pub(super) const BETWEEN: &str = "
    SELECT trial.trial, fold.split, fold.seed FROM trial JOIN fold ON fold.trial = trial.id
    WHERE trial.trial >= $1 AND trial.trial <= $2 AND fold.split = $3 AND fold.seed = $4
    ORDER BY trial.trial LIMIT 2";

/// All trials in order.
pub(super) const TRIALS: &str = "SELECT trial FROM trial ORDER BY trial";

/// The sweeps that have a fold, by its row.
pub(super) const SWEEPS_OF: &str = "
    SELECT sweep.name, sweep.state FROM sweep_fold JOIN sweep ON sweep.id = sweep_fold.sweep
    WHERE sweep_fold.fold = $1 AND sweep.name <> '' ORDER BY sweep.place";

/// The attempts at a fold, by its row.
pub(super) const ATTEMPTS_OF: &str = "
    SELECT attempt.attempt, worker.name, attempt.ending FROM attempt JOIN worker ON worker.id = attempt.worker
    WHERE attempt.fold = $1 ORDER BY attempt.attempt";

/// Everybody who had folds: name, host, attempts, results that count, time of the last attempt.
pub(super) const WORKERS: &str = "
    SELECT worker.name, worker.host, count(attempt.attempt), count(fold.id), coalesce(max(attempt.at), 0)
    FROM worker LEFT JOIN attempt ON attempt.worker = worker.id
    LEFT JOIN fold ON fold.id = attempt.fold AND fold.attempt = attempt.attempt AND fold.state = 'finished'
    GROUP BY worker.id, worker.name, worker.host ORDER BY worker.name, worker.id";

/// How many transactions there were.
pub(super) const TRANSACTIONS: &str = "SELECT commits FROM store";

/// What a listing shows of a fold, and its row. The attempt is that of the result, or the last one.
const FOLD: &str = "
    SELECT trial.trial, fold.split, fold.seed, trial.canonical, fold.state, fold.class, fold.message, attempt.attempt,
        worker.name, result.body, (SELECT count(*) FROM attempt AS a WHERE a.fold = fold.id), fold.id";

/// The settings of a fold.
const TRIAL: &str = "JOIN trial ON trial.id = fold.trial";

/// Who has a fold, finished it or had it last.
const WORKER: &str = "
    LEFT JOIN attempt ON attempt.fold = fold.id AND attempt.attempt =
        coalesce(fold.attempt, (SELECT max(a.attempt) FROM attempt AS a WHERE a.fold = fold.id))
    LEFT JOIN worker ON worker.id = attempt.worker";

/// What counts.
const RESULT: &str = "LEFT JOIN result ON result.fold = fold.id AND result.kind = 'accepted'";

/// One fold, by trial, split and seed.
pub(super) fn fold() -> String {
    format!(
        "{FOLD} FROM fold {TRIAL} {WORKER} {RESULT} WHERE trial.trial = $1 AND fold.split = $2 AND fold.seed = $3"
    )
}

/// A page of folds with their positions in the last column.
pub(super) fn folds(query: &FoldQuery, sweep: i64, dialect: Dialect) -> Query {
    let Query { sql, mut values } = chosen(query, sweep, dialect, &[TRIAL, WORKER, RESULT]);
    values.extend([query.limit, query.skip].map(number));
    let (limit, skip) = (values.len() - 1, values.len());
    let sql = format!(
        "{FOLD}, sweep_fold.position {sql} ORDER BY sweep_fold.position LIMIT ${limit} OFFSET ${skip}"
    );
    Query { sql, values }
}

/// How many folds all pages have. Joins only what the filter looks at.
pub(super) fn count_folds(query: &FoldQuery, sweep: i64, dialect: Dialect) -> Query {
    let FoldFilter { worker, trials, dataset, states: _, class: _ } = &query.filter;
    let mut joined = Vec::new();
    if trials.is_some() || dataset.is_some() {
        joined.push(TRIAL);
    }
    if worker.is_some() {
        joined.push(WORKER);
    }
    let Query { sql, values } = chosen(query, sweep, dialect, &joined);
    Query { sql: format!("SELECT count(*) {sql}"), values }
}

/// The folds that a query means, from `FROM` on.
fn chosen(query: &FoldQuery, sweep: i64, dialect: Dialect, joined: &[&str]) -> Query {
    let FoldFilter { states, worker, class, trials, dataset } = &query.filter;
    let mut sql = format!(
        "FROM sweep_fold JOIN fold ON fold.id = sweep_fold.fold {}
         WHERE sweep_fold.sweep = $1 AND sweep_fold.position >= $2",
        joined.join(" ")
    );
    let mut values = vec![Value::Number(sweep), number(query.from)];
    if !states.is_empty() {
        let words: Vec<String> =
            states.iter().copied().map(rows::stored).map(|word| format!("'{word}'")).collect();
        sql += &format!(" AND fold.state IN ({})", words.join(", "));
    }
    let mut must = |condition: &str, value: Value| {
        values.push(value);
        sql += &format!(" AND {condition} ${}", values.len());
    };
    if let Some(worker) = worker {
        must("worker.name =", Value::Text(worker.to_string()));
    }
    if let Some(class) = class {
        must("fold.state = 'failed' AND fold.class =", Value::Text(class.as_str().to_owned()));
    }
    if let Some([least, greatest]) = trials {
        must("trial.trial >=", Value::Bytes(least.as_bytes().to_vec()));
        must("trial.trial <=", Value::Bytes(greatest.as_bytes().to_vec()));
    }
    if let Some(dataset) = dataset {
        let name = match dialect {
            Dialect::Sqlite => "lower(json_extract(trial.canonical, '$.dataset')) =",
            Dialect::Postgres => "lower(trial.canonical::json ->> 'dataset') =",
        };
        must(name, Value::Text(dataset.to_lowercase()));
    }
    Query { sql, values }
}

/// Positions and limits beyond what a database can count mean all there are.
fn number(value: u64) -> Value {
    Value::Number(i64::try_from(value).unwrap_or(i64::MAX))
}
