//! Copies say what the originals say, in every direction; nothing is overwritten that was not given up.

use std::collections::BTreeSet;
use std::fs;

use tempfile::TempDir;
use togl_scheduler::{Change, Snapshot, SweepChange, SweepState};

use super::*;
use crate::store::contract::{History, filled_sqlite};
use crate::store::postgres_server::Server;

fn place(folder: &TempDir, name: &str) -> StoreAddress {
    StoreAddress::Sqlite(folder.path().join(name))
}

/// A store with some history, closed again.
fn filled(address: &StoreAddress, seed: u64) -> (Snapshot, u64) {
    let mut store = address.open().unwrap();
    let mut history = History::new(seed);
    for _ in 0..40 {
        store.commit(&history.some_facts()).unwrap();
    }
    let incarnation = store.incarnation();
    store.close().unwrap();
    (history.scheduler.snapshot(), incarnation)
}

fn held(address: &StoreAddress) -> (Snapshot, u64) {
    let store = address.open().unwrap();
    (store.load().unwrap(), store.incarnation())
}

#[test]
fn a_backup_is_taken_while_a_coordinator_serves_and_restored_as_another_incarnation() {
    let folder = TempDir::new().unwrap();
    let (served, file, other) =
        (place(&folder, "store"), folder.path().join("backup"), place(&folder, "other"));
    let (snapshot, incarnation) = filled(&served, 3);
    let mut serving = served.open().unwrap();
    let made = backup(&served, &file).unwrap();
    let sweep_name = snapshot.sweeps.keys().next().unwrap().clone();
    serving
        .commit(&[Change::Sweep(SweepChange::StateSet {
            sweep: sweep_name,
            state: SweepState::Cancelled,
            note: None,
        })])
        .unwrap();
    assert_eq!(made, summary(&StoreAddress::Sqlite(file.clone())).unwrap());
    assert_eq!(made.rows("fold"), snapshot.folds.len() as u64);

    let restored = restore(&file, &other, false).unwrap();
    let (found, other_incarnation) = held(&other);
    assert_eq!(found, snapshot);
    assert_ne!(other_incarnation, incarnation);
    assert_eq!(restored.tables[1..], made.tables[1..], "only the incarnation differs");
    let error = restore(&file, &served, true).unwrap_err().to_string();
    assert!(error.contains("another coordinator"), "{error}");
}

#[test]
fn nothing_is_overwritten_that_was_not_given_up() {
    let folder = TempDir::new().unwrap();
    let (store, file) = (place(&folder, "store"), folder.path().join("backup"));
    let (before, incarnation) = filled(&store, 4);
    backup(&store, &file).unwrap();
    let bytes = fs::read(&file).unwrap();
    assert!(backup(&store, &file).unwrap_err().to_string().contains("a backup never overwrites"));
    assert_eq!(fs::read(&file).unwrap(), bytes);
    let error = restore(&file, &store, false).unwrap_err().to_string();
    assert!(error.contains("is not empty; use --replace"), "{error}");
    assert_eq!(held(&store), (before.clone(), incarnation));
    restore(&file, &store, true).unwrap();
    assert_eq!(held(&store).0, before);
    assert_ne!(held(&store).1, incarnation);
    assert!(folder.path().join("store.replaced").exists(), "what was given up is kept beside it");
}

#[test]
fn restoring_again_and_again_keeps_everything_that_was_given_up() {
    let folder = TempDir::new().unwrap();
    let (store, other, file) =
        (place(&folder, "store"), place(&folder, "other"), folder.path().join("backup"));
    let (original, _) = filled(&store, 14);
    let (copied, _) = filled(&other, 15);
    backup(&other, &file).unwrap();
    for _ in 0..3 {
        restore(&file, &store, true).unwrap();
        assert_eq!(held(&store).0, copied);
    }
    assert_eq!(held(&place(&folder, "store.replaced")).0, original, "the first is what was there first");
    assert_eq!(held(&place(&folder, "store.replaced-2")).0, copied);
    assert_eq!(held(&place(&folder, "store.replaced-3")).0, copied);
}

#[test]
fn a_damaged_store_can_be_replaced_by_its_backup() {
    let folder = TempDir::new().unwrap();
    let (store, file) = (place(&folder, "store"), folder.path().join("backup"));
    let (before, _) = filled(&store, 5);
    backup(&store, &file).unwrap();
    fs::write(folder.path().join("store"), b"SQLite format 3 no more").unwrap();
    assert!(store.open().is_err());
    assert!(restore(&file, &store, false).is_err());
    restore(&file, &store, true).unwrap();
    assert_eq!(held(&store).0, before);
}

#[test]
fn a_backup_that_is_damaged_or_missing_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let (store, file) = (place(&folder, "store"), folder.path().join("backup"));
    let (before, incarnation) = filled(&store, 6);
    assert!(restore(&file, &store, true).unwrap_err().to_string().contains("there is no store at"));
    backup(&store, &file).unwrap();
    let mut bytes = fs::read(&file).unwrap();
    for page in (4_096..bytes.len()).step_by(4_096) {
        bytes[page + 4_000] ^= 1;
    }
    fs::write(&file, &bytes).unwrap();
    let error = restore(&file, &store, true).unwrap_err().to_string();
    assert!(error.contains("a page does not fit its checksum"), "{error}");
    assert_eq!(held(&store), (before, incarnation));
    assert!(
        !folder.path().join("store.incoming").exists()
            && !folder.path().join("store.incoming.partial").exists()
    );
}

#[test]
fn stores_move_between_back_ends_and_back_without_a_difference() {
    let Some(server) = Server::quick() else { return };
    let folder = TempDir::new().unwrap();
    let (first, last) = (place(&folder, "first"), place(&folder, "last"));
    let database = StoreAddress::Postgres(Box::new(server.database()));
    let (snapshot, incarnation) = filled(&first, 7);
    let moved = migrate(&first, &database).unwrap();
    assert_eq!(held(&database), (snapshot.clone(), incarnation), "the same store in another place");
    let error = migrate(&first, &database).unwrap_err().to_string();
    assert!(error.contains("is not empty; a migration needs an empty place"), "{error}");
    assert_eq!(migrate(&database, &last).unwrap(), moved);
    assert_eq!(held(&last), (snapshot.clone(), incarnation));

    // The copy goes on: new rows get new ids.
    let mut store = database.open().unwrap();
    let mut history = History::new(8);
    history.scheduler = togl_scheduler::Scheduler::restore(
        togl_scheduler::Limits::default(),
        store.load().unwrap(),
        togl_scheduler::Timestamp(0),
    );
    for _ in 0..20 {
        store.commit(&history.some_facts()).unwrap();
    }
    assert_eq!(store.load().unwrap(), history.scheduler.snapshot());
    let error = migrate(&database, &place(&folder, "third")).unwrap_err().to_string();
    assert!(error.contains("another coordinator"), "{error}");

    let file = folder.path().join("backup");
    backup(&database, &file).unwrap();
    let other = StoreAddress::Postgres(Box::new(server.database()));
    restore(&file, &other, false).unwrap();
    assert_eq!(held(&other).0, history.scheduler.snapshot());
    assert!(restore(&file, &other, false).unwrap_err().to_string().contains("use --replace"));
    restore(&file, &other, true).unwrap();
    every_column_is_copied(&server);
}

/// A column that somebody adds and forgets here would be lost by every copy.
fn every_column_is_copied(server: &Server) {
    let ours: BTreeSet<(String, String)> = TABLES
        .iter()
        .flat_map(|table| table.columns.iter().map(|column| (table.name.to_owned(), column.name.to_owned())))
        .collect();
    let config = server.database();
    let store = PostgresStore::open(&config).unwrap();
    let mut client = config.connect(::postgres::NoTls).unwrap();
    let sql = "SELECT table_name::text, column_name::text FROM information_schema.columns
               WHERE table_schema = 'togl' AND table_name <> 'schema_version' AND column_name <> 'holder'";
    let there = client.query(sql, &[]).unwrap();
    let there: BTreeSet<_> = there.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(ours, there);
    drop(store);
}

#[test]
fn every_column_of_a_file_is_copied() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store");
    filled_sqlite(&path, 2);
    let connection = rusqlite::Connection::open(&path).unwrap();
    let sql = "SELECT tables.name, columns.name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
               WHERE tables.type = 'table' AND tables.name <> 'schema_version'";
    let mut statement = connection.prepare(sql).unwrap();
    let there = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let there: BTreeSet<(String, String)> = there.map(Result::unwrap).collect();
    let ours: BTreeSet<(String, String)> = TABLES
        .iter()
        .flat_map(|table| table.columns.iter().map(|column| (table.name.to_owned(), column.name.to_owned())))
        .collect();
    assert_eq!(ours, there);
}

#[test]
fn a_store_in_memory_cannot_be_copied() {
    let folder = TempDir::new().unwrap();
    let error = backup(&StoreAddress::Memory, &folder.path().join("b")).unwrap_err().to_string();
    assert_eq!(error, "a store in memory cannot be copied");
    assert!(!folder.path().join("b").exists());
}
