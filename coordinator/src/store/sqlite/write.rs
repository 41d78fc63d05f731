//! Facts into tables. One transaction a call; one short function a fact. A fact about something that the
//! store does not hold is an error, never silently dropped.

use rusqlite::types::Null;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use togl_scheduler::{Change, DataChange, Digest, FoldChange, SweepChange, SweepSaved, TrialChange};
use togl_sweeps::{Attempt, CheckedResult, FoldKey, WorkerId};

use super::super::history::{self, Note};
use super::super::{LogPiece, ResultKind, StoreError, append_bounded, encode, impossible};
use super::fleet;
use super::known::{Known, find_fold, missing};
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
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let sql = "UPDATE store SET commits = ?1 WHERE commits = ?1 - 1 AND incarnation = ?2";
    let identity = [number.cast_signed(), incarnation.cast_signed()];
    if transaction.prepare_cached(sql)?.execute(identity)? != 1 {
        return Ok(false);
    }
    let at = clock::unix_milliseconds();
    let mut writer = Writer { on: &transaction, known, at, number: history::first_number(number) };
    for change in changes {
        writer.write(change)?;
        if let Some(note) = history::note(change).filter(|_| !history::is_dated(change)) {
            writer.remember(&note)?;
        }
        writer.number += 1;
    }
    if !log.is_empty()
        && let Err(error) = keep_log(&mut transaction, log)
    {
        tracing::warn!(%error, "trainer output was not kept");
    }
    crate::crash::point("commit-written");
    transaction.commit()?;
    Ok(true)
}

/// A transaction that is being written.
struct Writer<'a> {
    on: &'a Transaction<'a>,
    known: &'a mut Known,
    at: i64,
    /// Of the fact that is being written, in the histories of folds.
    number: i64,
}

impl Writer<'_> {
    fn write(&mut self, change: &Change) -> Written {
        match change {
            Change::Trial(trial, TrialChange::Saved(canonical)) => {
                let sql = "INSERT INTO trial (trial, canonical) VALUES (?1, ?2)";
                self.on.prepare_cached(sql)?.execute(params![trial.as_bytes(), &**canonical])?;
                Ok(())
            }
            Change::Trial(trial, TrialChange::FloorRaised(bytes)) => {
                let sql = "UPDATE trial SET memory_floor = ?2 WHERE trial = ?1";
                let values = params![trial.as_bytes(), bytes.cast_signed()];
                one(self.on.prepare_cached(sql)?.execute(values)?, "trial", trial)
            }
            Change::Fold(fold, change) => self.write_fold(fold, change),
            Change::Sweep(change) => self.write_sweep(change),
            Change::Data(change) => self.write_data(change),
            Change::Fleet(change) => fleet::write(self.on, change),
        }
    }

    fn write_fold(&mut self, fold: &FoldKey, change: &FoldChange) -> Written {
        match change {
            FoldChange::Added => self.add_fold(fold),
            FoldChange::Issued { attempt, worker, host } => self.issue(fold, *attempt, worker, host),
            FoldChange::Revived { attempt } => {
                let id = self.fold(fold)?;
                self.end_attempt(fold, id, *attempt, None)?;
                self.set_state(id, "leased")
            }
            FoldChange::Ended { attempt, ending, message } => {
                let id = self.fold(fold)?;
                self.end_attempt(fold, id, *attempt, Some((ending.as_str(), message)))?;
                self.set_state(id, "pending")
            }
            FoldChange::Failed(failure) => {
                let sql = "UPDATE fold SET state = 'failed', class = ?2, message = ?3 WHERE id = ?1";
                let values = params![self.fold(fold)?, failure.class.as_str(), failure.message];
                self.on.prepare_cached(sql)?.execute(values)?;
                Ok(())
            }
            FoldChange::Retried => self.retry(fold),
            FoldChange::SetAside => self.set_aside(fold),
            FoldChange::Finished { attempt, digest, result, .. } => {
                self.finish(fold, *attempt, *digest, result)
            }
            FoldChange::Replicate { attempt, digest, result, .. } => {
                self.keep(fold, *attempt, ResultKind::Replicate, *digest, result)
            }
            FoldChange::Conflict { attempt, digest, result, .. } => {
                self.keep(fold, *attempt, ResultKind::Conflict, *digest, result)
            }
        }
    }

    fn write_sweep(&mut self, change: &SweepChange) -> Written {
        match change {
            SweepChange::Gathered { from, folds } => self.gather(*from, folds),
            SweepChange::Saved(sweep) => self.save_sweep(sweep),
            SweepChange::StateSet { sweep, state, note } => {
                let sql = "UPDATE sweep SET state = ?2, note = ?3 WHERE name = ?1";
                let values = params![sweep.as_str(), state.as_str(), note.as_deref()];
                one(self.on.prepare_cached(sql)?.execute(values)?, "sweep", sweep)
            }
            SweepChange::PrioritySet { sweep, priority } => {
                let sql = "UPDATE sweep SET priority = ?2 WHERE name = ?1";
                one(self.on.prepare_cached(sql)?.execute(params![sweep.as_str(), priority])?, "sweep", sweep)
            }
        }
    }

    fn write_data(&mut self, change: &DataChange) -> Written {
        match change {
            DataChange::Pinned { data, digest } | DataChange::Settled { data, digest } => {
                self.settle(data, digest)
            }
            DataChange::Disputed { data, fold, digest } => {
                let sql = "INSERT OR REPLACE INTO dissent (fold, data_set, digest) VALUES (?1, ?2, ?3)";
                self.on.prepare_cached(sql)?.execute(params![self.fold(fold)?, data, digest])?;
                Ok(())
            }
        }
    }

    fn add_fold(&mut self, fold: &FoldKey) -> Written {
        let sql = "INSERT INTO fold (trial, split, seed, state)
                   SELECT id, ?2, ?3, 'pending' FROM trial WHERE trial = ?1";
        let values = params![fold.trial.as_bytes(), fold.split, fold.seed.cast_signed()];
        one(self.on.prepare_cached(sql)?.execute(values)?, "trial", fold.trial)
    }

    /// Lists folds under a sweep without a name, which nobody sees, until the sweep that they belong to is saved.
    fn gather(&mut self, from: u64, folds: &[FoldKey]) -> Written {
        if from == 0 {
            let sql = "DELETE FROM sweep_fold WHERE sweep = (SELECT id FROM sweep WHERE name = '')";
            self.on.prepare_cached(sql)?.execute([])?;
            let sql = "INSERT INTO sweep (name, place, yaml, priority, limits, state)
                       VALUES ('', 0, '', 0, '{}', 'archived') ON CONFLICT DO NOTHING";
            self.on.prepare_cached(sql)?.execute([])?;
        }
        let id = self.sweep_id("")?.ok_or_else(|| missing("sweep that is being submitted", ""))?;
        self.refer(id, from, folds)
    }

    /// The folds that were gathered become those of a sweep; what it had is given up.
    fn adopt(&mut self, sweep: &SweepSaved) -> Written {
        let gathered = self.sweep_id("")?.ok_or_else(|| missing("gathered folds", &sweep.name))?;
        let sql = "SELECT coalesce(max(position) + 1, 0) FROM sweep_fold WHERE sweep = ?1";
        let folds: i64 = self.on.prepare_cached(sql)?.query_row([gathered], |row| row.get(0))?;
        if folds.cast_unsigned() != sweep.gathered {
            return Err(impossible("gathered folds", format!("{folds} instead of {}", sweep.gathered)));
        }
        if let Some(old) = self.sweep_id(sweep.name.as_str())? {
            self.on.prepare_cached("DELETE FROM sweep_fold WHERE sweep = ?1")?.execute([old])?;
            self.on.prepare_cached("DELETE FROM sweep WHERE id = ?1")?.execute([old])?;
        }
        let sql = "UPDATE sweep SET name = ?2 WHERE id = ?1";
        self.on.prepare_cached(sql)?.execute(params![gathered, sweep.name.as_str()])?;
        Ok(())
    }

    fn sweep_id(&self, name: &str) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT id FROM sweep WHERE name = ?1";
        Ok(self.on.prepare_cached(sql)?.query_row([name], |row| row.get(0)).optional()?)
    }

    fn refer(&mut self, sweep: i64, from: u64, folds: &[FoldKey]) -> Written {
        let sql = "INSERT INTO sweep_fold (sweep, position, fold) VALUES (?1, ?2, ?3)";
        let mut insert = self.on.prepare_cached(sql)?;
        for (position, fold) in (from.cast_signed()..).zip(folds) {
            insert.execute([sweep, position, self.fold(fold)?])?;
        }
        Ok(())
    }

    fn save_sweep(&mut self, sweep: &SweepSaved) -> Written {
        if sweep.gathered > 0 {
            self.adopt(sweep)?;
        }
        let limits =
            serde_json::to_string(&sweep.limits).map_err(|error| impossible("limits of a sweep", error))?;
        let resources = serde_json::to_string(&sweep.resources)
            .map_err(|error| impossible("resources of a sweep", error))?;
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
        let id: i64 = self.on.prepare_cached(sql)?.query_row(values, |row| row.get(0))?;
        let gathered = sweep.gathered;
        let sql = "DELETE FROM sweep_fold WHERE sweep = ?1 AND position >= ?2";
        self.on.prepare_cached(sql)?.execute([id, gathered.cast_signed()])?;
        let rest = usize::try_from(gathered).ok().and_then(|first| sweep.folds.get(first..));
        self.refer(id, gathered, rest.unwrap_or_default())
    }

    fn end_attempt(
        &mut self,
        fold: &FoldKey,
        id: i64,
        attempt: Attempt,
        ending: Option<(&str, &str)>,
    ) -> Written {
        let sql = "UPDATE attempt SET ending = ?3, message = ?4 WHERE fold = ?1 AND attempt = ?2";
        let mut statement = self.on.prepare_cached(sql)?;
        let rows = match ending {
            Some((ending, message)) => statement.execute(params![id, attempt.0, ending, message])?,
            None => statement.execute(params![id, attempt.0, Null, Null])?,
        };
        one(rows, "attempt", format!("{attempt} of {fold}"))
    }

    fn set_state(&self, id: i64, state: &str) -> Written {
        self.on.prepare_cached("UPDATE fold SET state = ?2 WHERE id = ?1")?.execute(params![id, state])?;
        Ok(())
    }

    /// From now on the data set has this digest and nobody disagrees.
    fn settle(&self, data: &str, digest: &str) -> Written {
        let sql = "INSERT INTO data_set (name, digest) VALUES (?1, ?2)
                   ON CONFLICT (name) DO UPDATE SET digest = excluded.digest";
        self.on.prepare_cached(sql)?.execute([data, digest])?;
        self.on.prepare_cached("DELETE FROM dissent WHERE data_set = ?1")?.execute([data])?;
        Ok(())
    }

    fn set_aside(&mut self, fold: &FoldKey) -> Written {
        let id = self.fold(fold)?;
        let sql = "UPDATE result SET kind = 'replicate' WHERE fold = ?1 AND kind = 'accepted'";
        one(self.on.prepare_cached(sql)?.execute([id])?, "result", fold)?;
        self.on
            .prepare_cached("UPDATE fold SET state = 'pending', attempt = NULL, digest = NULL WHERE id = ?1")?
            .execute([id])?;
        Ok(())
    }

    fn retry(&mut self, fold: &FoldKey) -> Written {
        let sql = "UPDATE fold SET state = 'pending', class = NULL, message = NULL,
                       forgiven = (SELECT count(*) FROM attempt WHERE attempt.fold = fold.id)
                   WHERE id = ?1";
        self.on.prepare_cached(sql)?.execute([self.fold(fold)?])?;
        Ok(())
    }

    fn finish(
        &mut self,
        fold: &FoldKey,
        attempt: Attempt,
        digest: Digest,
        result: &CheckedResult,
    ) -> Written {
        let id = self.fold(fold)?;
        let sql =
            "UPDATE fold SET state = 'finished', attempt = ?2, digest = ?3, class = NULL, message = NULL
                   WHERE id = ?1";
        self.on.prepare_cached(sql)?.execute(params![id, attempt.0, digest.0.cast_signed()])?;
        self.keep(fold, attempt, ResultKind::Accepted, digest, result)
    }

    /// Keeps a result. Of conflicts of one attempt the first stays; of the others there is only one.
    fn keep(
        &mut self,
        fold: &FoldKey,
        attempt: Attempt,
        kind: ResultKind,
        digest: Digest,
        result: &CheckedResult,
    ) -> Written {
        let (fold, body) = (self.fold(fold)?, encode(result)?);
        let (at, number) =
            if kind == ResultKind::Accepted { (self.at, self.number) } else { Default::default() };
        let sql = match kind {
            ResultKind::Conflict => {
                "INSERT INTO result (fold, attempt, kind, digest, body, at, number)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (fold, kind, attempt) DO NOTHING"
            }
            _ => {
                "INSERT INTO result (fold, attempt, kind, digest, body, at, number)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
            }
        };
        let digest = digest.0.cast_signed();
        let values = params![fold, attempt.0, kind.as_str(), digest, body, at, number];
        self.on.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    fn fold(&mut self, fold: &FoldKey) -> Result<i64, StoreError> {
        self.known.fold(self.on, fold)
    }

    /// Adds to the history of a fold.
    fn remember(&mut self, note: &Note<'_>) -> Written {
        let sql =
            "INSERT INTO history (fold, number, at, event, attempt, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let Note { fold, event, attempt, detail } = note;
        let (fold, attempt) = (self.fold(fold)?, attempt.map(|attempt| attempt.0));
        let values = params![fold, self.number, self.at, event, attempt, detail];
        self.on.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    fn issue(&mut self, fold: &FoldKey, attempt: Attempt, worker: &WorkerId, host: &str) -> Written {
        let (id, worker) = (self.fold(fold)?, self.known.worker(self.on, worker, host)?);
        let sql = "INSERT INTO attempt (fold, attempt, worker, at, number) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.on.prepare_cached(sql)?.execute(params![id, attempt.0, worker, self.at, self.number])?;
        self.set_state(id, "leased")
    }
}

/// Refuses a statement that did not find its one row.
fn one(rows: usize, what: &'static str, which: impl ToString) -> Written {
    if rows == 1 { Ok(()) } else { Err(missing(what, which)) }
}

/// Adds output of trainers, apart from everything else.
pub(super) fn append_log(connection: &mut Connection, pieces: &[LogPiece]) -> Written {
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    keep_log(&mut transaction, pieces)?;
    crate::crash::point("log-written");
    transaction.commit()?;
    crate::crash::point("log-kept");
    Ok(())
}

/// Adds output of trainers, all or none; what belongs to no issued attempt is dropped.
fn keep_log(transaction: &mut Transaction<'_>, pieces: &[LogPiece]) -> Written {
    let part = transaction.savepoint()?; // undone without the rest if it fails
    for LogPiece { fold, attempt, text } in pieces {
        let Some(id) = find_fold(&part, fold)? else { continue };
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
