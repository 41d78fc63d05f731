//! The contents of a store as plain tables, moved between back ends: backup, restore and migration are all one copy
//! that is compared, table by table, with what was read. Knows nothing of what the tables mean.

use super::StoreError;
use super::address::StoreAddress;
use super::check::FoldRow;
use super::database::{self, Cell, Database, Value, first};
use super::postgres::PostgresStore;
use super::sqlite::{self, SqliteStore};
use super::tables::{Dialect, Kind, TABLES, Table};

pub(super) mod postgres;
pub(super) mod sqlite_file;

/// Rows that are written together.
const CHUNK: usize = 2_000;

/// One row, with everything that is a number as such, and everything that is text.
pub(super) type Row = Vec<Value>;

/// What takes rows one by one.
pub(super) type Take<'a> = &'a mut dyn FnMut(Row) -> Result<(), StoreError>;

/// A store that does not change while it is read.
pub(super) trait Source: Send {
    /// Where its tables are.
    fn database(&mut self) -> Box<dyn Database + '_>;

    /// What is wrong with the place that the rows lie in, where that can be looked at.
    fn inspect(&mut self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    /// Folds whose rows in a damaged table cannot be read, where that can be found out.
    fn unreadable(&mut self, _table: &Table) -> Vec<FoldRow> {
        Vec::new()
    }
}

/// Gives every row of a table, in order. A table that the store is too old to have is empty.
pub(super) fn each(source: &mut dyn Source, table: &Table, take: Take<'_>) -> Result<(), StoreError> {
    let mut on = source.database();
    let there = match on.dialect() {
        Dialect::Sqlite => "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = $1)",
        Dialect::Postgres => "SELECT to_regclass($1::text) IS NOT NULL",
    };
    if first(&mut *on, there, &[Cell::Text(table.name)], |row| row.get(0))? != Some(true) {
        return Ok(());
    }
    let sql = format!("SELECT {} FROM {} ORDER BY {}", table.list(), table.name, table.order);
    on.each(&sql, &[], &mut |row| {
        let cells = table.columns.iter().enumerate().map(|(at, column)| column.kind.value(row, at));
        take(cells.collect::<Result<_, _>>()?)
    })
}

impl Kind {
    /// What is in a column of this kind.
    fn value(self, row: &database::Row<'_>, at: usize) -> Result<Value, StoreError> {
        let value = match self {
            Self::Row | Self::Trial | Self::Fold | Self::Worker | Self::Sweep | Self::Number => {
                row.get::<Option<_>>(at)?.map(Value::Number)
            }
            Self::Text | Self::Free => row.get::<Option<_>>(at)?.map(Value::Text),
            Self::Bytes => row.get::<Option<&[u8]>>(at)?.map(|bytes| Value::Bytes(bytes.to_vec())),
        };
        Ok(value.unwrap_or(Value::Null))
    }
}

/// A store that is being filled.
pub(super) trait Target: Source {
    /// Adds rows.
    fn put(&mut self, table: &Table, rows: Vec<Row>) -> Result<(), StoreError>;
}

/// What a store holds, in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSummary {
    /// Table, rows, digest of all rows.
    pub tables: Vec<(&'static str, u64, String)>,
}

impl StoreSummary {
    /// Rows of a table.
    pub fn rows(&self, table: &str) -> u64 {
        self.tables.iter().find(|(name, ..)| *name == table).map_or(0, |(_, rows, _)| *rows)
    }

    fn of(source: &mut dyn Source) -> Result<Self, StoreError> {
        let mut tables = Vec::new();
        for table in &TABLES {
            let mut tally = Tally::default();
            each(source, table, &mut |row| {
                tally.add(&row);
                Ok(())
            })?;
            tables.push(tally.named(table));
        }
        Ok(Self { tables })
    }
}

#[derive(Default)]
struct Tally {
    rows: u64,
    hasher: blake3::Hasher,
}

impl Tally {
    fn add(&mut self, row: &Row) {
        self.rows += 1;
        for value in row {
            let (kind, bytes): (u8, &[u8]) = match value {
                Value::Null => (0, &[]),
                Value::Number(number) => (1, &number.to_le_bytes()),
                Value::Text(text) => (2, text.as_bytes()),
                Value::Bytes(bytes) => (3, bytes),
            };
            self.hasher.update(&[kind]);
            self.hasher.update(&(bytes.len() as u64).to_le_bytes());
            self.hasher.update(bytes);
        }
    }

    fn named(&self, table: &Table) -> (&'static str, u64, String) {
        (table.name, self.rows, self.hasher.finalize().to_hex()[..32].to_owned())
    }
}

/// Copies everything, then reads the copy and compares. `incarnation` replaces the original's.
fn copy(
    from: &mut dyn Source,
    to: &mut dyn Target,
    incarnation: Option<i64>,
) -> Result<StoreSummary, StoreError> {
    let mut tables = Vec::new();
    for table in &TABLES {
        let (mut tally, mut waiting) = (Tally::default(), Vec::new());
        each(from, table, &mut |mut row| {
            if let (Some(incarnation), "store", Some(cell)) = (incarnation, table.name, row.first_mut()) {
                *cell = Value::Number(incarnation);
            }
            tally.add(&row);
            waiting.push(row);
            if waiting.len() < CHUNK { Ok(()) } else { to.put(table, std::mem::take(&mut waiting)) }
        })?;
        to.put(table, waiting)?;
        tables.push(tally.named(table));
    }
    let (original, copied) = (StoreSummary { tables }, StoreSummary::of(to)?);
    match original.tables.iter().zip(&copied.tables).find(|(one, other)| one != other) {
        Some(((table, ..), _)) => Err(StoreError::CopyDiffers { table }),
        None => Ok(original),
    }
}

/// Reads `from` as it is now, also while a coordinator serves it.
pub(super) fn read<T>(
    from: &StoreAddress,
    work: impl FnOnce(&mut dyn Source) -> Result<T, StoreError> + Send,
) -> Result<T, StoreError>
where
    T: Send,
{
    match from {
        StoreAddress::Sqlite(path) => sqlite_file::read(path, work),
        StoreAddress::Postgres(config) => postgres::read(config, work),
        StoreAddress::Memory => Err(StoreError::InMemory("be copied")),
    }
}

/// What a store holds now, in numbers.
pub fn summary(of: &StoreAddress) -> Result<StoreSummary, StoreError> {
    read(of, |source| StoreSummary::of(source))
}

/// Copies a store into a new file, while a coordinator serves it or not. The file appears when it is whole.
pub fn backup(from: &StoreAddress, file: &std::path::Path) -> Result<StoreSummary, StoreError> {
    if file.exists() {
        let hint = "a backup never overwrites; name another file";
        return Err(StoreError::NotEmpty { place: file.display().to_string(), hint });
    }
    sqlite_file::write(file, |target| read(from, |source| copy(source, target, None)))
}

/// Puts a backup in the place of a store that nobody serves. The store gets a new incarnation: reports that belong to
/// what happened after the backup are not taken for its own.
pub fn restore(file: &std::path::Path, to: &StoreAddress, replace: bool) -> Result<StoreSummary, StoreError> {
    let from = StoreAddress::Sqlite(file.to_owned());
    let incarnation = Some(super::postgres::random()?);
    let hint = "use --replace to give up what it holds";
    fill(&from, to, (replace, hint), incarnation, "be restored")
}

/// Copies a store that nobody serves into an empty one of another kind or place. The copy is the same store: workers
/// bring it what they have spooled. The original is left as it is and must not be served any more.
pub fn migrate(from: &StoreAddress, to: &StoreAddress) -> Result<StoreSummary, StoreError> {
    // Held until the copy is done, so that nothing is written to the original meanwhile.
    let _held: Box<dyn super::Store> = match from {
        StoreAddress::Sqlite(path) if !path.exists() => {
            return Err(StoreError::Missing { path: path.clone() });
        }
        StoreAddress::Sqlite(path) => Box::new(SqliteStore::open(path)?),
        StoreAddress::Postgres(config) => {
            super::postgres::open_read_only(config)?;
            Box::new(PostgresStore::open(config)?)
        }
        StoreAddress::Memory => return Err(StoreError::InMemory("be copied")),
    };
    let hint = "a migration needs an empty place";
    fill(from, to, (false, hint), None, "take a copy")
}

/// Copies a store into a place that must be empty, unless what it holds is given up, and that nobody else uses meanwhile.
fn fill(
    from: &StoreAddress,
    to: &StoreAddress,
    (replace, hint): (bool, &'static str),
    incarnation: Option<i64>,
    what: &'static str,
) -> Result<StoreSummary, StoreError> {
    let fill = |target: &mut dyn Target| read(from, |source| copy(source, target, incarnation));
    match to {
        StoreAddress::Sqlite(path) => {
            let place = sqlite::take_place(path, replace, hint)?;
            sqlite_file::replace(&place.path, fill)
        }
        StoreAddress::Postgres(access) => {
            postgres::fill(&mut PostgresStore::open(access)?, (replace, hint), fill)
        }
        StoreAddress::Memory => Err(StoreError::InMemory(what)),
    }
}

#[cfg(test)]
#[path = "copy_tests.rs"]
mod tests;
