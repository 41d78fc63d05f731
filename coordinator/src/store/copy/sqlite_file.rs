//! A SQLite file as the source or the target of a copy.

use std::fs;
use std::path::Path;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql};

use super::super::check::FoldRow;
use super::super::sqlite::{self, beside};
use super::super::{StoreError, impossible};
use super::{Kind, Row, Source, Summary, Table, Take, Target, Value};

/// Borrowed for good measure: a copy may be made from another thread.
struct File<'a>(&'a mut Connection);

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Null => Ok(ToSqlOutput::Borrowed(ValueRef::Null)),
            Self::Number(number) => Ok(ToSqlOutput::Borrowed(ValueRef::Integer(*number))),
            Self::Text(text) => Ok(ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes()))),
            Self::Bytes(bytes) => Ok(ToSqlOutput::Borrowed(ValueRef::Blob(bytes))),
        }
    }
}

fn value(kind: Kind, cell: ValueRef<'_>) -> Result<Value, StoreError> {
    match (kind, cell) {
        (_, ValueRef::Null) => Ok(Value::Null),
        (Kind::Number, ValueRef::Integer(number)) => Ok(Value::Number(number)),
        (Kind::Bytes, ValueRef::Blob(bytes)) => Ok(Value::Bytes(bytes.to_vec())),
        (Kind::Text | Kind::Free, ValueRef::Text(text)) => {
            let text = std::str::from_utf8(text).map_err(|error| impossible("text", error))?;
            Ok(Value::Text(text.to_owned()))
        }
        (_, other) => Err(impossible("cell", format!("a {}", other.data_type()))),
    }
}

impl Source for File<'_> {
    fn each(&mut self, table: &Table, take: Take<'_>) -> Result<(), StoreError> {
        let there = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1)";
        if !self.0.query_row(there, [table.name], |row| row.get(0))? {
            return Ok(());
        }
        let sql = format!("SELECT {} FROM {} ORDER BY {}", table.list(), table.name, table.order);
        let mut statement = self.0.prepare(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let cells = table.columns.iter().enumerate();
            let row: Result<Row, StoreError> =
                cells.map(|(index, (_, kind))| value(*kind, row.get_ref(index)?)).collect();
            take(row?)?;
        }
        Ok(())
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
            statement.execute(rusqlite::params_from_iter(row))?;
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
    fill: impl FnOnce(&mut dyn Target) -> Result<Summary, StoreError>,
) -> Result<Summary, StoreError> {
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
    fill: impl FnOnce(&mut dyn Target) -> Result<Summary, StoreError>,
) -> Result<Summary, StoreError> {
    let draft = beside(path, ".incoming");
    let summary = write(&draft, fill)?;
    sqlite::put_aside(path)?;
    crate::crash::point("old-aside");
    sqlite::publish(&draft, path)?;
    sqlite::count_anew(path)?;
    Ok(summary)
}

/// Copies what a connection still reads although its file is no longer at its place.
pub(in super::super) fn rescue(connection: &mut Connection, path: &Path) -> Result<Summary, StoreError> {
    write(path, |target| super::copy(&mut File(connection), target, None))
}

/// Copies a store that nobody serves and puts the copy in its place.
pub(in super::super) fn renew(path: &Path) -> Result<(), StoreError> {
    replace(path, |target| read(path, |source| super::copy(source, target, None))).map(drop)
}
