//! Carries statements out, one transaction a call. A fact about something that the store does not hold is an error, never
//! silently dropped.

use rusqlite::{Connection, OptionalExtension, params};
use togl_scheduler::Change;

use super::super::database::{Cell, first};
use super::super::facts::key;
use super::super::statement::{Given, Statement, Verb};
use super::super::{LogPiece, StoreError, append_bounded, queries, writes};
use super::known::{Known, missing};
use crate::clock;

type Written = Result<(), StoreError>;

/// Keeps all of `changes`, or none, with output of trainers if that can be kept, as the transaction of this number of the store of this incarnation. Says whether the
/// store was at the number before it; if not, nothing is kept.
pub(super) fn commit(
    connection: &mut Connection,
    known: &mut Known,
    (changes, log): (&[Change], &[LogPiece]),
    (incarnation, number): (u64, u64),
) -> Result<bool, StoreError> {
    let sql = "UPDATE store SET commits = ?1 WHERE commits = ?1 - 1 AND incarnation = ?2";
    let identity = [number.cast_signed(), incarnation.cast_signed()];
    let written = in_transaction(connection, "commit-written", |on| {
        if on.prepare_cached(sql)?.execute(identity)? != 1 {
            return Ok(None);
        }
        let mut writer = Writer { on, known };
        let put = &mut |statement: &'static Statement, values: &[Given<'_>]| writer.put(statement, values);
        writes::write(changes, number, clock::unix_milliseconds(), put)?;
        if !log.is_empty()
            && let Err(error) = keep_log(on, log)
        {
            tracing::warn!(%error, "trainer output was not kept");
        }
        Ok(Some(()))
    })?;
    Ok(written.is_some())
}

/// Keeps what `write` does, or nothing if it fails or says that it does not count. Its statements are kept ready, too: they
/// would be parsed with every transaction otherwise.
fn in_transaction<T>(
    connection: &mut Connection,
    written: &'static str,
    write: impl FnOnce(&mut Connection) -> Result<Option<T>, StoreError>,
) -> Result<Option<T>, StoreError> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let mut kept = write(connection);
    if let Ok(Some(_)) = kept {
        crate::crash::point(written);
        if let Err(error) = connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([])) {
            kept = Err(error.into());
        }
    }
    if !connection.is_autocommit() {
        // After some errors SQLite has done so itself, and what went wrong first is what counts.
        _ = connection.execute_batch("ROLLBACK");
    }
    kept
}

/// A transaction that is being written.
struct Writer<'a> {
    on: &'a Connection,
    known: &'a mut Known,
}

impl Writer<'_> {
    fn put(&mut self, statement: &'static Statement, values: &[Given<'_>]) -> Written {
        let mut ready = self.on.prepare_cached(statement.sqlite())?;
        for (place, value) in (1..).zip(values) {
            ready.raw_bind_parameter(place, self.cell(statement, value)?)?;
        }
        let rows = ready.raw_execute()?;
        if statement.verb == Verb::Update && rows != 1 {
            return Err(missing(statement.what, meant(&values[..statement.by.len()])));
        }
        if statement.table == "sweep" {
            self.known.forget_sweep();
        }
        statement.then.map_or(Ok(()), |next| self.put(next, values))
    }

    /// What is bound for a value: rows are known by their numbers.
    fn cell<'v>(&mut self, statement: &Statement, value: &Given<'v>) -> Result<Cell<'v>, StoreError> {
        Ok(match value {
            Given::Plain(cell) => *cell,
            Given::Trial(trial) => Cell::Number(self.known.trial(self.on, trial)?),
            Given::Fold(fold) => Cell::Number(self.known.fold(self.on, fold)?),
            Given::Worker(worker, host) => Cell::Number(self.known.worker(self.on, worker, host)?),
            Given::Sweep(name) => match self.known.sweep(self.on, name)? {
                Some(id) => Cell::Number(id),
                None if statement.verb == Verb::Delete => Cell::Null, // nothing goes
                None => return Err(missing("sweep", name)),
            },
        })
    }
}

/// Which row was meant, in words.
fn meant(by: &[Given<'_>]) -> String {
    let word = |value: &Given<'_>| match value {
        Given::Plain(Cell::Number(number)) => number.to_string(),
        Given::Plain(Cell::Text(text)) => (*text).to_owned(),
        Given::Plain(Cell::Bytes(bytes)) => format!("{bytes:02x?}"),
        Given::Plain(Cell::Null) => String::new(),
        Given::Trial(trial) => trial.to_string(),
        Given::Fold(fold) => fold.to_string(),
        Given::Worker(worker, _) => worker.to_string(),
        Given::Sweep(name) => (*name).to_owned(),
    };
    by.iter().rev().map(word).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" of ")
}

/// Adds output of trainers, apart from everything else.
pub(super) fn append_log(connection: &mut Connection, pieces: &[LogPiece]) -> Written {
    in_transaction(connection, "log-written", |on| keep_log(on, pieces).map(Some))?;
    crate::crash::point("log-kept");
    Ok(())
}

/// Adds output of trainers, all or none; what belongs to no issued attempt is dropped.
fn keep_log(on: &mut Connection, pieces: &[LogPiece]) -> Written {
    let part = on.savepoint()?; // undone without the rest if it fails
    for LogPiece { fold, attempt, text } in pieces {
        let id = first(&mut &*part, queries::FOLD_ID, &key(fold), |row| row.get::<i64>(0))?;
        let Some(id) = id else { continue };
        let sql = "SELECT coalesce(log.text, '') FROM attempt LEFT JOIN log USING (fold, attempt)
                   WHERE attempt.fold = ?1 AND attempt.attempt = ?2";
        let values = params![id, attempt.0];
        let before = part.prepare_cached(sql)?.query_row(values, |row| row.get(0)).optional()?;
        let Some(mut whole): Option<String> = before else { continue };
        append_bounded(&mut whole, text);
        let sql = "INSERT INTO log (fold, attempt, text) VALUES (?1, ?2, ?3)
                   ON CONFLICT (fold, attempt) DO UPDATE SET text = excluded.text";
        part.prepare_cached(sql)?.execute(params![id, attempt.0, whole])?;
    }
    Ok(part.commit()?)
}
