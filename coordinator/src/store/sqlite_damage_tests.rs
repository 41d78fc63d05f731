//! Damaged files: flipped bits, cut files and logs, torn pages, values that cannot be. Whatever happened to it, a store is
//! refused, mended or whole, and never believed when it is wrong.

use std::fs;

use rusqlite::Connection;
use tempfile::TempDir;
use togl_scheduler::{Change, Snapshot, SweepChange};

use super::{SqliteStore, beside, open_read_only, place, raw};
use crate::store::contract::{fill, filled_sqlite, fold, sweep};
use crate::store::{LogPiece, Reader, ResultPage, ResultQuery, Store, StoreError};

/// Everything that a store says, or why it says nothing.
fn everything(store: &SqliteStore) -> Result<(Snapshot, ResultPage, Vec<LogPiece>), StoreError> {
    let reader = store.reader()?;
    let query = ResultQuery { limit: u64::MAX, ..ResultQuery::accepted(sweep("s")) };
    Ok((store.load()?, reader.results(&query)?, reader.log(&fold(0))?))
}

/// A store and its log as a killed process leaves them, with more in the log than in the file.
struct Killed {
    folder: TempDir,
    file: Vec<u8>,
    log: Vec<u8>,
    count: Vec<u8>,
    expected: (Snapshot, ResultPage, Vec<LogPiece>),
}

impl Killed {
    fn new() -> Self {
        let (folder, path) = place();
        filled_sqlite(&path, 40);
        let mut store = SqliteStore::open(&path).unwrap();
        let piece = LogPiece { fold: fold(0), attempt: togl_sweeps::Attempt(1), text: "said\n".to_owned() };
        store.append_log(&[piece]).unwrap();
        for state in [togl_scheduler::SweepState::Paused, togl_scheduler::SweepState::Active] {
            store
                .commit(&[Change::Sweep(SweepChange::StateSet { sweep: sweep("s"), state, note: None })])
                .unwrap();
        }
        let expected = everything(&store).unwrap();
        let read = |ending| fs::read(beside(&path, ending)).unwrap();
        Self { file: read(""), log: read("-wal"), count: read("-commits"), expected, folder }
    }

    /// Opens what is left after something happened to it. Whether it was refused; panics if it says something wrong.
    fn is_refused(&self, file: &[u8], log: Option<&[u8]>, what: &str) -> bool {
        let path = self.folder.path().join("left");
        for (ending, bytes) in
            [("", Some(file)), ("-wal", log), ("-commits", Some(&self.count)), ("-shm", None)]
        {
            match bytes {
                Some(bytes) => fs::write(beside(&path, ending), bytes).unwrap(),
                None => _ = fs::remove_file(beside(&path, ending)),
            }
        }
        match SqliteStore::open(&path) {
            Ok(store) => match everything(&store) {
                Ok(found) => assert!(found == self.expected, "{what}: wrong content"),
                Err(error) => {
                    assert!(is_clear(&error), "{what}: {error}");
                    return true;
                }
            },
            Err(error) => {
                assert!(is_clear(&error), "{what}: {error}");
                assert!(fs::read(&path).unwrap() == file, "{what}: the file was touched");
                if let Some(log) = log.filter(|log| !log.is_empty()) {
                    assert!(fs::read(beside(&path, "-wal")).unwrap() == log, "{what}: the log was touched");
                }
                return true;
            }
        }
        false
    }
}

/// Whether an error says what is wrong with the file.
fn is_clear(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Corrupt { .. }
            | StoreError::Foreign { .. }
            | StoreError::Newer { .. }
            | StoreError::Impossible { .. }
    )
}

/// Repeatable places in `0..length`.
fn places(seed: u64, length: usize, count: usize) -> impl Iterator<Item = usize> {
    let mut history = crate::store::contract::History::new(seed);
    std::iter::repeat_with(move || history.draw(length as u64) as usize).take(count)
}

#[test]
fn a_flipped_bit_in_the_file_is_refused_or_mended_but_never_believed() {
    let killed = Killed::new();
    // Without a log: everything is in the file.
    let path = killed.folder.path().join("store.sqlite");
    Box::new(SqliteStore::open(&path).unwrap()).close().unwrap();
    let whole = fs::read(&path).unwrap();
    assert!(!killed.is_refused(&whole, None, "untouched"));
    let seed = 11;
    let mut refused = 0;
    let header = (0..100).step_by(3);
    for at in header.chain(places(seed, whole.len(), 200)) {
        let mut file = whole.clone();
        file[at] ^= 1 << (at % 8);
        refused += usize::from(killed.is_refused(&file, None, &format!("seed {seed}, byte {at}")));
    }
    assert!(refused > 200, "every page of this store is read, so nearly every flip is noticed: {refused}");
}

#[test]
fn a_cut_file_is_refused_or_whole_but_never_wrong() {
    let killed = Killed::new();
    let path = killed.folder.path().join("store.sqlite");
    Box::new(SqliteStore::open(&path).unwrap()).close().unwrap();
    let whole = fs::read(&path).unwrap();
    for length in places(12, whole.len(), 60).map(|length| length.max(1)) {
        assert!(killed.is_refused(&whole[..length], None, &format!("cut at {length}")));
    }
}

#[test]
fn a_damaged_cut_or_missing_log_is_noticed() {
    let killed = Killed::new();
    let Killed { file, log, .. } = &killed;
    assert!(log.len() > 3 * 4_096, "{}", log.len());
    assert!(!killed.is_refused(file, Some(log), "untouched"));
    assert!(killed.is_refused(file, None, "missing"), "the log holds commits that the file does not");
    assert!(killed.is_refused(file, Some(b""), "emptied"));
    for at in (0..32).chain(places(13, log.len(), 120)) {
        let mut bad = log.clone();
        bad[at] ^= 1 << (at % 8);
        killed.is_refused(file, Some(&bad), &format!("bit of byte {at}"));
    }
    for length in places(14, log.len(), 60) {
        assert!(killed.is_refused(file, Some(&log[..length]), &format!("log cut at {length}")));
    }
}

#[test]
fn a_file_torn_by_a_crash_is_mended_from_its_log() {
    let killed = Killed::new();
    let Killed { file, log, .. } = &killed;
    // A page that is in the log; half of it reached the file before the power was gone.
    let page = u32::from_be_bytes(log[32..36].try_into().unwrap()) as usize - 1;
    let mut torn = file.clone();
    torn[page * 4_096 + 200..page * 4_096 + 600].fill(0xaa);
    assert!(!killed.is_refused(&torn, Some(log), "torn"), "SQLite takes the page from the log");
}

#[test]
fn values_that_cannot_be_are_errors_and_never_panics() {
    let (_folder, path) = place();
    filled_sqlite(&path, 6);
    let whole = fs::read(&path).unwrap();
    let values = ["-1", "9223372036854775807", "'x'", "x'00'", "NULL"];
    let (mut seed, mut noticed) = (17, 0);
    for table in &crate::store::tables::TABLES {
        for column in table.columns.iter().map(|column| column.name) {
            for value in values {
                seed += 1;
                fs::write(&path, &whole).unwrap();
                let mut history = crate::store::contract::History::new(seed);
                let skip = history.draw(6);
                let connection = raw(&path);
                connection
                    .execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON")
                    .unwrap();
                let row = format!(
                    "SELECT {column} FROM {0} LIMIT 1 OFFSET {skip} % (SELECT max(1, count(*)) FROM {0})",
                    table.name
                );
                let sql = format!(
                    "UPDATE OR IGNORE {} SET {column} = {value} WHERE {column} IS ({row})",
                    table.name
                );
                let changed = connection.execute_batch(&sql).is_ok();
                drop(connection);
                let read = open_read_only(&path).and_then(|reader| {
                    reader.load()?;
                    reader.results(&ResultQuery::accepted(sweep("s")))?;
                    reader.log(&fold(0))
                });
                noticed += usize::from(changed && read.is_err());
            }
        }
    }
    assert!(noticed > 15, "many such values are noticed: {noticed}");
}

#[test]
fn what_a_crash_left_in_the_log_is_not_lost() {
    let (folder, path) = place();
    let store = SqliteStore::open(&path).unwrap();
    let expected = fill(Box::new(store), 50, |_store| {
        // What a killed process leaves behind: the file and its log, as they are now.
        for ending in ["", "-wal"] {
            fs::copy(beside(&path, ending), beside(&folder.path().join("crashed"), ending)).unwrap();
        }
    });
    assert_eq!(SqliteStore::open(&folder.path().join("crashed")).unwrap().load().unwrap(), expected);
}

#[test]
fn a_store_that_was_edited_around_its_checksums_is_refused() {
    let (_folder, path) = place();
    filled_sqlite(&path, 1);
    Connection::open(&path).unwrap().execute_batch("UPDATE sweep SET priority = 99").unwrap();
    let error = SqliteStore::open(&path).and_then(|store| store.load()).unwrap_err();
    assert!(error.to_string().contains("a page does not fit its checksum"), "{error}");
}

#[test]
fn a_result_whose_numbers_were_changed_is_not_shown() {
    let (_folder, path) = place();
    filled_sqlite(&path, 1);
    let forge = "UPDATE result SET body = replace(body, '\"accuracy\":0.0', '\"accuracy\":1.0')";
    raw(&path).execute_batch(forge).unwrap();
    let reader = open_read_only(&path).unwrap();
    let error = reader.results(&ResultQuery::accepted(sweep("s"))).unwrap_err();
    let expected = format!("the numbers of fold {} do not fit their digest", fold(0));
    assert!(error.to_string().contains(&expected), "{error}");
}
