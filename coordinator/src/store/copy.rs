//! The contents of a store as plain tables, moved between back ends: backup, restore and migration are all one copy
//! that is compared, table by table, with what was read. Knows the tables by name and nothing of what they mean.

use super::StoreError;
use super::address::StoreAddress;
use super::check::FoldRow;
use super::postgres::PostgresStore;
use super::sqlite::{self, SqliteStore};

pub(super) mod postgres;
pub(super) mod sqlite_file;

/// Rows that are written together.
const CHUNK: usize = 2_000;

/// One cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// A number.
    Number,
    /// Text without surprises.
    Text,
    /// Text that somebody wrote freely: bytes in PostgreSQL.
    Free,
    /// Bytes.
    Bytes,
}

/// A table: name, columns, and the columns that put its rows in order.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [(&'static str, Kind)],
    pub(super) order: &'static str,
}

use Kind::{Bytes, Free, Number, Text};

/// All tables, those that others refer to first.
pub(super) const TABLES: [Table; 14] = [
    Table { name: "store", columns: &[("incarnation", Number), ("commits", Number)], order: "incarnation" },
    Table {
        name: "trial",
        columns: &[("id", Number), ("trial", Bytes), ("canonical", Text), ("memory_floor", Number)],
        order: "id",
    },
    Table {
        name: "fold",
        columns: &[
            ("id", Number),
            ("trial", Number),
            ("split", Number),
            ("seed", Number),
            ("state", Text),
            ("attempt", Number),
            ("class", Text),
            ("message", Free),
            ("forgiven", Number),
            ("digest", Number),
        ],
        order: "id",
    },
    Table {
        name: "sweep",
        columns: &[
            ("id", Number),
            ("name", Text),
            ("place", Number),
            ("yaml", Free),
            ("priority", Number),
            ("limits", Text),
            ("state", Text),
            ("resources", Text),
            ("note", Free),
        ],
        order: "id",
    },
    Table {
        name: "sweep_fold",
        columns: &[("sweep", Number), ("position", Number), ("fold", Number)],
        order: "sweep, position",
    },
    Table { name: "worker", columns: &[("id", Number), ("name", Text), ("host", Free)], order: "id" },
    Table {
        name: "attempt",
        columns: &[
            ("fold", Number),
            ("attempt", Number),
            ("worker", Number),
            ("ending", Text),
            ("message", Free),
            ("at", Number),
            ("number", Number),
        ],
        order: "fold, attempt",
    },
    Table {
        name: "result",
        columns: &[
            ("id", Number),
            ("fold", Number),
            ("attempt", Number),
            ("kind", Text),
            ("digest", Number),
            ("body", Text),
            ("at", Number),
            ("number", Number),
        ],
        order: "id",
    },
    Table { name: "data_set", columns: &[("name", Free), ("digest", Free)], order: "name" },
    Table {
        name: "dissent",
        columns: &[("fold", Number), ("data_set", Free), ("digest", Free)],
        order: "fold",
    },
    Table {
        name: "history",
        columns: &[
            ("fold", Number),
            ("number", Number),
            ("at", Number),
            ("event", Text),
            ("attempt", Number),
            ("detail", Free),
        ],
        order: "fold, number",
    },
    Table {
        name: "log",
        columns: &[("fold", Number), ("attempt", Number), ("text", Free)],
        order: "fold, attempt",
    },
    Table { name: "drain", columns: &[("worker", Free), ("host", Free)], order: "worker" },
    Table { name: "quarantine", columns: &[("host", Free), ("reason", Free)], order: "host" },
];

impl Table {
    /// Its columns as SQL.
    pub(super) fn list(&self) -> String {
        self.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    /// The column that says to which fold a row belongs.
    pub(super) fn fold_column(&self) -> Option<&'static str> {
        let wanted = if self.name == "fold" { "id" } else { "fold" };
        self.columns.iter().map(|(name, _)| *name).find(|name| *name == wanted)
    }
}

pub(super) type Row = Vec<Value>;

/// What takes rows one by one.
pub(super) type Take<'a> = &'a mut dyn FnMut(Row) -> Result<(), StoreError>;

/// A store that does not change while it is read.
pub(super) trait Source: Send {
    /// Gives every row of a table, in order. A table that the store is too old to have is empty.
    fn each(&mut self, table: &Table, take: Take<'_>) -> Result<(), StoreError>;

    /// What is wrong with the place that the rows lie in, where that can be looked at.
    fn inspect(&mut self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    /// Folds whose rows in a damaged table cannot be read, where that can be found out.
    fn unreadable(&mut self, _table: &Table) -> Vec<FoldRow> {
        Vec::new()
    }
}

/// A store that is being filled.
pub(super) trait Target: Source {
    /// Adds rows.
    fn put(&mut self, table: &Table, rows: Vec<Row>) -> Result<(), StoreError>;
}

/// What a store holds, in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Table, rows, digest of all rows.
    pub tables: Vec<(&'static str, u64, String)>,
}

impl Summary {
    /// Rows of a table.
    pub fn rows(&self, table: &str) -> u64 {
        self.tables.iter().find(|(name, ..)| *name == table).map_or(0, |(_, rows, _)| *rows)
    }

    fn of(source: &mut dyn Source) -> Result<Self, StoreError> {
        let mut tables = Vec::new();
        for table in &TABLES {
            let mut tally = Tally::default();
            source.each(table, &mut |row| {
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
fn copy(from: &mut dyn Source, to: &mut dyn Target, incarnation: Option<i64>) -> Result<Summary, StoreError> {
    let mut tables = Vec::new();
    for table in &TABLES {
        let (mut tally, mut waiting) = (Tally::default(), Vec::new());
        from.each(table, &mut |mut row| {
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
    let (original, copied) = (Summary { tables }, Summary::of(to)?);
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
pub fn summary(of: &StoreAddress) -> Result<Summary, StoreError> {
    read(of, |source| Summary::of(source))
}

/// Copies a store into a new file, while a coordinator serves it or not. The file appears when it is whole.
pub fn backup(from: &StoreAddress, file: &std::path::Path) -> Result<Summary, StoreError> {
    if file.exists() {
        let hint = "a backup never overwrites; name another file";
        return Err(StoreError::NotEmpty { place: file.display().to_string(), hint });
    }
    sqlite_file::write(file, |target| read(from, |source| copy(source, target, None)))
}

/// Puts a backup in the place of a store that nobody serves. The store gets a new incarnation: reports that belong to
/// what happened after the backup are not taken for its own.
pub fn restore(file: &std::path::Path, to: &StoreAddress, replace: bool) -> Result<Summary, StoreError> {
    let from = StoreAddress::Sqlite(file.to_owned());
    let incarnation = Some(super::postgres::random()?);
    let hint = "use --replace to give up what it holds";
    match to {
        StoreAddress::Sqlite(path) => {
            let place = sqlite::take_place(path, replace, hint)?;
            sqlite_file::replace(&place.path, |target| {
                read(&from, |source| copy(source, target, incarnation))
            })
        }
        StoreAddress::Postgres(config) => {
            let mut store = PostgresStore::open(config)?;
            let rule = if replace { postgres::Rule::Replace } else { postgres::Rule::Empty(hint) };
            postgres::fill(&mut store, rule, |target| read(&from, |source| copy(source, target, incarnation)))
        }
        StoreAddress::Memory => Err(StoreError::InMemory("be restored")),
    }
}

/// Copies a store that nobody serves into an empty one of another kind or place. The copy is the same store: workers
/// bring it what they have spooled. The original is left as it is and must not be served any more.
pub fn migrate(from: &StoreAddress, to: &StoreAddress) -> Result<Summary, StoreError> {
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
    match to {
        StoreAddress::Sqlite(path) => {
            let place = sqlite::take_place(path, false, hint)?;
            sqlite_file::replace(&place.path, |target| read(from, |source| copy(source, target, None)))
        }
        StoreAddress::Postgres(config) => {
            let mut store = PostgresStore::open(config)?;
            let rule = postgres::Rule::Empty(hint);
            postgres::fill(&mut store, rule, |target| read(from, |source| copy(source, target, None)))
        }
        StoreAddress::Memory => Err(StoreError::InMemory("take a copy")),
    }
}

#[cfg(test)]
#[path = "copy_tests.rs"]
mod tests;
