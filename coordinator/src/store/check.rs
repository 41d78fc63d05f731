//! Whether a store holds what was stored: every page, every row, every digest, every reference. Reads only, also while a
//! coordinator serves the store. `togl check` asks for all of it; a coordinator looks at the pages of its file, or the rows
//! of its database, by itself after it has started. Says what is damaged and mends nothing.

use std::collections::{HashMap, HashSet};
use std::fmt;

use togl_scheduler::Digest;
use togl_sweeps::{FoldKey, TrialId};

use super::address::StoreAddress;
use super::copy::{self, Row, Source};
use super::database::{Cell, Stored, Value};
use super::tables::{TABLES, Table};
use super::{StoreError, decode, sqlite};

/// Places that are named; the others are counted.
const NAMED: usize = 1_000;

/// One thing that is not as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Which table; none if it is the file as such.
    pub table: Option<&'static str>,
    /// Whose row, where that is known.
    pub fold: Option<FoldKey>,
    /// What is wrong.
    pub detail: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.table.unwrap_or("the file"))?;
        if let Some(fold) = &self.fold {
            write!(f, ", fold {fold}")?;
        }
        write!(f, ": {}", self.detail)
    }
}

/// What a check found.
#[derive(Debug, Default)]
pub struct Checked {
    /// Rows that were read.
    pub rows: u64,
    /// What is damaged, at most a thousand of it.
    pub damage: Vec<Damage>,
    /// How much more there is.
    pub unnamed: u64,
}

impl Checked {
    /// Whether everything is as it was stored.
    pub fn is_whole(&self) -> bool {
        self.damage.is_empty()
    }

    fn add(&mut self, table: Option<&'static str>, fold: Option<FoldKey>, detail: impl ToString) {
        match self.damage.len() < NAMED {
            true => self.damage.push(Damage { table, fold, detail: detail.to_string() }),
            false => self.unnamed += 1,
        }
    }
}

/// Checks everything in a store as it is now.
pub fn check(store: &StoreAddress) -> Result<Checked, StoreError> {
    check_slowly(store, &mut || true)
}

/// The same, for who has time: `go_on` is asked now and then, may wait, and ends the check where it stands.
fn check_slowly(store: &StoreAddress, go_on: GoOn<'_>) -> Result<Checked, StoreError> {
    if let StoreAddress::Memory = store {
        return Err(StoreError::InMemory("be checked"));
    }
    match copy::read(store, |source| examine(source, go_on)) {
        Err(error) if error.is_damage() => {
            let mut checked = Checked::default();
            checked.add(None, None, sqlite::said(&error));
            Ok(checked)
        }
        other => other,
    }
}

/// Asked between two pieces of a long check.
pub(crate) type GoOn<'a> = &'a mut (dyn FnMut() -> bool + Send);

/// What a coordinator checks by itself. A file is read page by page, without keeping anybody from tidying its log, and
/// only where a page is damaged everything is read to find out whose it is.
pub(crate) fn check_quietly(store: &StoreAddress, go_on: GoOn<'_>) -> Result<Checked, StoreError> {
    match store {
        StoreAddress::Sqlite(path) => match sqlite::damaged_pages(path, go_on)? {
            0 => Ok(Checked::default()),
            _ => check(store),
        },
        StoreAddress::Postgres(_) => check_slowly(store, go_on),
        StoreAddress::Memory => Ok(Checked::default()),
    }
}

/// Rows between two questions whether to go on.
const STRIDE: u64 = 1_000;

fn examine(source: &mut dyn Source, go_on: GoOn<'_>) -> Result<Checked, StoreError> {
    let mut books = Books::default();
    for problem in source.inspect()? {
        books.checked.add(None, None, problem);
    }
    for table in &TABLES {
        let (mut patient, mut going) = (0u64, true);
        let read = copy::each(source, table, &mut |row| {
            patient += 1;
            going = going && (!patient.is_multiple_of(STRIDE) || go_on());
            if going {
                books.checked.rows += 1;
                books.take(table, &row);
            }
            Ok(())
        });
        if !going {
            return Ok(books.checked);
        }
        match read {
            Ok(()) => {}
            Err(error) if error.is_damage() => {
                books.checked.add(Some(table.name), None, sqlite::said(&error));
                for fold in source.unreadable(table) {
                    let fold = books.key(fold);
                    books.checked.add(Some(table.name), fold, "its row cannot be read");
                }
                books.torn.insert(table.name);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(books.close())
}

/// What the rows say about each other.
#[derive(Default)]
struct Books {
    trials: HashMap<i64, TrialId>,
    folds: HashMap<i64, Known>,
    /// Digests of the results that count, by fold.
    accepted: HashMap<i64, i64>,
    /// Tables that could not be read to their end: what refers to them proves nothing.
    torn: HashSet<&'static str>,
    checked: Checked,
}

struct Known {
    key: Option<FoldKey>,
    finished: bool,
    digest: Option<i64>,
}

/// The row of a fold as a source knows it: its number, its trial's, split and seed.
pub(super) type FoldRow = [i64; 4];

/// A row by the names of its columns.
struct Cells<'a>(&'a Table, &'a Row);

impl<'a> Cells<'a> {
    fn get<T: Stored<'a>>(&self, name: &str) -> Option<T> {
        let at = self.0.columns.iter().position(|column| column.name == name)?;
        T::stored(self.1.get(at).map_or(Cell::Null, Value::cell))
    }
}

impl Books {
    fn take(&mut self, table: &Table, row: &Row) {
        let cells = Cells(table, row);
        let number = |name| cells.get::<i64>(name);
        match table.name {
            "trial" => match (number("id"), cells.get("trial")) {
                (Some(id), Some(trial)) => _ = self.trials.insert(id, trial),
                _ => self.checked.add(Some(table.name), None, "a trial has no name"),
            },
            "fold" => {
                let key = (|| Some([number("id")?, number("trial")?, number("split")?, number("seed")?]))();
                let finished = cells.get("state") == Some("finished");
                self.take_fold(number("id").unwrap_or(0), key, finished, number("digest"));
            }
            _ => self.refer(table, number("fold")),
        }
        if table.name == "result" {
            let counts = cells.get("kind") == Some("accepted");
            let body = cells.get("body").unwrap_or_default();
            self.take_result(number("fold"), number("digest"), body, counts);
        }
    }

    fn take_fold(&mut self, id: i64, row: Option<FoldRow>, finished: bool, digest: Option<i64>) {
        let key = row.and_then(|row| self.key(row));
        if key.is_none() && !self.torn.contains("trial") {
            self.checked.add(Some("fold"), None, format!("the trial of row {id} is not there"));
        }
        self.folds.insert(id, Known { key, finished, digest });
    }

    /// A row that belongs to a fold must find it.
    fn refer(&mut self, table: &Table, fold: Option<i64>) {
        if let Some(fold) = fold
            && !self.folds.contains_key(&fold)
            && !self.torn.contains("fold")
        {
            self.checked.add(
                Some(table.name),
                None,
                format!("a row belongs to fold number {fold}, which is not there"),
            );
        }
    }

    /// The numbers of a result must be those of its digest.
    fn take_result(&mut self, fold: Option<i64>, digest: Option<i64>, body: &str, counts: bool) {
        let (Some(fold), Some(digest)) = (fold, digest) else { return };
        if counts {
            self.accepted.insert(fold, digest);
        }
        let Some(key) = self.folds.get(&fold).and_then(|known| known.key) else { return };
        if let Err(error) = decode(&key, Digest(digest.cast_unsigned()), body) {
            let detail = match error {
                StoreError::Impossible { detail, .. } => detail,
                other => other.to_string(),
            };
            self.checked.add(Some("result"), Some(key), detail);
        }
    }

    fn key(&self, [_, trial, split, seed]: FoldRow) -> Option<FoldKey> {
        let trial = *self.trials.get(&trial)?;
        Some(FoldKey { trial, split: split.try_into().ok()?, seed: seed.cast_unsigned() })
    }

    /// A finished fold must have the result that it says.
    fn close(mut self) -> Checked {
        if self.torn.contains("result") {
            return self.checked;
        }
        for (id, known) in self.folds.iter().filter(|(_, known)| known.finished) {
            match (self.accepted.get(id), known.digest) {
                (None, _) => {
                    self.checked.add(Some("result"), known.key, "the fold is finished and has no result")
                }
                (Some(result), Some(digest)) if *result != digest => {
                    self.checked.add(
                        Some("result"),
                        known.key,
                        "it is not the result that the fold was finished with",
                    );
                }
                (Some(_), _) => {}
            }
        }
        self.checked
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
