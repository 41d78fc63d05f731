//! Looks at everything in the file of a store, also at what nobody reads: all pages, and whether SQLite finds its trees and
//! indices in order. Says what is wrong, and knows nothing of what the rows mean.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::super::StoreError;
use super::super::check::GoOn;
use super::{SqliteReader, damage, explain, open_read_only, pages};

/// Pages between two questions whether to go on: one megabyte.
const STRIDE: u64 = 256;

/// How often a page is looked at again that may just be being written, and when.
const LOOKS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(5);

/// Complaints of SQLite that are listed.
const COMPLAINTS: u32 = 100;

/// Pages that do not fit their checksums, until `go_on` says that it is enough. No transaction is open meanwhile, so the
/// log can be tidied up.
pub(in super::super) fn damaged_pages(path: &Path, go_on: GoOn<'_>) -> Result<u64, StoreError> {
    let SqliteReader { connection, path } = match open_read_only(path) {
        Err(error) if error.is_damage() => return Ok(1),
        other => other?,
    };
    let damaged = scan(&connection, go_on).map_err(|error| explain(&path, error))?;
    Ok(damaged.len() as u64)
}

fn scan(connection: &Connection, go_on: GoOn<'_>) -> rusqlite::Result<Vec<u64>> {
    let mut damaged = Vec::new();
    for page in 0.. {
        if page % STRIDE == 0 && !go_on() {
            break;
        }
        match look(connection, page)? {
            Some(true) => {}
            Some(false) => damaged.push(page),
            None => break,
        }
    }
    Ok(damaged)
}

fn look(connection: &Connection, page: u64) -> rusqlite::Result<Option<bool>> {
    for _ in 1..LOOKS {
        match pages::is_whole(connection, page)? {
            Some(false) => std::thread::sleep(PAUSE),
            clear => return Ok(clear),
        }
    }
    pages::is_whole(connection, page)
}

/// Everything that is wrong with the file behind a connection.
pub(in super::super) fn inspect(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let damaged = scan(connection, &mut || true)?;
    let mut found: Vec<String> =
        damaged.iter().map(|page| format!("page {} does not fit its checksum", page + 1)).collect();
    let sql = format!("PRAGMA integrity_check({COMPLAINTS})");
    let checked = connection.prepare(&sql).and_then(|mut check| {
        check.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()
    });
    match checked {
        Ok(complaints) => {
            let lines = complaints.iter().flat_map(|complaint| complaint.lines());
            found.extend(lines.filter(|line| *line != "ok" && !line.starts_with("***")).map(str::to_owned));
        }
        Err(error) => found.extend(Some(damage(&error).ok_or(error)?)),
    }
    Ok(found)
}
