//! The store in PostgreSQL, for labs that outgrow one machine: the schema `togl` of a database. Owns opening,
//! locking, and knowing what became of a transaction when the connection breaks; `schema` says which version it has,
//! `stage` and `write` keep facts, `link` is the connection, `access` and `tls` say how far the server is trusted.
//!
//! A transaction raises a counter. When the connection breaks in the middle of one, the store connects again, waits
//! until the server has buried the old session (it held the lock), and reads the counter: then the outcome is known.
//! A server that is silent for too long counts as one whose connection broke. If it does not come back within half a minute
//! of the first attempt, the commit fails and the coordinator stops; nothing was acknowledged.

mod access;
mod link;
pub(super) mod schema;
mod shared_tokens;
mod stage;
mod standby;
mod tls;
mod write;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use togl_scheduler::{Change, Snapshot};

pub use self::access::PostgresAccess;
pub(super) use self::link::{Failed, Link, one_state};
pub(crate) use self::shared_tokens::{Numbered, SharedTokens};
use self::stage::Staged;
pub use self::standby::{Asked, Waiting};
use self::write::{Answers, Statements};
use super::address::{StoreAddress, shown};
use super::database::{Database, Postgres};
use super::facts::Tables;
use super::load::load;
use super::tables::TABLES;
use super::{LogPiece, Readers, Store, StoreError, delete};
use crate::clock::{self, Stopwatch};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(250);

/// Looks after which the server is asked to end a session of ours that it still believes in.
const BEFORE_ENDING: u32 = 8;

/// How often the lock of a store that is being opened is asked for.
const BURIALS: u32 = 4;

/// How often one transaction is tried; a server that dies of it three times would die again.
const ROUNDS: u32 = 3;

/// How long a server is waited for.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// Without an answer, before its connection is given up.
    silence: Duration,
    /// For a whole commit, before the coordinator stops.
    commit: Duration,
}

const PATIENCE: Patience = Patience { silence: Duration::from_secs(10), commit: Duration::from_secs(30) };

/// The store of a coordinator that serves. Keeps everybody else away until it is dropped.
#[derive(Debug)]
pub struct PostgresStore {
    link: Mutex<Link>,
    access: PostgresAccess,
    address: String,
    incarnation: u64,
    /// Drawn at every opening: tells whether somebody else opened the store after us.
    holder: i64,
    /// Transactions so far.
    commits: i64,
    patience: Patience,
}

/// A store that is only read, while a coordinator serves it or not.
#[derive(Debug)]
pub struct PostgresReader {
    link: Mutex<Link>,
}

impl PostgresStore {
    /// Opens the store in a database, making it if it is not there.
    pub fn open(access: &PostgresAccess) -> Result<Self, StoreError> {
        let mut link = Link::connect_to_session(access)?;
        lock_patiently(&mut link)?;
        Self::hold(link, access)
    }

    /// Opens the store over a connection that has its lock.
    fn hold(mut link: Link, access: &PostgresAccess) -> Result<Self, StoreError> {
        let address = shown(access);
        let holder = random()?;
        let (incarnation, commits) = link.with(|client| {
            schema::prepare(client, random)?;
            let sql = "UPDATE store SET holder = $1 RETURNING incarnation, commits";
            let row = client.query_one(sql, &[&holder])?;
            Ok((row.try_get::<_, i64>(0)?, row.try_get(1)?))
        })?;
        let incarnation = incarnation.cast_unsigned();
        Ok(Self {
            link: Mutex::new(link),
            access: access.clone(),
            address,
            incarnation,
            holder,
            commits,
            patience: PATIENCE,
        })
    }

    /// Which store this is, for people.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The mark of this opening.
    pub(super) fn holder(&self) -> i64 {
        self.holder
    }

    pub(super) fn link(&mut self) -> &mut Link {
        self.link.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes one transaction once.
    fn write(&mut self, staged: &Arc<Staged>, number: i64) -> Result<(), Failed> {
        let (holder, silence, staged) = (self.holder, self.patience.silence, staged.clone());
        self.link().try_within(silence, move |client, statements| {
            write::commit(client, statements, &staged, number, holder)
        })
    }

    /// Connects again and says how many transactions the server knows. The lock is ours again when this returns, so
    /// no session of ours is left that could still write.
    fn come_back(&mut self, since: &Stopwatch) -> Result<i64, StoreError> {
        let (access, old, holder) = (self.access.clone(), self.link().backend(), self.holder);
        let left = self.patience.commit.saturating_sub(Duration::from_secs_f64(since.seconds()));
        let found = link::within(left, &Answers::default(), move || look_for(&access, old, holder, left))?;
        let (address, reason) = (self.address.clone(), link::silent(self.patience.commit));
        let (link, commits) = found.unwrap_or(Err(StoreError::Unreachable { address, reason }))?;
        *self.link() = link;
        Ok(commits)
    }
}

impl delete::Held for PostgresStore {
    fn number(&mut self, sql: &str) -> Result<Option<i64>, StoreError> {
        self.link().with(|client| match client.query_opt(sql, &[])? {
            Some(row) => Ok(Some(row.try_get(0)?)),
            None => Ok(None),
        })
    }

    fn size(&mut self) -> Result<u64, StoreError> {
        let sql = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
                   WHERE relnamespace = to_regnamespace('togl') AND relkind = 'r'";
        Ok(self.number(sql)?.unwrap_or(0).cast_unsigned())
    }

    fn rewrite(&mut self, statements: &str) -> Result<(), StoreError> {
        let number = self.commits + 1;
        self.link().with(|client| {
            client.batch_execute(&format!(
                "BEGIN; {statements}; UPDATE store SET commits = {number}; COMMIT"
            ))?;
            for table in &TABLES {
                client.batch_execute(&format!("VACUUM FULL {}", table.name))?;
            }
            Ok(())
        })?;
        self.commits = number;
        Ok(())
    }
}

/// Looks for the server for a while. Gives a connection that has the lock, and how many transactions the server knows.
fn look_for(
    access: &PostgresAccess,
    old: i32,
    holder: i64,
    time: Duration,
) -> Result<(Link, i64), StoreError> {
    let (since, mut looks) = (Stopwatch::start(), 0);
    loop {
        match look_again(access, old, holder, looks >= BEFORE_ENDING) {
            Err(StoreError::Unreachable { .. } | StoreError::Held { .. })
                if since.seconds() + PAUSE.as_secs_f64() < time.as_secs_f64() => {}
            found => return found,
        }
        looks += 1;
        std::thread::sleep(PAUSE);
    }
}

fn look_again(
    access: &PostgresAccess,
    old: i32,
    holder: i64,
    end_the_old: bool,
) -> Result<(Link, i64), StoreError> {
    let mut link = Link::connect(access)?;
    // Whoever took over keeps the lock: it would be waited for in vain.
    holder_is_still(&mut link, access, holder)?;
    if end_the_old {
        link.end(old)?;
    }
    link.lock()?;
    let commits = holder_is_still(&mut link, access, holder)?;
    Ok((link, commits))
}

/// The transactions of the store, if nobody has opened it since this holder did.
fn holder_is_still(link: &mut Link, access: &PostgresAccess, holder: i64) -> Result<i64, StoreError> {
    let (commits, found) = link.with(|client| {
        schema::configure(client)?;
        let row = client.query_one("SELECT commits, holder FROM store", &[])?;
        Ok((row.try_get(0)?, row.try_get::<_, i64>(1)?))
    })?;
    match found == holder {
        true => Ok(commits),
        false => Err(StoreError::TakenOver { address: shown(access) }),
    }
}

/// Takes the lock; a coordinator that has just died may be buried first.
fn lock_patiently(link: &mut Link) -> Result<(), StoreError> {
    for _ in 0..BURIALS {
        match link.lock() {
            Err(StoreError::Held { .. }) => std::thread::sleep(PAUSE),
            other => return other,
        }
    }
    link.lock()
}

/// A random number for whom it need not be guessable, only different.
pub(super) fn random() -> Result<i64, StoreError> {
    let number = getrandom::u64()
        .map_err(|error| StoreError::Impossible { what: "random number", detail: error.to_string() })?;
    Ok(number.cast_signed())
}

/// Opens a store for reading, also while a coordinator serves it.
pub fn open_read_only(access: &PostgresAccess) -> Result<PostgresReader, StoreError> {
    let mut link = Link::connect(access)?;
    link.with(schema::recognise)?;
    Ok(PostgresReader { link: Mutex::new(link) })
}

impl Store for PostgresStore {
    fn load(&self) -> Result<Snapshot, StoreError> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner).with(|client| {
            let mut one_state = one_state(client)?;
            Ok(load(&mut Postgres(&mut one_state))?)
        })
    }

    fn commit_with_log(&mut self, changes: &[Change], log: &[LogPiece]) -> Result<(), StoreError> {
        let (number, since) = (self.commits + 1, Stopwatch::start());
        let staged = stage::stage(changes, log, number.cast_unsigned(), clock::unix_milliseconds())?;
        let staged = Arc::new(staged);
        for round in 1..=ROUNDS {
            let error = match self.write(&staged, number) {
                Ok(()) => {
                    crate::crash::point("committed");
                    self.commits = number;
                    return Ok(());
                }
                Err(Failed::Refused(error)) => return Err(error),
                Err(Failed::Lost(error)) => error,
            };
            tracing::warn!(%error, "the connection to the store broke; looking what became of the commit");
            let stored = self.come_back(&since)?;
            tracing::info!(number, stored, "connected to the store again");
            if stored == number {
                self.commits = number;
                return Ok(());
            }
            if stored != self.commits {
                return Err(link::named(write::rolled_back(stored, self.commits), &self.address));
            }
            if round == ROUNDS || since.seconds() > self.patience.commit.as_secs_f64() {
                return Err(error);
            }
        }
        Err(StoreError::TakenOver { address: self.address.clone() })
    }

    fn append_log(&mut self, pieces: &[LogPiece]) -> Result<(), StoreError> {
        let (since, silence, log) = (Stopwatch::start(), self.patience.silence, stage::merge(pieces));
        let append = move |client: &mut ::postgres::Client, statements: &mut Statements| {
            write::append_log(client, statements, &log)
        };
        match self.link().try_within(silence, append) {
            Ok(()) => Ok(()),
            Err(Failed::Refused(error)) => Err(error),
            // Whether the piece was kept does not matter much; that the next commit finds a connection does.
            Err(Failed::Lost(error)) => {
                self.come_back(&since)?;
                Err(error)
            }
        }
    }

    fn still_ours(&mut self) -> Result<(), StoreError> {
        let (since, silence, holder) = (Stopwatch::start(), self.patience.silence, self.holder);
        let backend = self.link().backend();
        let asked = self.link().try_within(silence, move |client, _| link::prove(client, backend, holder));
        match asked {
            Ok(()) => Ok(()),
            Err(Failed::Refused(error)) => Err(error),
            Err(Failed::Lost(error)) => {
                tracing::warn!(%error, "the connection to the store broke; looking whether it is still ours");
                let stored = self.come_back(&since)?;
                if stored != self.commits {
                    return Err(link::named(write::rolled_back(stored, self.commits), &self.address));
                }
                tracing::info!("connected to the store again");
                Ok(())
            }
        }
    }

    fn incarnation(&self) -> u64 {
        self.incarnation
    }

    fn readers(&self) -> Arc<dyn Readers> {
        Arc::new(StoreAddress::Postgres(Box::new(self.access.clone())))
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Ok(()) // every commit is where it belongs, and the server lets go of the lock with the connection
    }
}

impl PostgresReader {
    /// The same reader, which sees from now on one state only. It ends with the connection.
    pub(super) fn hold(self) -> Result<Self, StoreError> {
        // A transaction has its state from its first look on.
        let sql = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT incarnation FROM store";
        self.read(|client| Ok(client.batch_execute(sql)?))?;
        Ok(self)
    }

    pub(super) fn read<T: Send>(
        &self,
        read: impl FnOnce(&mut ::postgres::Client) -> Result<T, Failed> + Send,
    ) -> Result<T, StoreError> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner).with(read)
    }
}

impl Tables for PostgresReader {
    fn ask<T: Send>(
        &self,
        question: impl FnOnce(&mut dyn Database) -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError> {
        self.read(|client| Ok(question(&mut Postgres(client))?))
    }
}

#[cfg(test)]
#[path = "postgres_tests.rs"]
mod tests;
