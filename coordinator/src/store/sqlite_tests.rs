//! What only a file can do: be locked, foreign, newer, damaged, unreachable, or read by another process.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::store::ResultQuery;
use crate::store::contract::{fill, filled_sqlite, fold, impossible_fact, sweep};

fn place() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.sqlite");
    (folder, path)
}

fn refused(path: &Path) -> StoreError {
    SqliteStore::open(path).map(|_| ()).unwrap_err()
}

#[test]
fn a_second_coordinator_is_kept_away_and_told_who_is_first() {
    let (_folder, path) = place();
    let first = SqliteStore::open(&path).unwrap();
    let message = refused(&path).to_string();
    let pid = std::process::id();
    assert!(message.starts_with(&format!("another coordinator (pid {pid}) is using ")), "{message}");
    drop(first);
    SqliteStore::open(&path).unwrap();
}

#[test]
fn results_can_be_read_while_a_coordinator_serves_and_after_it_stopped() {
    let (_folder, path) = place();
    filled_sqlite(&path, 4);
    let serving = SqliteStore::open(&path).unwrap();
    let query = ResultQuery::accepted(sweep("s"));
    assert_eq!(open_read_only(&path).unwrap().results(&query).unwrap().rows.len(), 2);
    Box::new(serving).close().unwrap();
    let reader = open_read_only(&path).unwrap();
    assert_eq!(reader.results(&query).unwrap().rows.len(), 2);
    SqliteStore::open(&path).expect("a reader does not keep a coordinator away");
}

#[test]
fn every_commit_is_flushed_and_the_file_is_in_wal_mode() {
    let (_folder, path) = place();
    let store = SqliteStore::open(&path).unwrap();
    let pragma = |name| store.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!((pragma("synchronous"), pragma("foreign_keys")), (2, 1));
    let mode: String = store.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn a_transaction_is_kept_whole_or_not_at_all() {
    let (_folder, path) = place();
    let before = filled_sqlite(&path, 2);
    let mut store = SqliteStore::open(&path).unwrap();
    let state =
        Change::SweepStateSet { sweep: sweep("s"), state: togl_scheduler::SweepState::Paused, note: None };
    let error = store.commit(&[state, impossible_fact()]).unwrap_err();
    assert!(error.to_string().contains("impossible fold"), "{error}");
    assert_eq!(store.load().unwrap(), before);
}

#[test]
fn a_file_that_is_not_a_store_is_refused_and_untouched() {
    let (folder, path) = place();
    let other = folder.path().join("other.sqlite");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE photos (name TEXT)").unwrap();
    for contents in [b"dear diary".to_vec(), vec![0; 5_000], fs::read(&other).unwrap()] {
        fs::write(&path, &contents).unwrap();
        let error = refused(&path);
        assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
        assert!(matches!(open_read_only(&path), Err(StoreError::Foreign { .. })));
        assert_eq!(fs::read(&path).unwrap(), contents);
    }
    assert!(matches!(refused(folder.path()), StoreError::Foreign { .. }), "a folder is no store either");
}

#[test]
fn a_store_of_a_newer_program_is_refused_and_untouched() {
    let (_folder, path) = place();
    filled_sqlite(&path, 2);
    Connection::open(&path).unwrap().execute_batch("INSERT INTO schema_version VALUES (99)").unwrap();
    let contents = fs::read(&path).unwrap();
    let error = refused(&path);
    assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
    assert!(matches!(open_read_only(&path), Err(StoreError::Newer { .. })));
    assert_eq!(fs::read(&path).unwrap(), contents);
}

#[test]
fn an_older_store_is_brought_up_to_date() {
    let (_folder, path) = place();
    filled_sqlite(&path, 2);
    let connection = Connection::open(&path).unwrap();
    let drop_all = "PRAGMA foreign_keys = OFF; DROP TABLE dissent; DROP TABLE data_set; DROP TABLE log; DROP TABLE result; DROP TABLE attempt;
        DROP TABLE worker; DROP TABLE sweep_fold; DROP TABLE sweep; DROP TABLE fold; DROP TABLE trial;
        DROP TABLE store; DELETE FROM schema_version;";
    connection.execute_batch(drop_all).unwrap();
    drop(connection);
    assert_eq!(SqliteStore::open(&path).unwrap().load().unwrap(), Snapshot::default());
}

#[test]
fn a_store_from_before_devices_and_data_digests_keeps_everything_it_had() {
    let (_folder, path) = place();
    let before = filled_sqlite(&path, 4);
    let connection = Connection::open(&path).unwrap();
    let undo = "DROP TABLE dissent; DROP TABLE data_set; ALTER TABLE sweep DROP COLUMN resources;
        ALTER TABLE sweep DROP COLUMN note; ALTER TABLE trial DROP COLUMN memory_floor;
        DELETE FROM schema_version WHERE version = 2;";
    connection.execute_batch(undo).unwrap();
    drop(connection);
    let after = SqliteStore::open(&path).unwrap().load().unwrap();
    assert_eq!((after.folds, after.trials), (before.folds, before.trials));
    assert_eq!(after.sweeps.keys().collect::<Vec<_>>(), before.sweeps.keys().collect::<Vec<_>>());
    assert!(after.sweeps.values().all(|sweep| sweep.resources == Default::default()));
}

#[test]
fn a_truncated_store_is_refused_or_whole_but_never_wrong() {
    let (_folder, path) = place();
    let expected = filled_sqlite(&path, 300);
    let whole = fs::read(&path).unwrap();
    let query = ResultQuery::accepted(sweep("s"));
    let rows = open_read_only(&path).unwrap().results(&query).unwrap();
    let step = whole.len() / 37;
    let mut refused = 0;
    for length in (1..whole.len()).step_by(step) {
        fs::write(&path, &whole[..length]).unwrap();
        for extra in ["-wal", "-shm"] {
            _ = fs::remove_file(beside(&path, extra));
        }
        let Ok(store) = SqliteStore::open(&path) else {
            refused += 1;
            continue;
        };
        assert!(store.load().is_err() || store.load().unwrap() == expected, "cut at {length}");
        let found = store.reader().and_then(|reader| reader.results(&query));
        assert!(found.is_err() || found.unwrap() == rows, "cut at {length}");
        refused += usize::from(store.load().is_err());
    }
    assert_eq!(refused, (1..whole.len()).step_by(step).count(), "every cut is noticed at the start");
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
fn a_result_whose_numbers_were_changed_is_not_shown() {
    let (_folder, path) = place();
    filled_sqlite(&path, 1);
    let forge = "UPDATE result SET body = replace(body, '\"accuracy\":0.0', '\"accuracy\":1.0')";
    Connection::open(&path).unwrap().execute_batch(forge).unwrap();
    let reader = open_read_only(&path).unwrap();
    let error = reader.results(&ResultQuery::accepted(sweep("s"))).unwrap_err();
    let expected = format!("the numbers of fold {} do not fit their digest", fold(0));
    assert!(error.to_string().contains(&expected), "{error}");
}

#[test]
fn a_half_made_store_is_made_anew() {
    let (_folder, path) = place();
    fs::write(beside(&path, ".new"), b"half").unwrap();
    fs::write(&path, b"").unwrap();
    SqliteStore::open(&path).unwrap();
    assert!(!beside(&path, ".new").exists());
}

#[test]
fn places_where_no_store_can_be_are_named_with_a_hint() {
    let (folder, path) = place();
    let nowhere = folder.path().join("not/there/store.sqlite");
    let message = refused(&nowhere).to_string();
    assert!(
        message.ends_with("not/there does not exist; create the folder, or choose another with `--state`")
    );
    assert!(matches!(open_read_only(&path), Err(StoreError::Missing { .. })));
    fs::create_dir(beside(&path, ".lock")).unwrap();
    let message = refused(&path).to_string();
    assert!(message.starts_with(&format!("cannot write to {}", path.display())), "{message}");
}
