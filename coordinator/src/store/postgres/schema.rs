//! Which version of the tables a database has, how an older one becomes a newer one, and how a database is recognised as ours.

use ::postgres::{Client, GenericClient, IsolationLevel};

use super::super::StoreError;
use super::super::database::Postgres;
use super::super::tables::{self, Dialect, LAST_STEP};
use super::Failed;

/// Steps that were taken before there were stores in PostgreSQL: the first version has them all.
const BEFORE: u32 = 3;

/// The version that this program writes.
const KNOWN: i64 = (LAST_STEP - BEFORE) as i64;

fn unusable(problem: impl Into<String>) -> Failed {
    Failed::Refused(StoreError::Unusable { address: String::new(), problem: problem.into() })
}

/// Settings of a session: our tables, and nothing acknowledged before it is on disk.
pub(super) fn configure(client: &mut Client) -> Result<(), Failed> {
    // The keepalives are the server's: the lock of a coordinator whose machine is gone is free after 11 seconds.
    client.batch_execute(
        "SET search_path TO togl; SET lock_timeout TO '20s'; SET jit TO off; SET tcp_user_timeout TO '11s';
         SET tcp_keepalives_idle TO 5; SET tcp_keepalives_interval TO 2; SET tcp_keepalives_count TO 3",
    )?;
    let durable: String = client.query_one("SHOW synchronous_commit", &[])?.try_get(0)?;
    if durable == "off" {
        client.batch_execute("SET synchronous_commit TO on")?;
    }
    Ok(())
}

/// Refuses a database that holds no store, or one that is not ours or newer than we are; changes nothing.
pub(super) fn recognise(client: &mut Client) -> Result<(), Failed> {
    match version(client)? {
        Some(version) => check(version)?,
        None => return Err(unusable("holds no store; start a coordinator on it first")),
    }
    configure(client)
}

fn check(found: i64) -> Result<(), Failed> {
    if found > KNOWN {
        return Err(unusable(format!(
            "was written by a newer togl (schema {found}, this one knows up to {KNOWN}); update togl; \
             the store was left untouched"
        )));
    }
    Ok(())
}

/// The version of the store; none if there is no store yet.
fn version(client: &mut Client) -> Result<Option<i64>, Failed> {
    let sql = "SELECT to_regnamespace('togl') IS NOT NULL, to_regclass('togl.schema_version') IS NOT NULL,
                   EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace('togl'))";
    let row = client.query_one(sql, &[])?;
    let (named, ours, filled): (bool, bool, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    match (named, ours, filled) {
        (true, true, _) => {
            let sql = "SELECT coalesce(max(version), 0) FROM togl.schema_version";
            Ok(Some(client.query_one(sql, &[])?.try_get(0)?))
        }
        (true, false, true) => {
            Err(unusable("has a schema `togl` that is not a togl store; it was left untouched"))
        }
        _ => Ok(None),
    }
}

/// Makes the store if it is not there and brings it to the version of this program.
pub(super) fn prepare(
    client: &mut Client,
    incarnation: impl FnOnce() -> Result<i64, StoreError>,
) -> Result<(), Failed> {
    let found = version(client)?;
    check(found.unwrap_or(0))?;
    check_server(client)?;
    let mut transaction = client.build_transaction().isolation_level(IsolationLevel::Serializable).start()?;
    if found.is_none() {
        transaction.batch_execute(
            "CREATE SCHEMA IF NOT EXISTS togl;
             CREATE TABLE togl.schema_version (version BIGINT NOT NULL PRIMARY KEY)",
        )?;
    }
    transaction.batch_execute("SET LOCAL search_path TO togl")?;
    for step in 1..=LAST_STEP {
        let version = i64::from(step) - i64::from(BEFORE);
        if version.max(1) <= found.unwrap_or(0) {
            continue;
        }
        transaction.batch_execute(&tables::step(step, Dialect::Postgres))?;
        if step == tables::RACING {
            tables::score(&mut Postgres(&mut transaction))?;
        }
        if version > 0 {
            transaction.execute("INSERT INTO schema_version VALUES ($1)", &[&version])?;
        }
    }
    if found.is_none() {
        let incarnation = incarnation()?;
        transaction.batch_execute("ALTER TABLE store ADD COLUMN holder BIGINT NOT NULL DEFAULT 0")?;
        transaction.execute("INSERT INTO store VALUES ($1, 0, 0)", &[&incarnation])?;
    }
    tables::respell(&mut Postgres(&mut transaction))?;
    crate::crash::point("step-written");
    transaction.commit()?;
    crate::crash::point("step-taken");
    configure(client)
}

/// Refuses a database that cannot hold our text, and warns of a server that does not keep its promises.
fn check_server(client: &mut impl GenericClient) -> Result<(), Failed> {
    let encoding: String = client.query_one("SHOW server_encoding", &[])?.try_get(0)?;
    if encoding != "UTF8" {
        return Err(unusable(format!(
            "has the encoding {encoding}; make one with `createdb --encoding=UTF8 --template=template0 NAME`"
        )));
    }
    let flushed: String = client.query_one("SHOW fsync", &[])?.try_get(0)?;
    if flushed == "off" {
        tracing::warn!(
            "the PostgreSQL server runs with fsync=off: a loss of power can lose acknowledged results"
        );
    }
    Ok(())
}
