//! A SQLite file as the source or the target of a copy.

use std::fs;
use std::path::Path;

use rusqlite::Connection;

use super::super::StoreError;
use super::super::check::FoldRow;
use super::super::database::{Database, Value};
use super::super::sqlite::{self, beside};
use super::super::tables::Table;
use super::{Row, Source, StoreSummary, Target};

/// Borrowed for good measure: a copy may be made from another thread.
struct File<'a>(&'a mut Connection);

impl Source for File<'_> {
    fn database(&mut self) -> Box<dyn Database + '_> {
        Box::new(&*self.0)
    }

    fn inspect(&mut self) -> Result<Vec<String>, StoreError> {
        sqlite::inspect(self.0)
    }

    fn unreadable(&mut self, table: &Table) -> Vec<FoldRow> {
        // Answered by an index, so that it is known whose row is lost.
        let folds = "SELECT id, trial, split, seed FROM fold ORDER BY trial, split, seed";
        let Some(mut folds) = self.0.prepare(folds).ok().filter(|_| table.fold_column().is_some()) else {
            return Vec::new();
        };
        let folds = folds.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]));
        let folds: Vec<FoldRow> = folds.into_iter().flatten().map_while(Result::ok).collect();
        let (list, column) = (table.list(), table.fold_column().unwrap_or_default());
        let Ok(mut probe) = self.0.prepare(&format!("SELECT {list} FROM {} WHERE {column} = ?1", table.name))
        else {
            return Vec::new();
        };
        let mut is_lost = |fold: &FoldRow| {
            let rows = probe.query_map([fold[0]], |_| Ok(()));
            rows.and_then(|rows| rows.collect::<rusqlite::Result<Vec<()>>>()).is_err()
        };
        folds.into_iter().filter(|fold| is_lost(fold)).collect()
    }
}

impl Target for File<'_> {
    fn put(&mut self, table: &Table, rows: Vec<Row>) -> Result<(), StoreError> {
        let marks = vec!["?"; table.columns.len()].join(", ");
        let sql = format!("INSERT INTO {} ({}) VALUES ({marks})", table.name, table.list());
        let mut statement = self.0.prepare_cached(&sql)?;
        for row in rows {
            statement.execute(rusqlite::params_from_iter(row.iter().map(Value::cell)))?;
        }
        Ok(())
    }
}

/// Reads a file in one transaction.
pub(super) fn read<T>(
    path: &Path,
    work: impl FnOnce(&mut dyn Source) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut reader = sqlite::open_read_only(path)?;
    let connection = reader.connection();
    connection.execute_batch("BEGIN")?; // ends with the connection
    work(&mut File(connection)).map_err(|error| sqlite::refine(path, error))
}

/// Makes a new file and fills it; it appears under its name when it is whole and on disk.
pub(super) fn write(
    path: &Path,
    fill: impl FnOnce(&mut dyn Target) -> Result<StoreSummary, StoreError>,
) -> Result<StoreSummary, StoreError> {
    let draft = beside(path, ".partial");
    let written = sqlite::draft(&draft, |connection| {
        connection.execute_batch("BEGIN; DELETE FROM store")?;
        let summary = fill(&mut File(connection))?;
        connection.execute_batch("COMMIT")?;
        Ok(summary)
    });
    let summary = written.inspect_err(|_| {
        _ = fs::remove_file(&draft); // half a copy is no use to anybody
    })?;
    crate::crash::point("draft-written");
    sqlite::publish(&draft, path)?;
    crate::crash::point("draft-renamed");
    Ok(summary)
}

/// The same, in the place of a store, whose lock the caller holds. What was there is kept under another name.
pub(super) fn replace(
    path: &Path,
    fill: impl FnOnce(&mut dyn Target) -> Result<StoreSummary, StoreError>,
) -> Result<StoreSummary, StoreError> {
    let draft = beside(path, ".incoming");
    let summary = write(&draft, fill)?;
    sqlite::put_aside(path)?;
    crate::crash::point("old-aside");
    sqlite::publish(&draft, path)?;
    sqlite::count_anew(path)?;
    Ok(summary)
}

/// Copies what a connection still reads although its file is no longer at its place.
pub(in super::super) fn rescue(connection: &mut Connection, path: &Path) -> Result<StoreSummary, StoreError> {
    write(path, |target| super::copy(&mut File(connection), target, None))
}

/// Copies a store that nobody serves and puts the copy in its place.
pub(in super::super) fn renew(path: &Path) -> Result<(), StoreError> {
    replace(path, |target| read(path, |source| super::copy(source, target, None))).map(drop)
}
