//! What only a server can do: be somebody else's, be newer, cut a session, die in the middle of a commit.

use std::sync::atomic::{AtomicBool, Ordering};

use ::postgres::NoTls;
use togl_scheduler::{FoldChange, SweepChange};
use togl_sweeps::Attempt;
use togl_sweeps::result::example;

use super::*;
use crate::store::contract::{History, fill, fold, sweep, worker};
use crate::store::postgres_server::{Server, signal};

fn sql(config: &PostgresAccess, text: &str) {
    config.connect(NoTls).unwrap().batch_execute(text).unwrap();
}

fn refused(config: &PostgresAccess) -> String {
    PostgresStore::open(config).map(|_| ()).unwrap_err().to_string()
}

/// Opens a store whose lock goes with a session that takes a moment to end.
fn open_again(config: &PostgresAccess) -> PostgresStore {
    loop {
        if let Ok(store) = PostgresStore::open(config) {
            break store;
        }
    }
}

fn pause() -> Change {
    Change::Sweep(SweepChange::StateSet {
        sweep: sweep("s"),
        state: togl_scheduler::SweepState::Paused,
        note: None,
    })
}

/// One server for all of them: making it takes longer than the tests.
#[test]
fn stores_in_postgres_are_refused_or_mended_as_files_are() {
    let Some(server) = Server::quick() else { return };
    what_is_not_ours_or_newer_is_refused_and_untouched(&server);
    stores_of_every_released_version_become_what_is_made_today(&server);
    databases_that_cannot_be_used_are_named_with_a_hint(&server);
    a_transaction_is_kept_whole_or_not_at_all(&server);
    output_that_cannot_be_kept_does_not_cost_a_decision(&server);
    a_session_that_the_server_ends_costs_nothing(&server);
    a_coordinator_that_was_replaced_writes_nothing_more(&server);
    a_pooler_that_swaps_sessions_is_refused(&server);
    a_store_that_was_rolled_back_is_not_written_any_more(&server);
    a_lock_that_is_never_let_go_ends_in_time(&server);
    readers_come_back_by_themselves(&server);
}

/// The tables of a store as PostgreSQL understands them.
fn understood(config: &PostgresAccess) -> Vec<String> {
    let questions = "
        SELECT concat_ws(' ', table_name, column_name, ordinal_position, data_type, is_nullable, is_identity)
        FROM information_schema.columns WHERE table_schema = 'togl'
        UNION ALL SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = to_regnamespace('togl')
        UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'togl'
        UNION ALL SELECT 'version ' || version FROM togl.schema_version ORDER BY 1";
    let rows = config.connect(NoTls).unwrap().query(questions, &[]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

fn stores_of_every_released_version_become_what_is_made_today(server: &Server) {
    let today = server.database();
    drop(PostgresStore::open(&today).unwrap());
    let steps: Vec<&str> = include_str!("released/postgres.sql").split("-- STEP").skip(1).collect();
    for version in 1..=steps.len() {
        let old = server.database();
        let mut made =
            "CREATE SCHEMA togl; CREATE TABLE togl.schema_version (version BIGINT NOT NULL PRIMARY KEY);
                        SET search_path TO togl;"
                .to_owned();
        for (step, number) in steps[..version].iter().zip(1..) {
            made += &format!(
                "{}; INSERT INTO schema_version VALUES ({number});",
                step.split_once('\n').unwrap().1
            );
        }
        sql(&old, &(made + "INSERT INTO store VALUES (7, 0, 0)"));
        assert_eq!(PostgresStore::open(&old).unwrap().incarnation(), 7);
        assert_eq!(understood(&old), understood(&today), "version {version}");
    }
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

fn output_that_cannot_be_kept_does_not_cost_a_decision(server: &Server) {
    let config = server.database();
    fill(Box::new(PostgresStore::open(&config).unwrap()), 2, |_| {});
    let mut store = PostgresStore::open(&config).unwrap();
    sql(&config, "DROP TABLE togl.log");
    let piece = LogPiece { fold: fold(0), attempt: Attempt(1), text: "lost\n".to_owned() };
    store.commit_with_log(&[pause()], &[piece]).unwrap();
    assert_eq!(store.reader().unwrap().sweeps().unwrap()[0].state, togl_scheduler::SweepState::Paused);
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
    let mut new = open_again(&config);
    new.commit(&[pause()]).unwrap();
    drop(new);
    let error = old.commit(&[pause()]).unwrap_err();
    assert!(matches!(error, StoreError::TakenOver { .. }), "{error}");
}

/// A pooler answers a client by whichever session is free: here, one that the store has never seen.
fn a_pooler_that_swaps_sessions_is_refused(server: &Server) {
    let config = server.database();
    let mut store = PostgresStore::open(&config).unwrap();
    let elsewhere = Link::connect(&config).unwrap();
    let own = store.link().backend();
    store.link().swap(elsewhere);
    assert_ne!(own, 0);
    for refused in [store.still_ours().unwrap_err(), store.link().lock().unwrap_err()] {
        let said = refused.to_string();
        assert!(
            said.contains("through a pooler that swaps sessions") && said.contains("pool_mode = session"),
            "{said}"
        );
    }
}

/// A database that is put back to an older state under a coordinator.
fn a_store_that_was_rolled_back_is_not_written_any_more(server: &Server) {
    for broken in [false, true] {
        let config = server.database();
        fill(Box::new(PostgresStore::open(&config).unwrap()), 4, |_| {});
        let mut store = PostgresStore::open(&config).unwrap();
        sql(&config, "UPDATE togl.store SET commits = commits - 2");
        if broken {
            sql(&config, &format!("SELECT pg_terminate_backend({})", store.link().backend()));
        }
        let message = store.commit(&[pause()]).unwrap_err().to_string();
        assert!(message.contains("it was rolled back") && message.contains("togl restore"), "{message}");
    }
}

/// Another session holds what a commit needs, and does not let go.
fn a_lock_that_is_never_let_go_ends_in_time(server: &Server) {
    let config = server.database();
    let before = fill(Box::new(PostgresStore::open(&config).unwrap()), 2, |_| {});
    let mut store = PostgresStore::open(&config).unwrap();
    let limit: String =
        store.link().with(|client| Ok(client.query_one("SHOW lock_timeout", &[])?.try_get(0)?)).unwrap();
    assert_eq!(limit, "20s", "well within half a minute");
    store.patience = Patience { silence: Duration::from_millis(200), commit: Duration::from_secs(2) };
    let mut other = config.connect(NoTls).unwrap();
    other.batch_execute("BEGIN; LOCK TABLE togl.store").unwrap();
    let watch = Stopwatch::start();
    store.commit(&[pause()]).unwrap_err();
    assert!(watch.seconds() < 10.0, "{}", watch.seconds());
    // Once the lock is free, the session that waited for it may still do what nobody was promised; then it is over.
    drop((store, other));
    let found = open_again(&config).load().unwrap();
    assert!(found == before || found.sweeps[&sweep("s")].state == togl_scheduler::SweepState::Paused);
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
    store.patience.commit = Duration::from_secs(1);
    server.kill();
    let result = Box::new(example(0.5).check().unwrap());
    let digest = togl_scheduler::Digest::of(&result);
    let (fold, attempt, worker) = (fold(1), Attempt(1), worker("w"));
    let finished = Change::Fold(fold, FoldChange::Finished { attempt, worker, digest, result });
    let error = store.commit(&[finished]).unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    server.up();
    assert_eq!(PostgresStore::open(&config).unwrap().load().unwrap(), before);
}

/// The session of the coordinator stands still, and so does nothing else: neither the network nor the server says a word.
#[test]
fn a_session_that_stands_still_stops_the_coordinator_in_time_and_nothing_is_acknowledged() {
    let Some(server) = Server::quick() else { return };
    let config = server.database();
    let before = fill(Box::new(PostgresStore::open(&config).unwrap()), 2, |_| {});
    let mut store = PostgresStore::open(&config).unwrap();
    assert!(store.patience.commit <= Duration::from_secs(30), "what the documents promise");
    assert!(store.patience.silence < store.patience.commit);
    store.patience = Patience { silence: Duration::from_millis(200), commit: Duration::from_secs(2) };
    let backend = store.link().backend().cast_unsigned();
    signal("STOP", backend);
    let watch = Stopwatch::start();
    let error = store.commit(&[pause()]).unwrap_err();
    assert!(watch.seconds() < 10.0, "{}", watch.seconds());
    assert!(matches!(error, StoreError::Held { .. } | StoreError::Unreachable { .. }), "{error}");
    drop(store);
    signal("KILL", backend);
    // The server ends all sessions when one was killed, and comes back.
    let found = open_again(&config).load().unwrap();
    assert_eq!(found, before);
}
