//! Facts of one transaction gathered by statement, so that a thousand of them take a handful of statements. Folds do not
//! depend on each other, so facts about different folds may change places; facts about one fold keep their order,
//! because of each column only the last value is kept. Statements that depend on what is stored end a gathering.

use std::collections::HashMap;

use togl_scheduler::Change;
use togl_sweeps::{Attempt, FoldKey};

use super::super::database::{Cell, Value};
use super::super::facts::key;
use super::super::statement::{Given, Statement, Verb};
use super::super::writes::{self, REMEMBER};
use super::super::{LogPiece, StoreError, append_bounded};

/// A whole transaction.
pub(super) struct Staged {
    /// Carried out in order.
    pub(super) batches: Vec<Batch>,
    /// Output of trainers.
    pub(super) log: Vec<LogPiece>,
}

/// Rows for one statement.
pub(super) struct Batch {
    pub(super) statement: &'static Statement,
    /// Values by column.
    pub(super) columns: Vec<Vec<Value>>,
    /// Rows by what they are found by.
    places: HashMap<Vec<Value>, usize>,
}

/// Workers that attempts were issued to.
static MEET: Statement = Statement::insert_new("worker", &["name", "host"], &[]);

impl Batch {
    fn new(statement: &'static Statement) -> Self {
        Self { statement, columns: Vec::new(), places: HashMap::new() }
    }

    pub(super) fn rows(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// Adds a row. Of two that are found by the same, the first new one stays, and the last change counts.
    fn push(&mut self, values: &[Given<'_>]) {
        let flattened = |values: &[Given<'_>]| values.iter().flat_map(flat).collect::<Vec<_>>();
        let (found_by, row) = (flattened(&values[..self.statement.by.len()]), flattened(values));
        if !found_by.is_empty()
            && let Some(place) = self.places.get(&found_by)
        {
            if self.statement.verb != Verb::InsertNew {
                self.columns.iter_mut().zip(row).for_each(|(column, value)| column[*place] = value);
            }
            return;
        }
        if !found_by.is_empty() {
            self.places.insert(found_by, self.rows());
        }
        self.columns.resize_with(row.len(), Vec::new);
        self.columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
    }
}

/// The values that the server gets for one that is given.
fn flat(given: &Given<'_>) -> Vec<Value> {
    let text = |text: &str| Value::Text(text.to_owned());
    match given {
        Given::Plain(cell) => vec![kept(*cell)],
        Given::Trial(trial) => vec![Value::Bytes(trial.as_bytes().to_vec())],
        Given::Fold(fold) => key(fold).map(kept).to_vec(),
        Given::Worker(worker, host) => vec![text(worker.as_str()), text(host)],
        Given::Sweep(name) => vec![text(name)],
    }
}

fn kept(cell: Cell<'_>) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Number(number) => Value::Number(number),
        Cell::Text(text) => Value::Text(text.to_owned()),
        Cell::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
    }
}

/// Gathers the facts of the transaction of this number.
pub(super) fn stage(
    changes: &[Change],
    log: &[LogPiece],
    transaction: u64,
    at: i64,
) -> Result<Staged, StoreError> {
    let mut stage = Stage { batches: Vec::new(), gathering: Vec::new(), notes: Batch::new(&REMEMBER) };
    writes::write(changes, transaction, at, &mut |statement, values| {
        stage.put(statement, values);
        Ok(())
    })?;
    stage.close();
    let mut batches = stage.batches;
    batches.push(stage.notes);
    Ok(Staged { batches, log: merge(log) })
}

struct Stage {
    batches: Vec<Batch>,
    /// What may still change places.
    gathering: Vec<Batch>,
    notes: Batch,
}

impl Stage {
    fn put(&mut self, statement: &'static Statement, values: &[Given<'_>]) {
        if std::ptr::eq(statement, &REMEMBER) {
            self.notes.push(values);
        } else if statement.is_alone() {
            self.close();
            batch_of(&mut self.batches, statement, true).push(values);
        } else {
            for value in values {
                if let Given::Worker(worker, host) = value {
                    let worker = [worker.as_str(), host].map(|text| Given::Plain(Cell::Text(text)));
                    batch_of(&mut self.gathering, &MEET, false).push(&worker);
                }
            }
            batch_of(&mut self.gathering, statement, false).push(values);
        }
    }

    /// Ends a gathering.
    fn close(&mut self) {
        self.gathering.sort_by_key(|batch| batch.statement.rank());
        self.batches.append(&mut self.gathering);
    }
}

/// The rows of a statement; what is done alone is only done with what came just before.
fn batch_of<'a>(batches: &'a mut Vec<Batch>, statement: &'static Statement, alone: bool) -> &'a mut Batch {
    let candidates = if alone { batches.len().saturating_sub(1) } else { 0 };
    let found = batches[candidates..].iter().position(|batch| std::ptr::eq(batch.statement, statement));
    let place = found.map_or(batches.len(), |found| candidates + found);
    if place == batches.len() {
        batches.push(Batch::new(statement));
    }
    &mut batches[place]
}

/// One piece an attempt.
pub(super) fn merge(pieces: &[LogPiece]) -> Vec<LogPiece> {
    let mut merged: Vec<LogPiece> = Vec::new();
    let mut places: HashMap<(FoldKey, Attempt), usize> = HashMap::new();
    for piece in pieces {
        match places.get(&(piece.fold, piece.attempt)) {
            Some(place) => append_bounded(&mut merged[*place].text, &piece.text),
            None => {
                places.insert((piece.fold, piece.attempt), merged.len());
                merged.push(piece.clone());
            }
        }
    }
    merged
}
