//! Coordinators that share a PostgreSQL store: one serves, one waits; their list of tokens. On a real server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::postgres::NoTls;
use togl_proto::token::{Pin, Role};

use super::*;
use crate::driver::DriverError;
use crate::service::{Coordinator, ServiceError, ServiceSettings};
use crate::store::address::StoreAddress;
use crate::store::postgres::PostgresStore;
use crate::store::postgres_server::Server;
use crate::tokens::{self, Registry, TokenPlace};

const NOW: u64 = 1_800_000_000;

fn sql(access: &PostgresAccess, text: &str) {
    access.connect(NoTls).unwrap().batch_execute(text).unwrap();
}

/// Ends all other sessions of the database, as a server does that believes their hosts to be gone.
fn end_sessions(access: &PostgresAccess) {
    sql(
        access,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE pid <> pg_backend_pid() AND datname = current_database()",
    );
}

fn opened(waiting: &mut Waiting) -> PostgresStore {
    loop {
        // A session that was ended takes a moment, and so may a connection of ours that went with it.
        if let Ok(Asked::Opened(store)) = waiting.ask() {
            return *store;
        }
    }
}

#[test]
fn whoever_waits_has_the_store_once_its_holder_is_gone_and_the_holder_learns_it() {
    let Some(server) = Server::quick() else { return };
    let access = server.database();
    let mut first = PostgresStore::open(&access).unwrap();
    let mut waiting = Waiting::new(access.clone());
    for _ in 0..2 {
        let Ok(Asked::Held { by }) = waiting.ask() else { panic!("the store was given away") };
        assert!(by.contains(&format!("togl, process {}", std::process::id())), "{by}");
        first.still_ours().unwrap();
    }
    end_sessions(&access);
    let mut second = opened(&mut waiting);
    let lost = first.still_ours().unwrap_err();
    assert!(lost.to_string().starts_with("taken over: another coordinator has postgres://"), "{lost}");
    second.still_ours().unwrap();
    // Nobody waits: a session that breaks is made again, and the store is still ours.
    end_sessions(&access);
    second.still_ours().unwrap();
    drop(second);
    let mut third = opened(&mut Waiting::new(access));
    third.still_ours().unwrap();
}

/// Runs coordinators of one store, each with a state directory of its own.
struct Pair {
    access: PostgresAccess,
    folders: [tempfile::TempDir; 2],
}

impl Pair {
    fn new(access: PostgresAccess) -> Self {
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
        crate::bundle::write(&folders[0].path().join("state"), NOW).unwrap();
        std::fs::create_dir(folders[1].path().join("state")).unwrap();
        Self { access, folders }
    }

    fn state(&self, number: usize) -> PathBuf {
        self.folders[number].path().join("state")
    }

    fn settings(&self, number: usize) -> ServiceSettings {
        let store = StoreAddress::Postgres(Box::new(self.access.clone()));
        let mut settings =
            ServiceSettings::new(store, &self.state(number).join("tokens.json"), ([127, 0, 0, 1], 0).into());
        settings.standby = true;
        settings
    }

    fn copy_the_ca(&self) {
        for file in ["ca.pem", "ca.key"] {
            std::fs::copy(self.state(0).join(file), self.state(1).join(file)).unwrap();
        }
    }
}

#[test]
fn a_coordinator_that_lost_its_store_stops_as_taken_over_and_the_one_that_waited_serves() {
    let Some(server) = Server::quick() else { return };
    let pair = Pair::new(server.database());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(lose_and_take_over(pair));
}

async fn lose_and_take_over(pair: Pair) {
    let refused = Coordinator::start_with(pair.settings(1)).await.map(|_| ()).unwrap_err();
    assert!(matches!(refused, ServiceError::NoAuthority { .. }), "{refused}");
    pair.copy_the_ca();
    let first = Coordinator::start_with(pair.settings(0)).await.unwrap();
    let mut second = crate::tasks::spawn("second", Coordinator::start_with(pair.settings(1)));
    let first = crate::tasks::spawn("first", first.run(std::future::pending()));
    let early = tokio::time::timeout(Duration::from_millis(1_500), &mut second).await;
    assert!(early.is_err(), "it waits while the other one serves");
    // Somebody opened the store after the first one, which has nothing to commit and has to ask.
    let access = pair.access.clone();
    tokio::task::spawn_blocking(move || sql(&access, "UPDATE togl.store SET holder = holder + 1"))
        .await
        .unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(30), first).await.unwrap().unwrap().unwrap_err();
    let ServiceError::Driver(DriverError::Store(why)) = &ended else { panic!("{ended}") };
    assert!(matches!(**why, StoreError::TakenOver { .. }), "{ended}");
    let second = tokio::time::timeout(Duration::from_secs(30), second).await.unwrap().unwrap().unwrap();
    assert!(std::net::TcpStream::connect(second.address()).is_ok(), "it listens now");
    second.run(std::future::ready(())).await.unwrap();
}

#[tokio::test]
async fn only_a_store_that_several_can_reach_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = ServiceSettings::new(
        &folder.path().join("store.sqlite"),
        &folder.path().join("tokens.json"),
        ([127, 0, 0, 1], 0).into(),
    );
    settings.standby = true;
    let refused = Coordinator::start_with(settings).await.map(|_| ()).unwrap_err().to_string();
    assert!(refused.starts_with("only a PostgreSQL store can be taken over, and sqlite:"), "{refused}");
}

#[test]
fn a_store_that_cannot_be_reached_at_the_first_question_is_said_at_once() {
    let mut nobody = ::postgres::Config::new();
    nobody.host_path("/nowhere").user("postgres");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let refused = runtime.block_on(wait(nobody.into())).map(|_| ()).unwrap_err();
    assert!(matches!(refused, StoreError::Unreachable { .. }), "{refused}");
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let start = crate::clock::Stopwatch::start();
    while !holds() {
        // A second is what is promised; a machine that is busy with other tests gets more.
        assert!(start.seconds() < 10.0, "waited in vain: {what}");
        std::thread::yield_now();
    }
}

fn registry(place: &TokenPlace) -> (Arc<Registry>, tokens::Tokens) {
    let (registry, own) = Registry::open(place.clone(), &Pin::of(b"the CA"), NOW).unwrap();
    (Arc::new(registry), own)
}

#[test]
fn coordinators_of_one_store_have_one_list_of_tokens_and_a_revocation_reaches_all_within_a_second() {
    let Some(server) = Server::quick() else { return };
    let access = server.database();
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let place = |folder: &Path| {
        TokenPlace::of(&folder.join("tokens.json"), &StoreAddress::Postgres(Box::new(access.clone())))
    };
    let [one, two] = [place(folders[0].path()), place(folders[1].path())];
    let early = tokens::create(one.clone(), Role::Viewer, "", None, NOW).unwrap_err().to_string();
    assert!(early.contains("holds no store; start a coordinator on it first"), "{early}");

    // A list of before: tokens in the file of the state directory go on working in the store.
    let (_, older) = registry(&folders[0].path().join("tokens.json").as_path().into());
    drop(PostgresStore::open(&access).unwrap());
    let (first, own) = registry(&one);
    assert_eq!(own.worker, older.worker);
    let (second, further) = registry(&two);
    assert_ne!(further.worker, own.worker, "each state directory has its own, and all are on the list");
    let knows = |registry: &Registry, secret: &str| registry.check(secret, NOW).is_some();
    until("all know all", || {
        [&first, &second]
            .iter()
            .all(|registry| knows(registry, &own.worker) && knows(registry, &further.worker))
    });

    let (guest, entry) = tokens::create(two.clone(), Role::Viewer, "guest", None, NOW).unwrap();
    until("a new token is known", || knows(&first, guest.secret()) && knows(&second, guest.secret()));
    tokens::revoke(one.clone(), &entry.id.to_string()).unwrap();
    until("a revoked token is not", || !knows(&first, guest.secret()) && !knows(&second, guest.secret()));
    until("and those who are connected with it go", || {
        !first.is_alive(&entry.id, NOW) && !second.is_alive(&entry.id, NOW)
    });
    // The files are copies: a store that has lost its list begins with what was heard last.
    let copy = |folder: &Path| tokens::list(folder.join("tokens.json").as_path()).unwrap();
    until("the files follow", || {
        folders.iter().all(|folder| !copy(folder.path()).iter().any(|token| token.id == entry.id))
    });
    assert_eq!(tokens::list(one).unwrap(), copy(folders[1].path()));

    // A server that goes away costs nobody his right.
    end_sessions(&access);
    assert!(knows(&first, &own.worker));
    let (late, _) = tokens::create(two, Role::Viewer, "late", None, NOW).unwrap();
    until("the list is followed again", || knows(&first, late.secret()) && knows(&second, late.secret()));
}

#[test]
fn two_who_change_the_list_at_once_lose_nothing() {
    let Some(server) = Server::quick() else { return };
    let access = server.database();
    drop(PostgresStore::open(&access).unwrap());
    let store = StoreAddress::Postgres(Box::new(access));
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let places = folders.each_ref().map(|folder| TokenPlace::of(&folder.path().join("tokens.json"), &store));
    registry(&places[0]);
    std::thread::scope(|scope| {
        for place in &places {
            let create = || {
                for _ in 0..5 {
                    tokens::create(place.clone(), Role::Viewer, "", None, NOW).unwrap();
                }
            };
            std::thread::Builder::new().spawn_scoped(scope, create).unwrap();
        }
    });
    assert_eq!(tokens::list(places[1].clone()).unwrap().len(), 2 + 3 * 5);
}
