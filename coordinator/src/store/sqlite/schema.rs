//! The tables of the SQLite store, how older ones become newer ones, and how a file is recognised as ours.
//! Forward only: a step is never changed once released, a new one is added at the end.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, params};
use togl_sweeps::TrialId;
use togl_sweeps::identity::respelled;

use super::super::StoreError;
use super::explain;
use super::pages::{self, HEADER, PAGE, RESERVED, RESERVED_AT};
use super::place::has_log;

/// Marks the file as a togl store: the letters `TOGL`.
pub(super) const APPLICATION_ID: u32 = 0x544f_474c;

/// Where SQLite keeps the application id in the file's header.
const APPLICATION_ID_AT: usize = 68;

/// Where the header keeps SQLite's `user_version`: not 0 if the pages of the file have checksums.
const CHECKED_AT: usize = 60;

/// The first version that counts transactions.
const COUNTED_SINCE: u32 = 4;

/// What each version adds to the one before.
const STEPS: [&str; 6] = [FIRST, STEERING, HISTORY, COUNTED, FLEET, DATED];

pub(super) const FIRST: &str = "
CREATE TABLE store (incarnation INTEGER NOT NULL) STRICT;
INSERT INTO store VALUES (random());

CREATE TABLE trial (
    id INTEGER PRIMARY KEY,
    trial BLOB NOT NULL UNIQUE CHECK (length(trial) = 16),
    canonical TEXT NOT NULL
) STRICT;

-- `seed` holds the bits of an unsigned number. `attempt` is that of the result, `class` and `message` belong
-- to failed folds.
CREATE TABLE fold (
    id INTEGER PRIMARY KEY,
    trial INTEGER NOT NULL REFERENCES trial (id),
    split INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'leased', 'finished', 'failed')),
    attempt INTEGER,
    class TEXT,
    message TEXT,
    forgiven INTEGER NOT NULL DEFAULT 0,
    UNIQUE (trial, split, seed)
) STRICT;

CREATE TABLE sweep (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    place INTEGER NOT NULL,
    yaml TEXT NOT NULL,
    priority INTEGER NOT NULL,
    limits TEXT NOT NULL,
    state TEXT NOT NULL
) STRICT;

CREATE TABLE sweep_fold (
    sweep INTEGER NOT NULL REFERENCES sweep (id),
    position INTEGER NOT NULL,
    fold INTEGER NOT NULL REFERENCES fold (id),
    PRIMARY KEY (sweep, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE worker (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    UNIQUE (name, host)
) STRICT;

-- Every attempt that was ever issued. `ending` and `message` belong to those that brought no result.
CREATE TABLE attempt (
    fold INTEGER NOT NULL REFERENCES fold (id),
    attempt INTEGER NOT NULL,
    worker INTEGER NOT NULL REFERENCES worker (id),
    ending TEXT,
    message TEXT,
    PRIMARY KEY (fold, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE result (
    id INTEGER PRIMARY KEY,
    fold INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('accepted', 'replicate', 'conflict')),
    digest INTEGER NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (fold, kind, attempt),
    FOREIGN KEY (fold, attempt) REFERENCES attempt (fold, attempt)
) STRICT;
CREATE UNIQUE INDEX one_accepted_result_a_fold ON result (fold) WHERE kind = 'accepted';

CREATE TABLE log (
    fold INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (fold, attempt),
    FOREIGN KEY (fold, attempt) REFERENCES attempt (fold, attempt)
) STRICT;
";

/// What sweeps need and why they paused, what trials taught about memory, and which data results come from.
const STEERING: &str = "
ALTER TABLE sweep ADD COLUMN resources TEXT NOT NULL DEFAULT '{}';
ALTER TABLE sweep ADD COLUMN note TEXT;
ALTER TABLE trial ADD COLUMN memory_floor INTEGER NOT NULL DEFAULT 0;

-- What each data set must be; `dissent` has the finished folds whose results come from other data.
CREATE TABLE data_set (
    name TEXT NOT NULL PRIMARY KEY,
    digest TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE dissent (
    fold INTEGER NOT NULL PRIMARY KEY REFERENCES fold (id),
    data_set TEXT NOT NULL REFERENCES data_set (name),
    digest TEXT NOT NULL
) STRICT;
";

/// What happened to each fold. Rows are added and never changed; `at` is in milliseconds since 1970.
const HISTORY: &str = "
CREATE TABLE history (
    fold INTEGER NOT NULL REFERENCES fold (id),
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    event TEXT NOT NULL,
    attempt INTEGER,
    detail TEXT NOT NULL,
    PRIMARY KEY (fold, number)
) STRICT, WITHOUT ROWID;
";

/// Transactions are counted, so that a lost one is noticed; what a start needs of results lies with the folds.
const COUNTED: &str = "
ALTER TABLE store ADD COLUMN commits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE fold ADD COLUMN digest INTEGER;
UPDATE fold SET digest = (SELECT digest FROM result WHERE result.fold = fold.id AND result.kind = 'accepted')
    WHERE state = 'finished';
CREATE INDEX replicates ON result (fold, attempt, digest) WHERE kind = 'replicate';
";

/// Workers that were drained and hosts that are kept out, for as long as they are.
const FLEET: &str = "
CREATE TABLE drain (
    worker TEXT NOT NULL PRIMARY KEY,
    host TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE quarantine (
    host TEXT NOT NULL PRIMARY KEY,
    reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

/// When an attempt was leased and a result accepted, and their places in the history of the fold: no notes are needed for
/// what happens to every fold. 0 where there are notes, or where the result was never the one that counts.
const DATED: &str = "
ALTER TABLE attempt ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempt ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
ALTER TABLE result ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE result ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
";

/// The version that this program writes.
fn known() -> u32 {
    STEPS.len() as u32
}

/// The name of a file in the form that takes options; everything unusual is escaped.
pub(super) fn uri(path: &Path, options: &str) -> String {
    use std::fmt::Write;
    let mut name = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                name.push(char::from(*byte))
            }
            other => _ = write!(name, "%{other:02X}"), // writing to a string cannot fail
        }
    }
    name + options
}

/// Refuses a file that is not ours or is cut short, by its header alone.
pub(super) fn recognise(path: &Path) -> Result<(), StoreError> {
    let (header, length) = header(path)?;
    let ours = APPLICATION_ID.to_be_bytes();
    let marked = header[APPLICATION_ID_AT..APPLICATION_ID_AT + ours.len()] == ours;
    if !(header.starts_with(b"SQLite format 3\0") && marked) {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    let (page, checked) = (number::<2>(&header, 16), number::<4>(&header, CHECKED_AT));
    let reserved = number::<1>(&header, RESERVED_AT);
    if page != PAGE as u64 || (checked != 0 && reserved != RESERVED as u64) {
        let detail = format!("its header speaks of pages of {page} bytes, {reserved} of them for checksums");
        return Err(StoreError::Corrupt { path: path.to_owned(), detail });
    }
    // While a log waits to be copied into the file, the file may be shorter than its header says.
    if has_log(path) { Ok(()) } else { check_length(path, &header, length) }
}

/// Refuses a file that is newer than we are or damaged where it says so, without touching it or anything beside it.
/// Only for files that nobody writes: it would see half of what is being written.
pub(super) fn inspect(path: &Path) -> Result<(), StoreError> {
    check_version(&open_alone(path).map_err(|error| explain(path, error))?, path)
}

/// Whether the pages of a store have no checksums yet.
pub(super) fn is_unchecked(path: &Path) -> Result<bool, StoreError> {
    Ok(number::<1>(&header(path)?.0, RESERVED_AT) == 0)
}

/// Incarnation and number of transactions; an older store did not count them.
pub(super) fn identity(connection: &Connection) -> Result<(u64, u64), StoreError> {
    let commits = if version(connection)? < COUNTED_SINCE { "0" } else { "commits" };
    let sql = format!("SELECT incarnation, {commits} FROM store");
    let found = connection.query_row(&sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    Ok((found.0.cast_unsigned(), found.1.cast_unsigned()))
}

/// Incarnation and number of transactions as the file alone tells them, without its log; none if it cannot tell.
pub(super) fn identity_without_log(path: &Path) -> Option<(u64, u64)> {
    identity(&open_alone(path).ok()?).ok()
}

fn open_alone(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    pages::open(Path::new(&uri(path, "?immutable=1")), flags)
}

fn header(path: &Path) -> Result<([u8; HEADER], u64), StoreError> {
    let header = pages::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(|file| pages::header(&file));
    header.map_err(|error| StoreError::NotReadable {
        path: path.to_owned(),
        source: std::io::Error::other(error),
    })
}

/// Refuses a file that is shorter than its header says: SQLite would read the missing part as zeros.
pub(super) fn check_length(path: &Path, header: &[u8; HEADER], length: u64) -> Result<(), StoreError> {
    let page = match number::<2>(header, 16) {
        1 => 65_536,
        size => size,
    };
    let expected = page * number::<4>(header, 28);
    if length < expected {
        let detail = format!("it has {length} bytes and should have {expected}");
        return Err(StoreError::Corrupt { path: path.to_owned(), detail });
    }
    Ok(())
}

/// A big-endian number of `N` bytes in the header.
fn number<const N: usize>(header: &[u8; HEADER], at: usize) -> u64 {
    header[at..at + N].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Refuses a store that is newer than we are.
pub(super) fn check_version(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let found = version(connection).map_err(|error| explain(path, error))?;
    if found > known() {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: known() });
    }
    Ok(())
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("SELECT coalesce(max(version), 0) FROM schema_version", [], |row| row.get(0))
}

/// Makes an empty file a store.
pub(super) fn create(connection: &mut Connection) -> Result<(), StoreError> {
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", 1)?;
    connection.execute_batch("CREATE TABLE schema_version (version INTEGER NOT NULL PRIMARY KEY) STRICT")?;
    migrate(connection)
}

/// Brings a store to the version of this program, one step and one transaction at a time.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let found = version(connection)?;
    for (step, version) in STEPS.iter().zip(1u32..).skip(found as usize) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(step)?;
        transaction.execute("INSERT INTO schema_version VALUES (?1)", [version])?;
        crate::crash::point("step-written");
        transaction.commit()?;
        crate::crash::point("step-taken");
    }
    respell(connection)
}

/// Gives trials whose data set was written in another case the identity that they have now. Folds that the trial of that
/// identity has already stay where they are.
fn respell(connection: &mut Connection) -> Result<(), StoreError> {
    let transaction = connection.transaction()?;
    let mut found: Vec<(i64, TrialId, String)> = Vec::new();
    let mut statement = transaction.prepare("SELECT id, canonical FROM trial")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some((trial, canonical)) = respelled(row.get_ref(1)?.as_str().unwrap_or_default()) {
            found.push((row.get(0)?, trial, canonical));
        }
    }
    drop(rows);
    drop(statement);
    for (old, trial, canonical) in found {
        let sql = "UPDATE OR IGNORE trial SET trial = ?2, canonical = ?3 WHERE id = ?1";
        if transaction.execute(sql, params![old, trial.as_bytes(), canonical])? == 0 {
            let sql =
                "UPDATE OR IGNORE fold SET trial = (SELECT id FROM trial WHERE trial = ?2) WHERE trial = ?1";
            transaction.execute(sql, params![old, trial.as_bytes()])?;
        }
    }
    Ok(transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusual_file_names_are_escaped() {
        assert_eq!(uri(Path::new("/a b/c?d#é%.db"), "?x=1"), "file:/a%20b/c%3Fd%23%C3%A9%25.db?x=1");
    }
}
