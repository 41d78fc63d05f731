//! What both databases do for us in the same words: answer a question row by row, and carry out a statement. The cells of a
//! row look alike, whichever database they come from. Knows no table. Everything that comes back is checked: a value that
//! cannot have been stored is a typed error.

use std::error::Error;
use std::str::FromStr;
use std::sync::Arc;

use ::postgres::GenericClient;
use ::postgres::fallible_iterator::FallibleIterator;
use ::postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use bytes::{BufMut, BytesMut};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, params_from_iter};
use togl_scheduler::Digest;
use togl_sweeps::{Attempt, FoldKey, TrialId};

use super::tables::Dialect;
use super::{StoreError, impossible, word};

/// One value of a row or of a statement. In both databases numbers are signed and have 64 bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cell<'a> {
    Null,
    Number(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// The same, for who keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Value {
    Null,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Value {
    pub(super) fn cell(&self) -> Cell<'_> {
        match self {
            Self::Null => Cell::Null,
            Self::Number(number) => Cell::Number(*number),
            Self::Text(text) => Cell::Text(text),
            Self::Bytes(bytes) => Cell::Bytes(bytes),
        }
    }
}

/// What takes the rows of an answer, one by one: a million of them need not be in memory at the same time.
pub(super) type TakeRow<'a> = &'a mut dyn FnMut(&Row<'_>) -> Result<(), StoreError>;

/// An open database. Values are called `$1`, `$2` and so on in statements, in the order in which they first appear.
pub(super) trait Database {
    /// Which one.
    fn dialect(&self) -> Dialect;

    /// Gives every row of an answer.
    fn each(&mut self, sql: &str, values: &[Cell<'_>], take: TakeRow<'_>) -> Result<(), StoreError>;

    /// Carries out a statement; how many rows it concerned.
    fn run(&mut self, sql: &str, values: &[Cell<'_>]) -> Result<u64, StoreError>;
}

/// What `read` makes of every row of an answer.
pub(super) fn all<T>(
    on: &mut dyn Database,
    sql: &str,
    values: &[Cell<'_>],
    read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut found = Vec::new();
    on.each(sql, values, &mut |row| {
        found.push(read(row)?);
        Ok(())
    })?;
    Ok(found)
}

/// What `read` makes of the one row of an answer; none if there is no row.
pub(super) fn first<T>(
    on: &mut dyn Database,
    sql: &str,
    values: &[Cell<'_>],
    read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    Ok(all(on, sql, values, read)?.pop())
}

impl Database for &Connection {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn each(&mut self, sql: &str, values: &[Cell<'_>], take: TakeRow<'_>) -> Result<(), StoreError> {
        let mut statement = self.prepare_cached(sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            take(&Row::Sqlite(row))?;
        }
        Ok(())
    }

    fn run(&mut self, sql: &str, values: &[Cell<'_>]) -> Result<u64, StoreError> {
        Ok(self.prepare_cached(sql)?.execute(params_from_iter(values))? as u64)
    }
}

/// A connection to PostgreSQL, or a transaction.
pub(super) struct Postgres<'a, C>(pub(super) &'a mut C);

impl<C: GenericClient> Database for Postgres<'_, C> {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn each(&mut self, sql: &str, values: &[Cell<'_>], take: TakeRow<'_>) -> Result<(), StoreError> {
        let mut rows = self.0.query_raw(sql, values.iter().copied())?;
        while let Some(row) = rows.next()? {
            take(&Row::Postgres(&row))?;
        }
        Ok(())
    }

    fn run(&mut self, sql: &str, values: &[Cell<'_>]) -> Result<u64, StoreError> {
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        Ok(self.0.execute(sql, &values)?)
    }
}

impl rusqlite::ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Number(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl ToSql for Cell<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => return Ok(IsNull::Yes),
            Self::Number(number) => out.put_i64(*number),
            Self::Text(text) => out.put_slice(text.as_bytes()), // text, and bytes where it was written freely
            Self::Bytes(bytes) => out.put_slice(bytes),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true // the server looks at what it gets
    }

    to_sql_checked!();
}

impl ToSql for Value {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        ToSql::to_sql(&self.cell(), kind, out)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A row of an answer.
pub(super) enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a ::postgres::Row),
}

impl<'a> Row<'a> {
    /// What is in a column.
    pub(super) fn cell(&self, at: usize) -> Result<Cell<'a>, StoreError> {
        match self {
            Self::Sqlite(row) => match row.get_ref(at)? {
                ValueRef::Null => Ok(Cell::Null),
                ValueRef::Integer(number) => Ok(Cell::Number(number)),
                ValueRef::Text(text) => Ok(Cell::Text(utf8(text)?)),
                ValueRef::Blob(bytes) => Ok(Cell::Bytes(bytes)),
                ValueRef::Real(number) => Err(impossible("cell", format!("the fraction {number}"))),
            },
            Self::Postgres(row) => {
                let cell = match row.columns().get(at).map(::postgres::Column::type_) {
                    Some(&Type::BYTEA) => row.try_get::<_, Option<&[u8]>>(at)?.map(Cell::Bytes),
                    Some(&Type::TEXT) => row.try_get::<_, Option<&str>>(at)?.map(Cell::Text),
                    Some(&Type::BOOL) => {
                        row.try_get::<_, Option<bool>>(at)?.map(|is| Cell::Number(is.into()))
                    }
                    _ => row.try_get::<_, Option<i64>>(at)?.map(Cell::Number),
                };
                Ok(cell.unwrap_or(Cell::Null))
            }
        }
    }

    /// What is in a column, as what it must be.
    pub(super) fn get<T: Stored<'a>>(&self, at: usize) -> Result<T, StoreError> {
        let cell = self.cell(at)?;
        T::stored(cell).ok_or_else(|| impossible("cell", format!("{cell:?} in `{}`", self.name(at))))
    }

    /// A word of a fixed list.
    pub(super) fn word<T: FromStr<Err: ToString>>(
        &self,
        what: &'static str,
        at: usize,
    ) -> Result<T, StoreError> {
        word(what, self.get(at)?)
    }

    /// The same, where there may be none.
    pub(super) fn maybe_word<T: FromStr<Err: ToString>>(
        &self,
        what: &'static str,
        at: usize,
    ) -> Result<Option<T>, StoreError> {
        self.get::<Option<&str>>(at)?.map(|text| word(what, text)).transpose()
    }

    /// A fold's key from three columns: trial, split, seed.
    pub(super) fn fold(&self, first: usize) -> Result<FoldKey, StoreError> {
        Ok(FoldKey { trial: self.get(first)?, split: self.get(first + 1)?, seed: self.get(first + 2)? })
    }

    fn name(&self, at: usize) -> String {
        match self {
            Self::Sqlite(row) => row.as_ref().column_name(at).unwrap_or_default().to_owned(),
            Self::Postgres(row) => row.columns().get(at).map_or("", ::postgres::Column::name).to_owned(),
        }
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, StoreError> {
    std::str::from_utf8(bytes).map_err(|error| impossible("text", error))
}

/// What a cell can hold; none if it holds something else.
pub(super) trait Stored<'a>: Sized {
    fn stored(cell: Cell<'a>) -> Option<Self>;
}

impl<'a, T: Stored<'a>> Stored<'a> for Option<T> {
    fn stored(cell: Cell<'a>) -> Option<Self> {
        match cell {
            Cell::Null => Some(None),
            Cell::Number(_) | Cell::Text(_) | Cell::Bytes(_) => T::stored(cell).map(Some),
        }
    }
}

impl Stored<'_> for i64 {
    fn stored(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Number(number) => Some(number),
            Cell::Null | Cell::Text(_) | Cell::Bytes(_) => None,
        }
    }
}

impl<'a> Stored<'a> for &'a str {
    fn stored(cell: Cell<'a>) -> Option<Self> {
        match cell {
            Cell::Text(text) => Some(text),
            Cell::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            Cell::Null | Cell::Number(_) => None,
        }
    }
}

impl<'a> Stored<'a> for &'a [u8] {
    fn stored(cell: Cell<'a>) -> Option<Self> {
        match cell {
            Cell::Bytes(bytes) => Some(bytes),
            Cell::Null | Cell::Number(_) | Cell::Text(_) => None,
        }
    }
}

/// What is stored as something else.
macro_rules! stored_as {
    ($($kind:ty: $stored:ty, $read:expr;)*) => {$(
        impl<'a> Stored<'a> for $kind {
            fn stored(cell: Cell<'a>) -> Option<Self> {
                <$stored>::stored(cell).and_then($read)
            }
        }
    )*};
}

stored_as! {
    u64: i64, |bits| Some(bits.cast_unsigned());
    u32: i64, |number| number.try_into().ok();
    i32: i64, |number| number.try_into().ok();
    bool: i64, |number| Some(number != 0);
    String: &'a str, |text| Some(text.to_owned());
    Arc<str>: &'a str, |text| Some(text.into());
    TrialId: &'a [u8], |bytes| Some(Self::from_bytes(bytes.try_into().ok()?));
    Attempt: u32, |number| Some(Self(number));
    Digest: u64, |bits| Some(Self(bits));
}
