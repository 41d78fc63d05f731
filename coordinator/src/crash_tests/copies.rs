//! Copies of stores that end in the middle: what is left is the old thing, the new thing, or a refusal, and doing it
//! again leads to the new thing.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use togl_scheduler::Snapshot;

use super::run;
use crate::store::address::StoreAddress;
use crate::store::contract::History;
use crate::store::copy;
use crate::store::postgres_server::Server;
use crate::store::sqlite;

/// What the child does.
pub(super) fn copy(job: &str, store: &StoreAddress, notes: &Path) {
    match job {
        "restore" => _ = copy::restore(&notes.join("backup"), store, true).unwrap(),
        "backup" => _ = copy::backup(store, &notes.join("backup")).unwrap(),
        "migrate" => {
            let to = fs::read_to_string(notes.join("to")).unwrap();
            copy::migrate(store, &to.parse().unwrap()).unwrap();
        }
        "open" => drop(store.open().unwrap()),
        other => panic!("{other}"),
    }
}

/// A store in a folder with something in it, and what that is.
fn filled(folder: &TempDir, seed: u64) -> (StoreAddress, String, Snapshot) {
    let path = folder.path().join("store");
    let address = StoreAddress::Sqlite(path.clone());
    let mut store = address.open().unwrap();
    let mut history = History::new(seed);
    store.commit(&history.some_facts()).unwrap();
    store.close().unwrap();
    (address, format!("sqlite:{}", path.display()), history.scheduler.snapshot())
}

fn held(address: &StoreAddress) -> Snapshot {
    address.open().unwrap().load().unwrap()
}

#[test]
fn a_restore_that_ends_at_any_point_leaves_the_old_store_the_new_one_or_a_refusal() {
    for point in [
        "draft-written:1",
        "rename:1",
        "renamed:1",
        "aside:1",
        "bare:1",
        "old-aside:1",
        "rename:2",
        "renamed:2",
    ] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("store");
        let address = StoreAddress::Sqlite(path.clone());
        let mut store = address.open().unwrap();
        let mut history = History::new(9);
        store.commit(&history.some_facts()).unwrap();
        copy::backup(&address, &folder.path().join("backup")).unwrap();
        let before = history.scheduler.snapshot();
        store.commit(&history.some_facts()).unwrap();
        let after = history.scheduler.snapshot();
        store.close().unwrap();
        let text = format!("sqlite:{}", path.display());
        let ended = run("restore", &text, folder.path(), Some(point));
        assert!(!ended.success(), "{point} was not reached");
        if let Ok(store) = address.open() {
            let found = store.load().unwrap();
            assert!(found == before || found == after, "{point}: neither the old nor the new store");
        }
        run("restore", &text, folder.path(), None);
        assert_eq!(address.open().unwrap().load().unwrap(), before, "{point}: the restore can be made again");
        let aside = StoreAddress::Sqlite(folder.path().join("store.replaced"));
        assert_eq!(held(&aside), after, "{point}: what was given up is still there");
    }
}

#[test]
fn a_backup_that_ends_at_any_point_is_whole_or_not_there() {
    for point in ["draft-written:1", "rename:1", "renamed:1", "draft-renamed:1"] {
        let folder = TempDir::new().unwrap();
        let (address, text, expected) = filled(&folder, 10);
        let file = folder.path().join("backup");
        assert!(!run("backup", &text, folder.path(), Some(point)).success(), "{point} was not reached");
        let there = matches!(point, "renamed:1" | "draft-renamed:1");
        assert_eq!(file.exists(), there, "{point}");
        if !there {
            run("backup", &text, folder.path(), None);
        }
        assert_eq!(held(&StoreAddress::Sqlite(file)), expected, "{point}");
        assert_eq!(held(&address), expected, "{point}: the store itself is as it was");
    }
}

#[test]
fn a_migration_that_ends_at_any_point_can_be_made_again_and_the_original_stays() {
    for point in ["draft-written:1", "rename:1", "renamed:1", "old-aside:1", "rename:2", "renamed:2"] {
        let folder = TempDir::new().unwrap();
        let (address, text, expected) = filled(&folder, 11);
        let to = StoreAddress::Sqlite(folder.path().join("new"));
        fs::write(folder.path().join("to"), to.to_string()).unwrap();
        check_migration(&folder, &text, point, || held(&to) == expected);
        assert_eq!((held(&to), held(&address)), (expected.clone(), expected), "{point}");
    }
}

#[test]
fn a_migration_to_postgres_that_ends_at_any_point_can_be_made_again() {
    let Some(server) = Server::quick() else { return };
    for point in ["step-written:1", "step-taken:1", "fill-written:1", "filled:1"] {
        let folder = TempDir::new().unwrap();
        let (address, text, expected) = filled(&folder, 12);
        let database = server.database();
        fs::write(folder.path().join("to"), server.text(&database)).unwrap();
        let to = StoreAddress::Postgres(Box::new(database));
        check_migration(&folder, &text, point, || held(&to) == expected);
        assert_eq!((held(&to), held(&address)), (expected.clone(), expected), "{point}");
    }
}

/// Ends a migration at `point`, and makes it again unless it was done.
fn check_migration(folder: &TempDir, text: &str, point: &str, is_done: impl FnOnce() -> bool) {
    assert!(!run("migrate", text, folder.path(), Some(point)).success(), "{point} was not reached");
    if !is_done() {
        run("migrate", text, folder.path(), None);
    }
}

/// Every step of the schema is a transaction; then the file is copied to get its checksums.
#[test]
fn an_upgrade_that_ends_at_any_point_goes_on_at_the_next_start() {
    let steps = (1..=4).flat_map(|n| [format!("step-written:{n}"), format!("step-taken:{n}")]);
    let copied = ["draft-written:1", "rename:1", "renamed:1", "old-aside:1", "rename:2", "renamed:2"];
    for point in steps.chain(copied.map(str::to_owned)) {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("store");
        sqlite::tests::old_store(&path);
        let text = format!("sqlite:{}", path.display());
        assert!(!run("open", &text, folder.path(), Some(&point)).success(), "{point} was not reached");
        run("open", &text, folder.path(), None);
        let snapshot = held(&StoreAddress::Sqlite(path));
        assert_eq!((snapshot.folds.len(), snapshot.sweeps.len()), (1, 1), "{point}");
    }
}
