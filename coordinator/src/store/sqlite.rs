//! The embedded store: one SQLite file in WAL mode, flushed at every commit. Owns opening and recognising the file;
//! `place` has its names, `held` its lock and whether it is still there, `pages` the checksums, `counter` the number of
//! the last transaction, `schema` which version it has, `write` keeps facts, `known` says
//! which rows they are about, `scan` whether all of it is whole, `explain` what SQLite complains about.
//!
//! A file that is not ours, is newer or is damaged is refused before anything is written to it. While it is served, nothing
//! is acknowledged that is not in the file at its place.

mod counter;
mod explain;
mod held;
mod known;
mod pages;
mod place;
mod scan;
mod schema;
mod write;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use togl_scheduler::{Change, Snapshot};

use self::counter::Counter;
use self::explain::explain;
pub(super) use self::explain::{damage, refine, said};
use self::held::{Disturbance, Held};
use self::known::Known;
pub(super) use self::place::{beside, publish, put_aside};
pub(super) use self::scan::{damaged_pages, inspect};
use super::address::StoreAddress;
use super::database::Database;
use super::facts::Tables;
use super::load::load;
use super::{LogPiece, Readers, Store, StoreError, delete};
use crate::private;

/// Statements that a connection keeps ready; there are fewer different ones.
const STATEMENTS: usize = 64;

/// Pages of the log that are copied into the file together: 32 MB. A page that changes often is then copied once for many
/// transactions.
const CHECKPOINT: u32 = 8_000;

/// How long a reader waits for a writer that is just starting or closing.
const PATIENCE: Duration = Duration::from_secs(5);

/// The store of a coordinator that serves. Keeps everybody else away until it is dropped.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Connection,
    path: PathBuf,
    incarnation: u64,
    /// Transactions so far.
    commits: u64,
    known: Known,
    counter: Counter,
    /// Both keep others away. Behind the connection, because they must be open for longer.
    held: Held,
    _lock: File,
}

/// A store that is only read, while a coordinator serves it or not.
#[derive(Debug)]
pub struct SqliteReader {
    connection: Connection,
    path: PathBuf,
}

impl SqliteStore {
    /// Opens the store in the file `path`, making it if it is not there.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let path = place::real(path)?;
        let lock = place::lock(&path)?;
        if place::is_empty(&path)? {
            counter::check_gone(&path)?;
            create(&path)?;
        }
        schema::recognise(&path)?;
        let mut file = held::lock(&path)?;
        if !place::has_log(&path) {
            schema::inspect(&path)?; // a crash may have left the file half written, with the log to mend it
        }
        if schema::is_unchecked(&path)? {
            upgrade(&path)?;
            file = held::lock(&path)?; // of the new file
        }
        drop(open_read_only(&path)?); // refuses what lost transactions before anything is written
        let mut connection = pages::open(&path, flags(OpenFlags::SQLITE_OPEN_READ_WRITE))
            .map_err(|error| explain(&path, error))?;
        let (incarnation, commits) = prepare(&mut connection, &path).map_err(|error| refine(&path, error))?;
        let counter = Counter::open(&path, incarnation, commits)?;
        let (held, known) = (Held::new(&path, file, &connection)?, Known::default());
        Ok(Self { connection, path, incarnation, commits, known, counter, held, _lock: lock })
    }

    /// Keeps what can be kept of a store that somebody else has touched, and says what to do.
    fn disturbed(&mut self, disturbance: Disturbance) -> StoreError {
        tracing::error!(store = %self.path.display(), what = disturbance.as_str(), "keeping what can be kept");
        let backup = "restore it from a backup with `togl restore FILE --replace`";
        let advice = match disturbance {
            Disturbance::Gone | Disturbance::Replaced => {
                let rescued = place::free_name(&self.path, ".rescued", |_| false);
                match super::copy::sqlite_file::rescue(&mut self.connection, &rescued) {
                    Ok(_) => format!(
                        "what it held is in {0}: `togl restore {0} --replace` puts it back",
                        rescued.display()
                    ),
                    Err(error) => format!("what it held could not be saved ({error}); {backup}"),
                }
            }
            Disturbance::Bare => match settle(&self.connection, &self.path) {
                Ok(()) => "what was in them is in the store now; start the coordinator again".to_owned(),
                Err(error) => format!("what was in them could not be saved ({error}); {backup}"),
            },
            Disturbance::Written => {
                self.counter.condemn();
                backup.to_owned()
            }
        };
        StoreError::Disturbed { path: self.path.clone(), what: disturbance.as_str(), advice }
    }
}

impl delete::Held for SqliteStore {
    fn number(&mut self, sql: &str) -> Result<Option<i64>, StoreError> {
        let found = self.connection.query_row(sql, [], |row| row.get(0)).optional();
        found.map_err(|error| explain(&self.path, error))
    }

    fn size(&mut self) -> Result<u64, StoreError> {
        settle(&self.connection, &self.path)?;
        let file = std::fs::metadata(&self.path);
        Ok(file.map_err(|source| StoreError::NotReadable { path: self.path.clone(), source })?.len())
    }

    fn rewrite(&mut self, statements: &str) -> Result<(), StoreError> {
        let number = self.commits + 1;
        let written = self.connection.execute_batch(&format!(
            "BEGIN IMMEDIATE; {statements}; UPDATE store SET commits = {number}; COMMIT; VACUUM"
        ));
        written.map_err(|error| explain(&self.path, error))?;
        (self.known, self.commits) = (Known::default(), number);
        self.counter.set(number);
        Ok(())
    }
}

/// Opens a store for reading, also while a coordinator serves it.
pub fn open_read_only(path: &Path) -> Result<SqliteReader, StoreError> {
    if place::is_empty(path)? {
        return Err(StoreError::Missing { path: path.to_owned() });
    }
    let path = &place::real(path)?;
    schema::recognise(path)?;
    let noted = counter::noted(path);
    let open = |name: &str| {
        let flags = flags(OpenFlags::SQLITE_OPEN_READ_ONLY) | OpenFlags::SQLITE_OPEN_URI;
        let connection = pages::open(Path::new(name), flags)?;
        ready(&connection)?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    // In a folder where nothing may be written, SQLite reads only a file that it may take for unchanging.
    // That is not so while a log waits to be copied into it: then the newest results would silently be missing.
    let connection =
        open(&schema::uri(path, "")).or_else(|error: rusqlite::Error| match place::has_log(path) {
            true => Err(error),
            false => open(&schema::uri(path, "?immutable=1")),
        });
    let connection = connection.map_err(|error| explain(path, error))?;
    let identity = schema::check_version(&connection, path).and_then(|()| schema::identity(&connection));
    let (incarnation, commits) = identity.map_err(|error| refine(path, error))?;
    counter::check(path, noted, incarnation, commits)?;
    Ok(SqliteReader { connection, path: path.to_owned() })
}

/// Makes the bytes of a file look whole to the checks of its pages. For tests of what lies behind these.
pub(crate) fn seal(file: &mut [u8]) {
    pages::seal(file);
}

impl SqliteReader {
    /// Everything a scheduler needs to start.
    pub(crate) fn load(&self) -> Result<Snapshot, StoreError> {
        self.ask(load)
    }

    /// The connection, for copies.
    pub(super) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// The same reader, which sees from now on one state only. It ends with the connection.
    pub(super) fn hold(self) -> Result<Self, StoreError> {
        // A transaction has its state from its first look on.
        let held = self.connection.execute_batch("BEGIN; SELECT incarnation FROM store");
        held.map_err(|error| explain(&self.path, error))?;
        Ok(self)
    }
}

impl Tables for SqliteReader {
    fn ask<T: Send>(
        &self,
        question: impl FnOnce(&mut dyn Database) -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError> {
        question(&mut &self.connection).map_err(|error| refine(&self.path, error))
    }
}

fn flags(access: OpenFlags) -> OpenFlags {
    access | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

/// What every connection needs. Plans are fixed, because SQLite would otherwise parse and plan a statement anew each
/// time it gets other values, which costs five times as much as running it.
fn ready(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Makes the connection ready to write; gives incarnation and number of transactions.
fn prepare(connection: &mut Connection, path: &Path) -> Result<(u64, u64), StoreError> {
    ready(connection)?;
    schema::check_version(connection, path)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT)?;
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::Impossible {
            what: "journal mode",
            detail: format!("`{mode}` instead of `wal`"),
        });
    }
    settle(connection, path)?;
    schema::migrate(connection)?;
    schema::identity(connection)
}

/// Copies what a crash left in the log into the file, then checks that nothing of the file is missing.
fn settle(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    let (header, length) = pages::header(connection)?;
    if busy { Ok(()) } else { schema::check_length(path, &header, length) }
}

/// Begins the count of a store that has just been put in its place.
pub(super) fn count_anew(path: &Path) -> Result<(), StoreError> {
    let unreadable = || StoreError::Corrupt {
        path: path.to_owned(),
        detail: "what was just written cannot be read".to_owned(),
    };
    let (incarnation, commits) = schema::identity_without_log(path).ok_or_else(unreadable)?;
    Counter::open(path, incarnation, commits).map(drop)
}

/// Makes a store beside its place and moves it there, so that a crash leaves nothing half made.
fn create(path: &Path) -> Result<(), StoreError> {
    let new = beside(path, ".new");
    draft(&new, |_| Ok(()))?;
    publish(&new, path)
}

/// Makes a store that nobody knows yet and lets `fill` write to it. Nothing is flushed before it is published.
pub(super) fn draft<T>(
    path: &Path,
    fill: impl FnOnce(&mut Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    place::clear(path)?;
    let not_writable = |source| StoreError::NotWritable { path: path.to_owned(), source };
    private::options().write(true).create_new(true).open(path).map_err(not_writable)?;
    let made = || -> Result<T, StoreError> {
        let mut connection = pages::open(path, flags(OpenFlags::SQLITE_OPEN_READ_WRITE))?;
        pages::reserve(&connection)?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.pragma_update_and_check(None, "journal_mode", "MEMORY", |_| Ok(()))?;
        schema::create(&mut connection)?;
        let filled = fill(&mut connection)?;
        connection.close().map_err(|(_, error)| error)?;
        Ok(filled)
    };
    made().map_err(|error| refine(path, error))
}

/// Gives the pages of an older store their checksums, by copying it. The old file is kept beside the new one.
fn upgrade(path: &Path) -> Result<(), StoreError> {
    tracing::info!(store = %path.display(), "bringing the store up to date");
    let mut connection =
        pages::open(path, flags(OpenFlags::SQLITE_OPEN_READ_WRITE)).map_err(|error| explain(path, error))?;
    settle(&connection, path)?;
    schema::migrate(&mut connection).map_err(|error| refine(path, error))?;
    connection.close().map_err(|(_, error)| explain(path, error))?;
    super::copy::sqlite_file::renew(path)
}

/// A place that something new may be put in, with its one name. Nobody else may use it until it is dropped.
pub(super) struct Place {
    pub(super) path: PathBuf,
    _locks: (File, Option<File>),
}

/// Takes the locks of a place. What is there must be empty, unless it may be given up; it need not even be readable then.
pub(super) fn take_place(path: &Path, replace: bool, hint: &'static str) -> Result<Place, StoreError> {
    let path = place::real(path)?;
    let lock = place::lock(&path)?;
    let free = |path: &Path| -> Result<bool, StoreError> {
        let reader = open_read_only(path)?;
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM sweep) AND NOT EXISTS (SELECT 1 FROM trial)";
        Ok(reader.connection.query_row(sql, [], |row| row.get(0))?)
    };
    let file = if place::is_empty(&path)? { None } else { Some(held::lock(&path)?) };
    if file.is_none() || replace || free(&path)? {
        return Ok(Place { path, _locks: (lock, file) });
    }
    Err(StoreError::NotEmpty { place: path.display().to_string(), hint })
}

impl Store for SqliteStore {
    fn load(&self) -> Result<Snapshot, StoreError> {
        load(&mut &self.connection).map_err(|error| refine(&self.path, error))
    }

    fn commit_with_log(&mut self, changes: &[Change], log: &[LogPiece]) -> Result<(), StoreError> {
        self.held.check_untouched(&self.connection).map_err(|disturbance| self.disturbed(disturbance))?;
        let number = self.commits + 1;
        // If it fails, rows that were looked up in between may not be there.
        let mut known = std::mem::take(&mut self.known);
        let identity = (self.incarnation, number);
        if !write::commit(&mut self.connection, &mut known, (changes, log), identity)
            .map_err(|error| refine(&self.path, error))?
        {
            return Err(self.disturbed(Disturbance::Written));
        }
        (self.known, self.commits) = (known, number);
        crate::crash::point("committed");
        self.counter.set(number);
        crate::crash::point("counted");
        if self.held.check_written(&self.connection).map_err(|disturbance| self.disturbed(disturbance))? {
            self.counter.look_into(&self.path);
        }
        Ok(())
    }

    fn append_log(&mut self, pieces: &[LogPiece]) -> Result<(), StoreError> {
        // Whatever somebody else did to the files: the next commit finds it, and says it to those who wait.
        if self.held.check_untouched(&self.connection).is_ok() {
            write::append_log(&mut self.connection, pieces).map_err(|error| refine(&self.path, error))?;
            _ = self.held.check_written(&self.connection);
        }
        Ok(())
    }

    fn incarnation(&self) -> u64 {
        self.incarnation
    }

    fn readers(&self) -> Arc<dyn Readers> {
        Arc::new(StoreAddress::Sqlite(self.path.clone()))
    }

    fn close(mut self: Box<Self>) -> Result<(), StoreError> {
        self.held.check_untouched(&self.connection).map_err(|disturbance| self.disturbed(disturbance))?;
        let Self { connection, path, held: _held, _lock, .. } = *self;
        // Readers of this process may still be open, and then closing alone would leave the log behind.
        settle(&connection, &path)?;
        connection.close().map_err(|(_, error)| explain(&path, error))
    }
}

#[cfg(test)]
#[path = "sqlite_tests.rs"]
pub(crate) mod tests;
