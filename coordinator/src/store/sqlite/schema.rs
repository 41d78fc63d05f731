//! Which version of the tables a file has, how an older one becomes a newer one, and how a file is recognised as ours. Its
//! versions are the steps of `tables`.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::super::StoreError;
use super::super::tables::{self, Dialect, LAST_STEP};
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
    if found > LAST_STEP {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: LAST_STEP });
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
    for step in version(connection)? + 1..=LAST_STEP {
        let transaction = connection.transaction()?;
        transaction.execute_batch(&tables::step(step, Dialect::Sqlite))?;
        if step == tables::RACING {
            tables::score(&mut &*transaction)?;
        }
        if step == 1 {
            transaction.execute_batch("INSERT INTO store (incarnation) VALUES (random())")?;
        }
        transaction.execute("INSERT INTO schema_version VALUES (?1)", [step])?;
        crate::crash::point("step-written");
        transaction.commit()?;
        crate::crash::point("step-taken");
    }
    let transaction = connection.transaction()?;
    tables::respell(&mut &*transaction)?;
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
