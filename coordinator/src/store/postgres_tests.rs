//! What only a server can do: be somebody else's, be newer, cut a session, die in the middle of a commit.

use std::sync::atomic::{AtomicBool, Ordering};

use ::postgres::NoTls;
use togl_sweeps::result::example;

use super::*;
use crate::store::contract::{History, fill, fold, sweep, worker};
use crate::store::postgres_server::Server;

fn sql(config: &Access, text: &str) {
    config.connect(NoTls).unwrap().batch_execute(text).unwrap();
}

fn refused(config: &Access) -> String {
    PostgresStore::open(config).map(|_| ()).unwrap_err().to_string()
}

fn pause() -> Change {
    Change::SweepStateSet { sweep: sweep("s"), state: togl_scheduler::SweepState::Paused, note: None }
}

/// One server for all of them: making it takes longer than the tests.
#[test]
fn stores_in_postgres_are_refused_or_mended_as_files_are() {
    let Some(server) = Server::quick() else { return };
    what_is_not_ours_or_newer_is_refused_and_untouched(&server);
    databases_that_cannot_be_used_are_named_with_a_hint(&server);
    a_transaction_is_kept_whole_or_not_at_all(&server);
    a_session_that_the_server_ends_costs_nothing(&server);
    a_coordinator_that_was_replaced_writes_nothing_more(&server);
    readers_come_back_by_themselves(&server);
}

fn what_is_not_ours_or_newer_is_refused_and_untouched(server: &Server) {
    let foreign = server.database();
    sql(&foreign, "CREATE SCHEMA togl; CREATE TABLE togl.photos (name TEXT)");
    assert!(
        refused(&foreign).contains("has a schema `togl` that is not a togl store"),
        "{}",
        refused(&foreign)
    );
    let newer = server.database();
    let before = fill(Box::new(PostgresStore::open(&newer).unwrap()), 2, |_| {});
    sql(&newer, "INSERT INTO togl.schema_version VALUES (99)");
    assert!(refused(&newer).contains("was written by a newer togl (schema 99"), "{}", refused(&newer));
    assert!(open_read_only(&newer).unwrap_err().to_string().contains("newer togl"));
    sql(&newer, "DELETE FROM togl.schema_version WHERE version = 99");
    assert_eq!(PostgresStore::open(&newer).unwrap().load().unwrap(), before);
}

fn databases_that_cannot_be_used_are_named_with_a_hint(server: &Server) {
    let missing = refused(&server.config("nowhere"));
    assert!(missing.contains("does not exist; make it with `createdb"), "{missing}");
    let empty = open_read_only(&server.database()).unwrap_err().to_string();
    assert!(empty.contains("holds no store"), "{empty}");
    let mut nobody = ::postgres::Config::new();
    nobody.host_path("/nowhere").user("postgres");
    assert!(matches!(PostgresStore::open(&nobody.into()), Err(StoreError::Unreachable { .. })));
    sql(
        &server.config("postgres"),
        "CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'",
    );
    let ascii = refused(&server.config("ascii"));
    assert!(ascii.contains("has the encoding SQL_ASCII; make one with"), "{ascii}");
}

fn a_transaction_is_kept_whole_or_not_at_all(server: &Server) {
    let config = server.database();
    let before = fill(Box::new(PostgresStore::open(&config).unwrap()), 2, |_| {});
    let mut store = PostgresStore::open(&config).unwrap();
    let error = store.commit(&[pause(), crate::store::contract::impossible_fact()]).unwrap_err();
    assert!(error.to_string().contains("impossible fold"), "{error}");
    assert_eq!(store.load().unwrap(), before);
    store.commit(&[pause()]).expect("the next one is not disturbed");
}

fn a_session_that_the_server_ends_costs_nothing(server: &Server) {
    let config = server.database();
    fill(Box::new(PostgresStore::open(&config).unwrap()), 2, |_| {});
    let mut store = PostgresStore::open(&config).unwrap();
    for _ in 0..2 {
        let backend = store.link().backend();
        sql(&config, &format!("SELECT pg_terminate_backend({backend})"));
        store.commit(&[pause()]).unwrap();
        assert_ne!(store.link().backend(), backend);
    }
    assert!(refused(&config).contains("another coordinator"), "the lock is held again");
    let commits = config.connect(NoTls).unwrap().query_one("SELECT commits FROM togl.store", &[]).unwrap();
    assert_eq!(commits.get::<_, i64>(0), store.commits);
}

fn a_coordinator_that_was_replaced_writes_nothing_more(server: &Server) {
    let config = server.database();
    fill(Box::new(PostgresStore::open(&config).unwrap()), 2, |_| {});
    let mut old = PostgresStore::open(&config).unwrap();
    let backend = old.link().backend();
    sql(&config, &format!("SELECT pg_terminate_backend({backend})"));
    let mut new = loop {
        // The lock goes with the session, which takes a moment to end.
        if let Ok(store) = PostgresStore::open(&config) {
            break store;
        }
    };
    new.commit(&[pause()]).unwrap();
    drop(new);
    let error = old.commit(&[pause()]).unwrap_err();
    assert!(matches!(error, StoreError::TakenOver { .. }), "{error}");
}

fn readers_come_back_by_themselves(server: &Server) {
    let config = server.database();
    let store = PostgresStore::open(&config).unwrap();
    let readers = store.readers();
    fill(Box::new(store), 2, |_| {});
    let reader = readers.open_reader().unwrap();
    sql(
        &config,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE pid <> pg_backend_pid() AND datname = current_database()",
    );
    assert!(reader.sweeps().is_err(), "its state is gone; another one would be a lie");
    assert_eq!(readers.open_reader().unwrap().sweeps().unwrap().len(), 1);
}

/// The server is killed again and again while a coordinator commits; whatever was acknowledged is there afterwards,
/// nothing is there twice, and the coordinator goes on by itself.
#[test]
fn a_server_that_is_killed_in_the_middle_of_commits_loses_nothing() {
    let Some(server) = Server::start() else { return };
    let config = server.database();
    let mut store = PostgresStore::open(&config).unwrap();
    let mut history = History::new(5);
    let (stop, turn) = (AtomicBool::new(false), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        let killer = std::thread::Builder::new().spawn_scoped(scope, || {
            for _ in 0..3 {
                turn.wait();
                server.kill();
                server.up();
            }
            stop.store(true, Ordering::SeqCst);
        });
        let mut commits = 0u32;
        while !stop.load(Ordering::SeqCst) {
            if commits.is_multiple_of(7) && commits < 21 {
                turn.wait();
            }
            let changes = history.some_facts();
            store.commit(&changes).unwrap();
            commits += 1;
            assert_eq!(store.commits, i64::from(commits));
        }
        killer.unwrap().join().unwrap();
    });
    assert_eq!(store.load().unwrap(), history.scheduler.snapshot());
    drop(store);
    let again = PostgresStore::open(&config).unwrap();
    assert_eq!(again.load().unwrap(), history.scheduler.snapshot());
}

#[test]
fn a_server_that_stays_away_stops_the_coordinator_before_it_acknowledges() {
    let Some(server) = Server::start() else { return };
    let config = server.database();
    let before = fill(Box::new(PostgresStore::open(&config).unwrap()), 2, |_| {});
    let mut store = PostgresStore::open(&config).unwrap();
    store.tries = 3;
    server.kill();
    let result = Box::new(example(0.5).check().unwrap());
    let digest = togl_scheduler::Digest::of(&result);
    let (fold, attempt, worker) = (fold(1), togl_sweeps::Attempt(1), worker("w"));
    let finished = Change::FoldFinished { fold, attempt, worker, digest, result };
    let error = store.commit(&[finished]).unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    server.up();
    assert_eq!(PostgresStore::open(&config).unwrap().load().unwrap(), before);
}
