//! Facts into tables. One transaction a call; one short function a fact. A fact about something that the
//! store does not hold is an error, never silently dropped.

use rusqlite::types::Null;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use togl_scheduler::{Change, Digest, SweepSaved};
use togl_sweeps::{Attempt, FoldKey, FoldResult, WorkerId};

use super::super::history::{self, Note};
use super::super::{LogPiece, ResultKind, StoreError, append_bounded, encode, impossible};
use super::fleet;
use crate::clock;

type Written = Result<(), StoreError>;

/// Keeps all of `changes`, or none. Says how many transactions there have been.
pub(super) fn commit(connection: &mut Connection, changes: &[Change]) -> Result<u64, StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let at = clock::unix_milliseconds();
    for change in changes {
        write(&transaction, change)?;
        if let Some(note) = history::note(change) {
            remember(&transaction, at, &note)?;
        }
    }
    let sql = "UPDATE store SET commits = commits + 1 RETURNING commits";
    let number: i64 = transaction.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    crate::crash::point("commit-written");
    transaction.commit()?;
    Ok(number.cast_unsigned())
}

fn write(on: &Transaction<'_>, change: &Change) -> Written {
    match change {
        Change::TrialSaved { trial, canonical } => {
            let sql = "INSERT INTO trial (trial, canonical) VALUES (?1, ?2)";
            on.prepare_cached(sql)?.execute(params![trial.as_bytes(), &**canonical])?;
            Ok(())
        }
        Change::FoldAdded { fold } => add_fold(on, fold),
        Change::SweepSaved(sweep) => save_sweep(on, sweep),
        Change::AttemptIssued { fold, attempt, worker, host } => issue(on, fold, *attempt, worker, host),
        Change::LeaseRevived { fold, attempt } => {
            let id = fold_id(on, fold)?;
            end_attempt(on, fold, id, *attempt, None)?;
            set_state(on, id, "leased")
        }
        Change::AttemptEnded { fold, attempt, ending, message } => {
            let id = fold_id(on, fold)?;
            end_attempt(on, fold, id, *attempt, Some((ending.as_str(), message)))?;
            set_state(on, id, "pending")
        }
        Change::FoldFailed { fold, failure } => {
            let sql = "UPDATE fold SET state = 'failed', class = ?2, message = ?3 WHERE id = ?1";
            let values = params![fold_id(on, fold)?, failure.class.as_str(), failure.message];
            on.prepare_cached(sql)?.execute(values)?;
            Ok(())
        }
        Change::FoldRetried { fold } => retry(on, fold),
        Change::FoldFinished { fold, attempt, digest, result, .. } => {
            finish(on, fold, *attempt, *digest, result)
        }
        Change::ReplicateKept { fold, attempt, digest, result, .. } => {
            keep(on, fold_id(on, fold)?, *attempt, ResultKind::Replicate, *digest, result)
        }
        Change::ConflictLogged { fold, attempt, digest, result, .. } => {
            keep(on, fold_id(on, fold)?, *attempt, ResultKind::Conflict, *digest, result)
        }
        steering => write_steering(on, steering),
    }
}

/// What operators said, and what was learnt about memory and data.
fn write_steering(on: &Transaction<'_>, change: &Change) -> Written {
    match change {
        Change::SweepStateSet { sweep, state, note } => {
            let sql = "UPDATE sweep SET state = ?2, note = ?3 WHERE name = ?1";
            let values = params![sweep.as_str(), state.as_str(), note.as_deref()];
            one(on.prepare_cached(sql)?.execute(values)?, "sweep", sweep)
        }
        Change::SweepPrioritySet { sweep, priority } => {
            let sql = "UPDATE sweep SET priority = ?2 WHERE name = ?1";
            one(on.prepare_cached(sql)?.execute(params![sweep.as_str(), priority])?, "sweep", sweep)
        }
        Change::MemoryFloorRaised { trial, bytes } => {
            let sql = "UPDATE trial SET memory_floor = ?2 WHERE trial = ?1";
            let values = params![trial.as_bytes(), bytes.cast_signed()];
            one(on.prepare_cached(sql)?.execute(values)?, "trial", trial)
        }
        Change::DataPinned { data, digest } | Change::DataSettled { data, digest } => {
            settle(on, data, digest)
        }
        Change::DataDisputed { data, fold, digest } => {
            let sql = "INSERT OR REPLACE INTO dissent (fold, data_set, digest) VALUES (?1, ?2, ?3)";
            on.prepare_cached(sql)?.execute(params![fold_id(on, fold)?, data, digest])?;
            Ok(())
        }
        Change::ResultSetAside { fold } => set_aside(on, fold),
        fleet => fleet::write(on, fleet),
    }
}

/// Adds to the history of a fold.
fn remember(on: &Transaction<'_>, at: i64, note: &Note<'_>) -> Written {
    let sql = "INSERT INTO history (fold, number, at, event, attempt, detail)
               SELECT fold.id, (SELECT coalesce(max(number), 0) + 1 FROM history WHERE history.fold = fold.id),
                   ?4, ?5, ?6, ?7
               FROM trial JOIN fold ON fold.trial = trial.id
               WHERE trial.trial = ?1 AND fold.split = ?2 AND fold.seed = ?3";
    let Note { fold, event, attempt, detail } = note;
    let (seed, attempt) = (fold.seed.cast_signed(), attempt.map(|attempt| attempt.0));
    let values = params![fold.trial.as_bytes(), fold.split, seed, at, event, attempt, detail];
    one(on.prepare_cached(sql)?.execute(values)?, "fold", fold)
}

/// Refuses a statement that did not find its one row.
fn one(rows: usize, what: &'static str, which: impl ToString) -> Written {
    if rows == 1 { Ok(()) } else { Err(missing(what, which)) }
}

fn missing(what: &'static str, which: impl ToString) -> StoreError {
    impossible(what, format!("{} is not there", which.to_string()))
}

pub(super) fn fold_id(on: &Connection, fold: &FoldKey) -> Result<i64, StoreError> {
    find_fold(on, fold)?.ok_or_else(|| missing("fold", fold))
}

pub(super) fn find_fold(on: &Connection, fold: &FoldKey) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT fold.id FROM trial JOIN fold ON fold.trial = trial.id
               WHERE trial.trial = ?1 AND fold.split = ?2 AND fold.seed = ?3";
    let values = params![fold.trial.as_bytes(), fold.split, fold.seed.cast_signed()];
    Ok(on.prepare_cached(sql)?.query_row(values, |row| row.get(0)).optional()?)
}

fn add_fold(on: &Transaction<'_>, fold: &FoldKey) -> Written {
    let sql = "INSERT INTO fold (trial, split, seed, state)
               SELECT id, ?2, ?3, 'pending' FROM trial WHERE trial = ?1";
    let values = params![fold.trial.as_bytes(), fold.split, fold.seed.cast_signed()];
    one(on.prepare_cached(sql)?.execute(values)?, "trial", fold.trial)
}

fn save_sweep(on: &Transaction<'_>, sweep: &SweepSaved) -> Written {
    let limits =
        serde_json::to_string(&sweep.limits).map_err(|error| impossible("limits of a sweep", error))?;
    let resources =
        serde_json::to_string(&sweep.resources).map_err(|error| impossible("resources of a sweep", error))?;
    let sql = "INSERT INTO sweep (name, place, yaml, priority, limits, state, resources, note)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
               ON CONFLICT (name) DO UPDATE SET place = excluded.place, yaml = excluded.yaml,
                   priority = excluded.priority, limits = excluded.limits, state = excluded.state,
                   resources = excluded.resources, note = excluded.note
               RETURNING id";
    let values = params![
        sweep.name.as_str(),
        sweep.order.cast_signed(),
        &*sweep.yaml,
        sweep.priority,
        limits,
        sweep.state.as_str(),
        resources,
        sweep.note.as_deref()
    ];
    let id: i64 = on.prepare_cached(sql)?.query_row(values, |row| row.get(0))?;
    on.prepare_cached("DELETE FROM sweep_fold WHERE sweep = ?1")?.execute([id])?;
    let mut insert =
        on.prepare_cached("INSERT INTO sweep_fold (sweep, position, fold) VALUES (?1, ?2, ?3)")?;
    for (position, fold) in (0i64..).zip(&sweep.folds) {
        insert.execute([id, position, fold_id(on, fold)?])?;
    }
    Ok(())
}

fn issue(on: &Transaction<'_>, fold: &FoldKey, attempt: Attempt, worker: &WorkerId, host: &str) -> Written {
    let values = params![worker.as_str(), host];
    let sql = "INSERT INTO worker (name, host) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    on.prepare_cached(sql)?.execute(values)?;
    let id = fold_id(on, fold)?;
    let sql = "INSERT INTO attempt (fold, attempt, worker)
               SELECT ?3, ?4, id FROM worker WHERE name = ?1 AND host = ?2";
    let values = params![worker.as_str(), host, id, attempt.0];
    one(on.prepare_cached(sql)?.execute(values)?, "worker", worker)?;
    set_state(on, id, "leased")
}

fn end_attempt(
    on: &Transaction<'_>,
    fold: &FoldKey,
    id: i64,
    attempt: Attempt,
    ending: Option<(&str, &str)>,
) -> Written {
    let sql = "UPDATE attempt SET ending = ?3, message = ?4 WHERE fold = ?1 AND attempt = ?2";
    let mut statement = on.prepare_cached(sql)?;
    let rows = match ending {
        Some((ending, message)) => statement.execute(params![id, attempt.0, ending, message])?,
        None => statement.execute(params![id, attempt.0, Null, Null])?,
    };
    one(rows, "attempt", format!("{attempt} of {fold}"))
}

fn set_state(on: &Transaction<'_>, id: i64, state: &str) -> Written {
    on.prepare_cached("UPDATE fold SET state = ?2 WHERE id = ?1")?.execute(params![id, state])?;
    Ok(())
}

/// From now on the data set has this digest and nobody disagrees.
fn settle(on: &Transaction<'_>, data: &str, digest: &str) -> Written {
    let sql = "INSERT INTO data_set (name, digest) VALUES (?1, ?2)
               ON CONFLICT (name) DO UPDATE SET digest = excluded.digest";
    on.prepare_cached(sql)?.execute([data, digest])?;
    on.prepare_cached("DELETE FROM dissent WHERE data_set = ?1")?.execute([data])?;
    Ok(())
}

fn set_aside(on: &Transaction<'_>, fold: &FoldKey) -> Written {
    let id = fold_id(on, fold)?;
    let sql = "UPDATE result SET kind = 'replicate' WHERE fold = ?1 AND kind = 'accepted'";
    one(on.prepare_cached(sql)?.execute([id])?, "result", fold)?;
    on.prepare_cached("UPDATE fold SET state = 'pending', attempt = NULL, digest = NULL WHERE id = ?1")?
        .execute([id])?;
    Ok(())
}

fn retry(on: &Transaction<'_>, fold: &FoldKey) -> Written {
    let sql = "UPDATE fold SET state = 'pending', class = NULL, message = NULL,
                   forgiven = (SELECT count(*) FROM attempt WHERE attempt.fold = fold.id)
               WHERE id = ?1";
    on.prepare_cached(sql)?.execute([fold_id(on, fold)?])?;
    Ok(())
}

fn finish(
    on: &Transaction<'_>,
    fold: &FoldKey,
    attempt: Attempt,
    digest: Digest,
    result: &FoldResult,
) -> Written {
    let id = fold_id(on, fold)?;
    let sql = "UPDATE fold SET state = 'finished', attempt = ?2, digest = ?3, class = NULL, message = NULL
               WHERE id = ?1";
    on.prepare_cached(sql)?.execute(params![id, attempt.0, digest.0.cast_signed()])?;
    keep(on, id, attempt, ResultKind::Accepted, digest, result)
}

/// Keeps a result. Of conflicts of one attempt the first stays; of the others there is only one.
fn keep(
    on: &Transaction<'_>,
    fold: i64,
    attempt: Attempt,
    kind: ResultKind,
    digest: Digest,
    result: &FoldResult,
) -> Written {
    let body = encode(result)?;
    let sql = match kind {
        ResultKind::Conflict => {
            "INSERT INTO result (fold, attempt, kind, digest, body) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (fold, kind, attempt) DO NOTHING"
        }
        _ => "INSERT INTO result (fold, attempt, kind, digest, body) VALUES (?1, ?2, ?3, ?4, ?5)",
    };
    on.prepare_cached(sql)?.execute(params![fold, attempt.0, kind.as_str(), digest.0.cast_signed(), body])?;
    Ok(())
}

/// Adds output of trainers; what belongs to no issued attempt is dropped.
pub(super) fn append_log(connection: &mut Connection, pieces: &[LogPiece]) -> Written {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for LogPiece { fold, attempt, text } in pieces {
        let Some(id) = find_fold(&transaction, fold)? else { continue };
        let sql = "SELECT coalesce(log.text, '') FROM attempt LEFT JOIN log USING (fold, attempt)
                   WHERE attempt.fold = ?1 AND attempt.attempt = ?2";
        let values = params![id, attempt.0];
        let before = transaction.prepare_cached(sql)?.query_row(values, |row| row.get(0)).optional()?;
        let Some(mut whole): Option<String> = before else { continue };
        append_bounded(&mut whole, text);
        let sql = "INSERT INTO log (fold, attempt, text) VALUES (?1, ?2, ?3)
                   ON CONFLICT (fold, attempt) DO UPDATE SET text = excluded.text";
        transaction.prepare_cached(sql)?.execute(params![id, attempt.0, whole])?;
    }
    crate::crash::point("log-written");
    transaction.commit()?;
    crate::crash::point("log-kept");
    Ok(())
}
