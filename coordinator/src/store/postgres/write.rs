//! Carries staged statements out, one transaction a call. A fact about something that the store
//! does not hold is an error, never silently dropped.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ::postgres::types::ToSql;
use ::postgres::{Client, Statement, Transaction};

use super::super::database::Value;
use super::super::statement::Verb;
use super::super::{LogPiece, StoreError, append_bounded, impossible};
use super::Failed;
use super::stage::{Batch, Staged};

type Written = Result<(), Failed>;

/// Statements that a connection keeps ready.
#[derive(Default)]
pub(super) struct Statements {
    ready: HashMap<String, Statement>,
    pub(super) answers: Answers,
}

/// How often the server has answered: whether a long transaction goes on.
#[derive(Default, Clone)]
pub(super) struct Answers(Arc<AtomicU64>);

impl Answers {
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Rows that one statement carries at the most.
const CHUNK: usize = 50_000;

/// A transaction with its ready statements.
struct Writer<'a, 'b> {
    transaction: &'a mut Transaction<'b>,
    statements: &'a mut Statements,
}

/// Keeps everything that was staged, or nothing, as transaction `number` of the store.
pub(super) fn commit(
    client: &mut Client,
    statements: &mut Statements,
    staged: &Staged,
    number: i64,
    holder: i64,
) -> Written {
    let mut transaction = client.transaction()?;
    let mut writer = Writer { transaction: &mut transaction, statements };
    // First: a session of somebody else that is still writing would hold this row.
    let sql = "UPDATE store SET commits = $1::bigint WHERE commits = $1::bigint - 1 AND holder = $2";
    if writer.run(sql, &[&number, &holder])? != 1 {
        let row = transaction.query_one("SELECT commits, holder FROM store", &[])?;
        let (stored, whose): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        return Err(match whose == holder {
            true => rolled_back(stored, number - 1),
            false => StoreError::TakenOver { address: String::new() },
        }
        .into());
    }
    for batch in &staged.batches {
        writer.perform(batch)?;
    }
    if !staged.log.is_empty() {
        writer.try_to_keep_log(&staged.log)?;
    }
    crate::crash::point("commit-written");
    transaction.commit()?;
    Ok(())
}

/// What a store that is not at its last transaction means.
pub(super) fn rolled_back(stored: i64, expected: i64) -> StoreError {
    let problem = format!(
        "has {stored} transactions where this coordinator has made {expected}: it was rolled back, or somebody else wrote to \
         it; nothing more is acknowledged; restore the newest backup with `togl restore FILE --replace`"
    );
    StoreError::Unusable { address: String::new(), problem }
}

/// Refuses a statement that did not find all its rows.
fn expect(found: u64, wanted: usize, what: &'static str) -> Written {
    if found == wanted as u64 {
        return Ok(());
    }
    Err(impossible(what, format!("{} of {wanted} are not there", (wanted as u64).saturating_sub(found)))
        .into())
}

impl Writer<'_, '_> {
    fn run(&mut self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<u64, Failed> {
        if !self.statements.ready.contains_key(sql) {
            let statement = self.transaction.prepare(sql)?;
            self.statements.ready.insert(sql.to_owned(), statement);
        }
        let found = self.transaction.execute(&self.statements.ready[sql], values)?;
        self.statements.answers.add();
        Ok(found)
    }

    fn perform(&mut self, batch: &Batch) -> Written {
        let mut next = Some(batch.statement);
        while let Some(statement) = next {
            for from in (0..batch.rows()).step_by(CHUNK) {
                let to = batch.rows().min(from + CHUNK);
                let columns: Vec<&[Value]> = batch.columns.iter().map(|column| &column[from..to]).collect();
                let values: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| column as _).collect();
                let found = self.run(statement.postgres(), &values)?;
                match statement.verb {
                    Verb::Insert | Verb::Replace | Verb::Update => expect(found, to - from, statement.what)?,
                    Verb::InsertNew | Verb::Delete => {}
                }
            }
            next = statement.then;
        }
        Ok(())
    }

    /// Adds output of trainers. If it cannot be kept, everything else is.
    fn try_to_keep_log(&mut self, pieces: &[LogPiece]) -> Written {
        let mut part = self.transaction.transaction()?;
        let mut writer = Writer { transaction: &mut part, statements: self.statements };
        match writer.keep_log(pieces) {
            Ok(()) => Ok(part.commit()?),
            Err(Failed::Refused(error)) => {
                tracing::warn!(%error, "trainer output was not kept");
                Ok(part.rollback()?)
            }
            Err(lost @ Failed::Lost(_)) => Err(lost),
        }
    }

    /// Adds output of trainers, one piece an attempt; what belongs to no issued attempt is dropped.
    fn keep_log(&mut self, pieces: &[LogPiece]) -> Written {
        let sql = "SELECT u.place, fold.id, log.text
             FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY
                 AS u (trial, split, seed, attempt, place)
             JOIN trial ON trial.trial = u.trial
             JOIN fold ON fold.trial = trial.id AND fold.split = u.split AND fold.seed = u.seed
             JOIN attempt ON attempt.fold = fold.id AND attempt.attempt = u.attempt
             LEFT JOIN log ON log.fold = attempt.fold AND log.attempt = attempt.attempt";
        let trials: Vec<&[u8]> = pieces.iter().map(|piece| &piece.fold.trial.as_bytes()[..]).collect();
        let splits: Vec<i64> = pieces.iter().map(|piece| piece.fold.split.into()).collect();
        let seeds: Vec<i64> = pieces.iter().map(|piece| piece.fold.seed.cast_signed()).collect();
        let attempts: Vec<i64> = pieces.iter().map(|piece| piece.attempt.0.into()).collect();
        let (mut folds, mut numbers, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for row in self.transaction.query(sql, &[&trials, &splits, &seeds, &attempts])? {
            let place = usize::try_from(row.try_get::<_, i64>(0)? - 1).unwrap_or(usize::MAX);
            let Some(piece) = pieces.get(place) else { continue };
            let before: Option<Vec<u8>> = row.try_get(2)?;
            let before = String::from_utf8(before.unwrap_or_default());
            let mut whole = before.map_err(|error| impossible("log", error))?;
            append_bounded(&mut whole, &piece.text);
            folds.push(row.try_get::<_, i64>(1)?);
            numbers.push(i64::from(piece.attempt.0));
            texts.push(whole.into_bytes());
        }
        let sql = "INSERT INTO log (fold, attempt, text) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])
                   ON CONFLICT (fold, attempt) DO UPDATE SET text = excluded.text";
        self.run(sql, &[&folds, &numbers, &texts]).map(drop)
    }
}

/// Adds output of trainers, apart from everything else.
pub(super) fn append_log(client: &mut Client, statements: &mut Statements, pieces: &[LogPiece]) -> Written {
    let mut transaction = client.transaction()?;
    Writer { transaction: &mut transaction, statements }.keep_log(pieces)?;
    Ok(transaction.commit()?)
}
