//! A connection to PostgreSQL and the lock that goes with it. The client waits with a small runtime of its own, which
//! must not happen on a thread that already runs one: every call borrows a thread, which costs microseconds beside
//! the milliseconds of a flushed commit. The client would also wait for ever: a call that decisions depend on gives its
//! thread up, with the connection, when the server stays silent.

use std::mem;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use ::postgres::config::SslMode;
use ::postgres::error::SqlState;
use ::postgres::{Client, IsolationLevel, NoTls, Transaction};

use super::super::StoreError;
use super::super::address::{said, shown};
use super::access::{PostgresAccess, Trust};
use super::tls::{Connector, Distrust};
use super::write::{Answers, Statements};

/// The advisory lock of a store: the letters `togl`. Advisory locks belong to a database, as the schema does.
const LOCK: i64 = 0x746f_676c;

/// How long a server may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a silent network is believed to be alive.
const SILENCE: Duration = Duration::from_secs(10);

/// After so long without a word the other side is asked for a sign of life, so often, so many times: a host that is gone is
/// noticed within 11 seconds. The server is told the same (`schema`), because it lets go of the lock then.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(5), Duration::from_secs(2), 3);

/// Why a call has no answer.
pub(in super::super) enum Failed {
    /// The connection broke: what was asked may or may not have happened.
    Lost(StoreError),
    /// It did not happen.
    Refused(StoreError),
}

impl Failed {
    /// The same, for whom it does not matter whether anything happened.
    pub(in super::super) fn plain(self) -> StoreError {
        match self {
            Self::Lost(StoreError::Postgres { address, reason }) => {
                StoreError::Unreachable { address, reason }
            }
            Self::Lost(error) | Self::Refused(error) => error,
        }
    }

    /// The same, of this store.
    fn at(self, address: &str) -> Self {
        match self {
            Self::Lost(error) => Self::Lost(named(error, address)),
            Self::Refused(error) => Self::Refused(named(error, address)),
        }
    }
}

impl From<::postgres::Error> for StoreError {
    fn from(error: ::postgres::Error) -> Self {
        Failed::from(error).plain()
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<::postgres::Error> for Failed {
    fn from(error: ::postgres::Error) -> Self {
        // The address is filled in by the link, which knows it.
        let failed = StoreError::Postgres { address: String::new(), reason: said(&error) };
        if is_lost(&error) { Self::Lost(failed) } else { Self::Refused(failed) }
    }
}

/// Whether the connection is gone: no answer of the server at all, or its last words.
fn is_lost(error: &::postgres::Error) -> bool {
    let last_words = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::IDLE_SESSION_TIMEOUT,
    ];
    match error.code() {
        Some(code) => last_words.contains(code) || code.code().starts_with("08"),
        None => error.is_closed() || has_io_cause(error),
    }
}

fn has_io_cause(error: &::postgres::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        if inner.is::<std::io::Error>() {
            return true;
        }
        cause = inner.source();
    }
    false
}

/// A connection.
pub(in super::super) struct Link {
    /// There until it is dropped.
    client: Option<Client>,
    statements: Statements,
    address: String,
    backend: i32,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("address", &self.address).field("backend", &self.backend).finish()
    }
}

impl Link {
    /// Connects, with as much TLS as was asked for.
    pub(in super::super) fn connect(access: &PostgresAccess) -> Result<Self, StoreError> {
        let mut config = ::postgres::Config::clone(access);
        config.connect_timeout(PATIENCE).tcp_user_timeout(SILENCE);
        let (idle, interval, count) = KEEPALIVE;
        config.keepalives_idle(idle).keepalives_interval(interval).keepalives_retries(count);
        config.application_name(&format!("togl, process {}", std::process::id()));
        let address = shown(&config);
        let connector =
            match access.trust() {
                Trust::Plain => None,
                trust => Some(Connector::new(trust).map_err(|Distrust(problem)| StoreError::Unusable {
                    address: address.clone(),
                    problem,
                })?),
            };
        if connector.is_none() {
            config.ssl_mode(SslMode::Disable);
        }
        let connected = within(PATIENCE, &Answers::default(), move || {
            let mut client = match connector {
                Some(connector) => config.connect(connector)?,
                None => config.connect(NoTls)?,
            };
            let backend = client.query_one("SELECT pg_backend_pid()", &[])?.try_get(0)?;
            Ok((client, backend))
        })?;
        match connected {
            Some(Ok((client, backend))) => {
                Ok(Self { client: Some(client), statements: Statements::default(), address, backend })
            }
            Some(Err(error)) => Err(refused(address, &error)),
            None => Err(StoreError::Unreachable { address, reason: silent(PATIENCE) }),
        }
    }

    /// Connects to take the lock of the store, which only a session of the server itself can have. A pooler that swaps sessions
    /// gives itself away while two connections are in a transaction: it hands the one that was let go last to whoever asks next.
    pub(super) fn connect_to_session(access: &PostgresAccess) -> Result<Self, StoreError> {
        let mut link = Self::connect(access)?;
        let Ok(mut other) = Self::connect(access) else { return Ok(link) }; // none to spare: `prove` looks later
        for sql in ["BEGIN", "COMMIT"] {
            for link in [&mut link, &mut other] {
                link.with(|client| Ok(client.batch_execute(sql)?))?;
            }
        }
        let backend = link.backend;
        link.with(|client| {
            same_session(backend, client.query_one("SELECT pg_backend_pid()", &[])?.try_get(0)?)
        })?;
        Ok(link)
    }

    /// The process that serves this connection.
    pub(super) fn backend(&self) -> i32 {
        self.backend
    }

    /// Takes the lock of the store, or says who has it.
    pub(super) fn lock(&mut self) -> Result<(), StoreError> {
        let backend = self.backend;
        let holder = self.with(|client| {
            let row = client.query_one("SELECT pg_try_advisory_lock($1), pg_backend_pid()", &[&LOCK])?;
            same_session(backend, row.try_get(1)?)?;
            if row.try_get(0)? {
                return Ok(None);
            }
            let sql = "SELECT coalesce(application_name, ''), coalesce(host(client_addr), 'this machine')
                       FROM pg_locks JOIN pg_stat_activity USING (pid)
                       WHERE locktype = 'advisory' AND granted AND objid::bigint = $1
                           AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())";
            let found = client.query_opt(sql, &[&LOCK])?;
            let holder = found.map(|row| Ok::<_, ::postgres::Error>((row.try_get(0)?, row.try_get(1)?)));
            Ok(Some(holder.transpose()?.unwrap_or((String::new(), "elsewhere".to_owned()))))
        })?;
        match holder {
            None => Ok(()),
            Some((name, host)) => {
                let holder = format!("{name} on {host}");
                Err(StoreError::Held { address: self.address.clone(), holder })
            }
        }
    }

    /// From now on the session of another connection answers.
    #[cfg(test)]
    pub(super) fn swap(&mut self, mut other: Self) {
        mem::swap(&mut self.client, &mut other.client);
        let settled = self.with(|client| Ok(client.batch_execute("SET search_path TO togl")?));
        assert!(settled.is_ok(), "{settled:?}");
    }

    /// Asks the server to end a session of ours that it still believes in.
    pub(super) fn end(&mut self, backend: i32) -> Result<(), StoreError> {
        let name = format!("togl, process {}", std::process::id());
        let sql =
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND application_name = $2";
        self.with(|client| Ok(client.execute(sql, &[&backend, &name]).map(drop)?))
    }

    /// Does something with the connection.
    pub(in super::super) fn with<T: Send>(
        &mut self,
        work: impl FnOnce(&mut Client) -> Result<T, Failed> + Send,
    ) -> Result<T, StoreError> {
        let Self { client, address, .. } = self;
        let client = client.as_mut().ok_or_else(|| closed(address).plain())?;
        apart(|| work(client))?.map_err(|failed| failed.at(address).plain())
    }

    /// The same, for work that decisions wait for: if the server says nothing for so long, the connection is given up.
    pub(super) fn try_within<T: Send + 'static>(
        &mut self,
        silence: Duration,
        work: impl FnOnce(&mut Client, &mut Statements) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, Failed> {
        let mut client = self.client.take().ok_or_else(|| closed(&self.address))?;
        let mut statements = mem::take(&mut self.statements);
        let answers = statements.answers.clone();
        let done = within(silence, &answers, move || {
            let done = work(&mut client, &mut statements);
            (client, statements, done)
        })?;
        let Some((client, statements, done)) = done else {
            let (address, reason) = (self.address.clone(), silent(silence));
            return Err(Failed::Lost(StoreError::Postgres { address, reason }));
        };
        (self.client, self.statements) = (Some(client), statements);
        done.map_err(|failed| failed.at(&self.address))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let client = self.client.take();
        _ = apart(move || drop(client)); // saying goodbye is a courtesy
    }
}

/// Refuses a pooler that gave us another session of the server than before: the lock of the store belongs to a session.
fn same_session(before: i32, now: i32) -> Result<(), Failed> {
    if before == now {
        return Ok(());
    }
    let problem = "is reached through a pooler that swaps sessions, and the lock of a store belongs to one; name the server \
                   itself, or set the pooler to `pool_mode = session`"
        .to_owned();
    Err(StoreError::Unusable { address: String::new(), problem }.into())
}

/// Whether the store is still ours: this session has the lock, and nobody opened the store after us.
pub(super) fn prove(client: &mut Client, backend: i32, holder: i64) -> Result<(), Failed> {
    let sql = "SELECT pg_backend_pid(), (SELECT holder FROM store),
                   EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid()
                               AND objid::bigint = $1)";
    let row = client.query_one(sql, &[&LOCK])?;
    same_session(backend, row.try_get(0)?)?;
    match row.try_get::<_, i64>(1)? == holder && row.try_get(2)? {
        true => Ok(()),
        false => Err(StoreError::TakenOver { address: String::new() }.into()),
    }
}

/// A transaction that sees one state of the store and changes nothing.
pub(in super::super) fn one_state(client: &mut Client) -> Result<Transaction<'_>, ::postgres::Error> {
    client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true).start()
}

fn closed(address: &str) -> Failed {
    Failed::Lost(StoreError::Postgres { address: address.to_owned(), reason: "closed".to_owned() })
}

pub(super) fn named(error: StoreError, name: &str) -> StoreError {
    match error {
        StoreError::Postgres { reason, .. } => StoreError::Postgres { address: name.to_owned(), reason },
        StoreError::Unreachable { reason, .. } => {
            StoreError::Unreachable { address: name.to_owned(), reason }
        }
        StoreError::TakenOver { .. } => StoreError::TakenOver { address: name.to_owned() },
        StoreError::Unusable { problem, .. } => StoreError::Unusable { address: name.to_owned(), problem },
        other => other,
    }
}

/// Why there is no connection.
fn refused(address: String, error: &::postgres::Error) -> StoreError {
    let reason = said(error);
    let cause = std::error::Error::source(error);
    if let Some(Distrust(problem)) = cause.and_then(|cause| cause.downcast_ref()) {
        return StoreError::Unusable { address, problem: problem.clone() };
    }
    if reason.contains("server does not support TLS") {
        let problem = "does not offer TLS; switch `ssl` on in its postgresql.conf, or leave `sslmode` out";
        return StoreError::Unusable { address, problem: problem.to_owned() };
    }
    match error.code() {
        Some(code) if *code == SqlState::INVALID_CATALOG_NAME => StoreError::Unusable {
            address,
            problem: "does not exist; make it with `createdb --encoding=UTF8 --template=template0 NAME`"
                .to_owned(),
        },
        Some(code) if *code == SqlState::TOO_MANY_CONNECTIONS || is_lost(error) => {
            StoreError::Unreachable { address, reason: format!("{reason} ({})", code.code()) }
        }
        Some(_) => StoreError::Postgres { address, reason },
        None => StoreError::Unreachable { address, reason },
    }
}

/// Runs `work` on a thread of its own and waits for it.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, StoreError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("togl-postgres".to_owned());
        let thread = thread
            .spawn_scoped(scope, work)
            .map_err(|error| StoreError::Impossible { what: "thread", detail: error.to_string() })?;
        thread.join().map_err(|panic| std::panic::resume_unwind(panic))
    })
}

/// The same as long as there are answers. A server that stays silent keeps the thread, which ends with its connection or with
/// the process: nobody waits for it, and there is no result.
pub(super) fn within<T: Send + 'static>(
    silence: Duration,
    answers: &Answers,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Option<T>, StoreError> {
    let (send, receive) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name("togl-postgres".to_owned());
    let no_thread = |detail: String| StoreError::Impossible { what: "thread", detail };
    let started = thread.spawn(move || _ = send.send(work())); // whoever gave up does not want to know
    started.map_err(|error| no_thread(error.to_string()))?;
    let mut heard = answers.count();
    loop {
        match receive.recv_timeout(silence) {
            Ok(result) => return Ok(Some(result)),
            Err(RecvTimeoutError::Timeout) if answers.count() > heard => heard = answers.count(),
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => return Err(no_thread("it panicked".to_owned())),
        }
    }
}

/// What is said about a server that says nothing.
pub(super) fn silent(silence: Duration) -> String {
    format!("no answer for {} seconds", silence.as_secs_f64())
}
