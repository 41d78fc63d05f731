//! The embedded store: one SQLite file in WAL mode, flushed at every commit. Owns opening, locking and
//! recognising the file; `schema` has the tables, `write` the facts, `read` what comes back.
//!
//! A file that is not ours, is newer or is damaged is refused before anything is written to it.

mod read;
mod schema;
mod write;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use togl_scheduler::{Change, Snapshot};
use togl_sweeps::FoldKey;

use super::history::Happened;
use super::{LogPiece, Reader, ResultPage, ResultQuery, Store, StoreError, StoredSweep};

/// Statements that a connection keeps ready; there are fewer different ones.
const STATEMENTS: usize = 64;

/// How long a reader waits for a writer that is just starting or closing.
const PATIENCE: Duration = Duration::from_secs(5);

/// The store of a coordinator that serves. Keeps everybody else away until it is dropped.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Connection,
    path: PathBuf,
    incarnation: u64,
    /// Locked for as long as it is open.
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
        check_folder(path)?;
        let lock = lock(path)?;
        if is_empty(path)? {
            create(path)?;
        } else {
            schema::recognise(path)?;
        }
        let mut connection = Connection::open_with_flags(path, flags(OpenFlags::SQLITE_OPEN_READ_WRITE))
            .map_err(|error| explain(path, error))?;
        let incarnation = prepare(&mut connection, path).map_err(|error| refine(path, error))?;
        Ok(Self { connection, path: path.to_owned(), incarnation, _lock: lock })
    }
}

/// Opens a store for reading, also while a coordinator serves it.
pub fn open_read_only(path: &Path) -> Result<SqliteReader, StoreError> {
    if is_empty(path)? {
        return Err(StoreError::Missing { path: path.to_owned() });
    }
    schema::recognise(path)?;
    let open = |name: &str| {
        let flags = flags(OpenFlags::SQLITE_OPEN_READ_ONLY) | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(name, flags)?;
        connection.busy_timeout(PATIENCE)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    // In a folder where nothing may be written, SQLite reads only a file that it may take for unchanging.
    // That is not so while a log waits to be copied into it: then the newest results would silently be missing.
    let connection = open(&schema::uri(path, "")).or_else(|error: rusqlite::Error| match has_log(path) {
        true => Err(error),
        false => open(&schema::uri(path, "?immutable=1")),
    });
    let connection = connection.map_err(|error| explain(path, error))?;
    schema::check_version(&connection, path).map_err(|error| refine(path, error))?;
    Ok(SqliteReader { connection, path: path.to_owned() })
}

fn has_log(path: &Path) -> bool {
    fs::metadata(beside(path, "-wal")).is_ok_and(|metadata| metadata.len() > 0)
}

fn flags(access: OpenFlags) -> OpenFlags {
    access | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

fn prepare(connection: &mut Connection, path: &Path) -> Result<u64, StoreError> {
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    schema::check_version(connection, path)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::Impossible {
            what: "journal mode",
            detail: format!("`{mode}` instead of `wal`"),
        });
    }
    settle(connection, path)?;
    schema::migrate(connection)?;
    let incarnation: i64 = connection.query_row("SELECT incarnation FROM store", [], |row| row.get(0))?;
    Ok(incarnation.cast_unsigned())
}

/// Copies what a crash left in the log into the file, then checks that nothing of the file is missing.
fn settle(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy { Ok(()) } else { schema::check_length(path) }
}

/// Makes a store beside its place and moves it there, so that a crash leaves nothing half made.
fn create(path: &Path) -> Result<(), StoreError> {
    let draft = beside(path, ".new");
    let not_writable = |source| StoreError::NotWritable { path: path.to_owned(), source };
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(not_writable(error)),
        _ => {}
    }
    File::create_new(&draft).map_err(not_writable)?;
    let mut connection = Connection::open(&draft).map_err(|error| explain(&draft, error))?;
    schema::create(&mut connection)?;
    connection.close().map_err(|(_, error)| error)?;
    File::open(&draft).and_then(|file| file.sync_all()).map_err(not_writable)?;
    fs::rename(&draft, path).map_err(not_writable)
}

fn check_folder(path: &Path) -> Result<(), StoreError> {
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => path,
    };
    if folder.is_dir() { Ok(()) } else { Err(StoreError::NoFolder { path: folder.to_owned() }) }
}

/// Whether there is no file, or nothing in it.
fn is_empty(path: &Path) -> Result<bool, StoreError> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(metadata.len() == 0),
        Ok(_) => Err(StoreError::Foreign { path: path.to_owned() }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(source) => Err(StoreError::NotReadable { path: path.to_owned(), source }),
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Takes the lock file beside the store. The operating system lets go of it when the process ends, however.
fn lock(path: &Path) -> Result<File, StoreError> {
    let name = beside(path, ".lock");
    let not_writable = |source| StoreError::NotWritable { path: path.to_owned(), source };
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&name);
    let mut file = options.map_err(not_writable)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            _ = file.take(32).read_to_string(&mut pid); // only for the message
            let pid = pid.trim();
            let holder = if pid.is_empty() { "starting".to_owned() } else { format!("pid {pid}") };
            return Err(StoreError::Locked { path: path.to_owned(), holder });
        }
        Err(TryLockError::Error(source)) => return Err(not_writable(source)),
    }
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(not_writable)?;
    Ok(file)
}

/// What an error of SQLite means for the user of `path`.
fn explain(path: &Path, error: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Corrupt { path, detail: error.to_string() }
        }
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            StoreError::NotWritable { path, source: std::io::Error::other(error) }
        }
        _ => StoreError::Sqlite(error),
    }
}

fn refine(path: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::Sqlite(error) => explain(path, error),
        other => other,
    }
}

impl Store for SqliteStore {
    fn load(&self) -> Result<Snapshot, StoreError> {
        read::load(&self.connection).map_err(|error| refine(&self.path, error))
    }

    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        write::commit(&mut self.connection, changes).map_err(|error| refine(&self.path, error))
    }

    fn append_log(&mut self, pieces: &[LogPiece]) -> Result<(), StoreError> {
        write::append_log(&mut self.connection, pieces).map_err(|error| refine(&self.path, error))
    }

    fn incarnation(&self) -> u64 {
        self.incarnation
    }

    fn reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        Ok(Box::new(open_read_only(&self.path)?))
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        let Self { connection, path, _lock, .. } = *self;
        // Readers of this process may still be open, and then closing alone would leave the log behind.
        settle(&connection, &path)?;
        connection.close().map_err(|(_, error)| explain(&path, error))
    }
}

impl Reader for SqliteReader {
    fn sweeps(&self) -> Result<Vec<StoredSweep>, StoreError> {
        read::sweeps(&self.connection).map_err(|error| refine(&self.path, error))
    }

    fn results(&self, query: &ResultQuery) -> Result<ResultPage, StoreError> {
        read::results(&self.connection, query).map_err(|error| refine(&self.path, error))
    }

    fn history(&self, fold: &FoldKey) -> Result<Vec<Happened>, StoreError> {
        read::history(&self.connection, fold).map_err(|error| refine(&self.path, error))
    }

    fn log(&self, fold: &FoldKey) -> Result<Vec<LogPiece>, StoreError> {
        read::log(&self.connection, fold).map_err(|error| refine(&self.path, error))
    }
}

#[cfg(test)]
#[path = "sqlite_tests.rs"]
mod tests;
