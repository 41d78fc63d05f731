//! Files that somebody else touches while they are served, or puts in the place of a store: nothing is acknowledged into a
//! file that is not at its place, and nothing that was acknowledged is silently missing at the next start. No other name
//! leads around the lock.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use rusqlite::Connection;
use togl_scheduler::{Change, Snapshot, SweepChange, SweepState};

use super::{SqliteStore, beside, open_read_only, place, raw, refused};
use crate::store::address::StoreAddress;
use crate::store::contract::{filled_sqlite, sweep};
use crate::store::{Reader, Store, StoreError, copy};

type Path = std::path::PathBuf;

/// What somebody does to a store.
type Touch = fn(&Path);

fn steer(state: SweepState) -> [Change; 1] {
    [Change::Sweep(SweepChange::StateSet { sweep: sweep("s"), state, note: None })]
}

/// A store that is being served, with something in its log. What was in that a transaction before is kept beside it.
fn served() -> (tempfile::TempDir, Path, SqliteStore) {
    let (folder, path) = place();
    filled_sqlite(&path, 20);
    let mut store = SqliteStore::open(&path).unwrap();
    store.commit(&steer(SweepState::Active)).unwrap();
    fs::copy(beside(&path, "-wal"), beside(&path, ".log-before")).unwrap();
    store.commit(&steer(SweepState::Paused)).unwrap();
    (folder, path, store)
}

/// Another store of the same kind, whole and closed.
fn another(path: &Path) -> Path {
    let other = beside(path, ".other");
    filled_sqlite(&other, 3);
    other
}

/// Commits once more, which must not be acknowledged; gives what is said instead.
fn commit_is_refused(store: &mut SqliteStore, what: &str) -> String {
    let error = store.commit(&steer(SweepState::Active)).expect_err(what);
    assert!(matches!(error, StoreError::Disturbed { .. }), "{what}: {error}");
    error.to_string()
}

fn rescued(path: &Path) -> Snapshot {
    let file = beside(path, ".rescued");
    copy::restore(&file, &StoreAddress::Sqlite(path.clone()), true).unwrap();
    SqliteStore::open(path).unwrap().load().unwrap()
}

#[test]
fn nothing_is_acknowledged_into_a_store_that_was_deleted_moved_or_replaced_and_it_is_kept() {
    let ways: [(&str, &str, Touch); 5] = [
        ("deleted", "was deleted or moved away", |path| fs::remove_file(path).unwrap()),
        ("moved", "was deleted or moved away", |path| fs::rename(path, beside(path, ".moved")).unwrap()),
        ("all deleted", "was deleted or moved away", |path| {
            for ending in ["", "-wal", "-shm", "-commits", ".lock"] {
                fs::remove_file(beside(path, ending)).unwrap();
            }
        }),
        ("replaced", "was replaced by another file", |path| fs::rename(another(path), path).unwrap()),
        ("log replaced", "was replaced by another file", |path| {
            let log = beside(path, "-wal");
            fs::copy(&log, beside(path, ".copy")).unwrap();
            fs::rename(beside(path, ".copy"), log).unwrap();
        }),
    ];
    for (what, said, way) in ways {
        let (_folder, path, mut store) = served();
        let acknowledged = store.load().unwrap();
        way(&path);
        let message = commit_is_refused(&mut store, what);
        assert!(message.contains(said) && message.contains("nothing more is acknowledged"), "{message}");
        let hint = format!("`togl restore {}.rescued --replace`", path.display());
        assert!(message.contains(&hint), "{message}");
        drop(store);
        assert_eq!(rescued(&path), acknowledged, "{what}");
    }
}

#[test]
fn a_store_that_is_deleted_in_the_middle_of_a_commit_is_noticed_before_it_is_acknowledged() {
    let (_folder, path, mut store) = served();
    // As if it happened after the first look: what is written afterwards is in a file without a name.
    store.held.check_untouched(&store.connection).unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(store.held.check_written(&store.connection), Err(super::Disturbance::Gone));
}

#[test]
fn a_log_that_was_deleted_is_put_into_the_store_which_goes_on_at_the_next_start() {
    for ending in ["-wal", "-shm"] {
        let (_folder, path, mut store) = served();
        let acknowledged = store.load().unwrap();
        fs::remove_file(beside(&path, ending)).unwrap();
        let message = commit_is_refused(&mut store, ending);
        assert!(message.contains("has lost the files beside it"), "{message}");
        assert!(message.ends_with("start the coordinator again"), "{message}");
        drop(store);
        assert_eq!(SqliteStore::open(&path).unwrap().load().unwrap(), acknowledged, "{ending}");
    }
}

#[test]
fn a_store_that_somebody_else_writes_to_is_given_up_until_it_is_restored() {
    let ways: [(&str, Touch); 5] = [
        ("an old copy in place", |path| {
            let old = fs::read(path).unwrap();
            fs::write(path, old).unwrap();
        }),
        ("an old log in place", |path| {
            fs::write(beside(path, "-wal"), fs::read(beside(path, ".log-before")).unwrap()).unwrap();
        }),
        ("a byte of the log", |path| {
            let mut log = fs::read(beside(path, "-wal")).unwrap();
            let checksum = log.len() - 4_096 - 1;
            log[checksum] ^= 1;
            fs::write(beside(path, "-wal"), log).unwrap();
        }),
        ("a statement", |path| raw(path).execute_batch("UPDATE sweep SET priority = 7").unwrap()),
        ("another number", |path| raw(path).execute_batch("UPDATE store SET commits = 1").unwrap()),
    ];
    for (what, way) in ways {
        let (_folder, path, mut store) = served();
        let backup = beside(&path, ".backup");
        copy::backup(&StoreAddress::Sqlite(path.clone()), &backup).unwrap();
        way(&path);
        let message = commit_is_refused(&mut store, what);
        assert!(message.contains("was written by another program"), "{message}");
        assert!(message.contains("`togl restore FILE --replace`"), "{message}");
        drop(store);
        let message = refused(&path).to_string();
        assert!(message.contains("another program wrote to it while it was served"), "{what}: {message}");
        copy::restore(&backup, &StoreAddress::Sqlite(path.clone()), true).unwrap();
        SqliteStore::open(&path).unwrap().commit(&steer(SweepState::Active)).unwrap();
    }
}

#[test]
fn a_number_or_an_incarnation_that_is_not_ours_stops_a_transaction() {
    for sql in ["UPDATE store SET commits = commits - 1", "UPDATE store SET incarnation = incarnation + 1"] {
        let (_folder, path, mut store) = served();
        raw(&path).execute_batch(sql).unwrap();
        store.held.check_written(&store.connection).unwrap(); // as if the times of the files had told nothing
        let message = commit_is_refused(&mut store, sql);
        assert!(message.contains("was written by another program"), "{message}");
    }
}

#[test]
fn another_store_in_the_place_of_one_is_refused_and_a_restored_one_is_not() {
    let (_folder, path) = place();
    filled_sqlite(&path, 40);
    let (aside, other) = (beside(&path, ".aside"), another(&path));
    fs::rename(&path, &aside).unwrap();
    fs::copy(&other, &path).unwrap();
    for error in [refused(&path), open_read_only(&path).map(drop).unwrap_err()] {
        let message = error.to_string();
        assert!(message.contains("is not the store that was served here"), "{message}");
        assert!(message.contains("transactions") && message.contains("store.sqlite-commits"), "{message}");
    }
    fs::rename(&aside, &path).unwrap();
    SqliteStore::open(&path).expect("the right one is taken again");
    copy::restore(&other, &StoreAddress::Sqlite(path.clone()), true).unwrap();
    SqliteStore::open(&path).expect("a restore says that it is another one");
}

#[test]
fn an_old_copy_under_a_log_that_a_crash_left_is_refused() {
    let (folder, path) = place();
    filled_sqlite(&path, 2);
    let old = fs::read(&path).unwrap();
    let mut store = SqliteStore::open(&path).unwrap();
    store.commit(&steer(SweepState::Paused)).unwrap();
    Box::new(store).close().unwrap();
    let mut store = SqliteStore::open(&path).unwrap();
    store.commit(&steer(SweepState::Active)).unwrap();
    // What a killed process leaves: the last transaction is only in the log, the one before only in the file.
    let left = folder.path().join("left");
    for ending in ["-wal", "-commits"] {
        fs::copy(beside(&path, ending), beside(&left, ending)).unwrap();
    }
    fs::write(&left, old).unwrap();
    let message = refused(&left).to_string();
    assert!(message.contains("it is older than the log beside it"), "{message}");
    fs::copy(&path, &left).unwrap();
    assert_eq!(SqliteStore::open(&left).unwrap().load().unwrap(), store.load().unwrap());
}

#[test]
fn no_other_name_leads_around_the_lock() {
    let (folder, path, mut store) = served();
    let link = folder.path().join("link.sqlite");
    symlink(&path, &link).unwrap();
    let around = folder.path().join("around");
    symlink(folder.path(), &around).unwrap();
    let hard = folder.path().join("hard.sqlite");
    fs::hard_link(&path, &hard).unwrap();
    for name in [&link, &around.join("store.sqlite"), &hard] {
        let message = refused(name).to_string();
        assert!(message.starts_with("another coordinator ("), "{}: {message}", name.display());
        let restored = copy::restore(&path, &StoreAddress::Sqlite(name.clone()), true).unwrap_err();
        assert!(matches!(restored, StoreError::Locked { .. }), "{restored}");
    }
    fs::remove_file(beside(&path, ".lock")).unwrap();
    let message = refused(&path).to_string();
    assert!(message.contains("its lock file was removed, or it uses another name"), "{message}");
    store.commit(&steer(SweepState::Active)).expect("none of this disturbs the first one");
}

#[test]
fn a_store_with_two_names_is_not_served_because_its_log_belongs_to_one() {
    let (folder, path) = place();
    filled_sqlite(&path, 2);
    let other = folder.path().join("other.sqlite");
    fs::hard_link(&path, &other).unwrap();
    for name in [&path, &other] {
        let message = refused(name).to_string();
        assert!(message.contains("has 2 names (hard links)") && message.contains("-samefile"), "{message}");
    }
    fs::remove_file(&other).unwrap();
    SqliteStore::open(&path).unwrap();
}

#[test]
fn the_log_of_a_store_is_found_through_a_link_to_it() {
    let (folder, path, store) = served();
    let link = folder.path().join("link.sqlite");
    symlink(&path, &link).unwrap();
    let states: Vec<_> =
        open_read_only(&link).unwrap().sweeps().unwrap().into_iter().map(|s| s.state).collect();
    assert_eq!(states, [SweepState::Paused]);
    drop(store);
    SqliteStore::open(&link).unwrap().commit(&steer(SweepState::Active)).unwrap();
    assert!(
        !beside(&link, ".lock").exists(),
        "what belongs to the store lies beside it, not beside the link"
    );
}

/// The process that looks: an ordinary program of SQLite, which tidies up if it believes that it was the last one.
#[test]
fn stranger() {
    let Ok(path) = std::env::var("TOGL_STRANGER_READS") else { return };
    let connection = Connection::open(path).unwrap();
    let sweeps: i64 = connection.query_row("SELECT count(*) FROM sweep", [], |row| row.get(0)).unwrap();
    assert_eq!(sweeps, 1);
    connection.close().unwrap();
}

#[test]
fn reading_a_served_store_with_another_program_takes_nothing_from_it() {
    let (_folder, path, mut store) = served();
    drop(store.reader().unwrap());
    let mut stranger = Command::new(std::env::current_exe().unwrap());
    stranger.args(["--exact", "store::sqlite::tests::held::stranger", "--test-threads=1"]);
    let output = stranger.env("TOGL_STRANGER_READS", &path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(
        beside(&path, "-wal").exists(),
        "whoever looks does not tidy up after somebody who is still there"
    );
    store.commit(&steer(SweepState::Active)).unwrap();
    assert_eq!(store.reader().unwrap().sweeps().unwrap()[0].state, SweepState::Active);
}
