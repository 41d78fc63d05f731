//! The list of tokens that all coordinators of one PostgreSQL store share: one row with the text that is elsewhere the file
//! `tokens.json`, and a number that grows with every change. It is no part of what a store holds: neither backups nor copies
//! have it, so none of them brings a revoked token back. Knows nothing of what the text says.

use ::postgres::Client;

use super::super::StoreError;
use super::access::PostgresAccess;
use super::link::{Failed, Link};

/// Held while the list is changed: the letters `tok`.
const CHANGING: i64 = 0x74_6f6b;

/// A list as it was read, and its number.
pub(crate) type Numbered = (i64, Vec<u8>);

/// A connection for the list alone.
#[derive(Debug)]
pub(crate) struct SharedTokens(Link);

impl SharedTokens {
    pub(crate) fn connect(access: &PostgresAccess) -> Result<Self, StoreError> {
        Ok(Self(Link::connect(access)?))
    }

    /// The list, if there is one with another number than `known`.
    pub(crate) fn other_than(&mut self, known: i64) -> Result<Option<Numbered>, StoreError> {
        self.0.with(|client| {
            if !is_there(client)? {
                return Ok(None);
            }
            let row =
                client.query_opt("SELECT number, list FROM togl.tokens WHERE number <> $1", &[&known])?;
            row.map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
        })
    }

    /// Replaces the list by what `change` makes of it, unless that fails; nobody else changes it meanwhile. There is none
    /// before the first change, and no place for one before the store was made.
    pub(crate) fn change<T: Send, E: Send>(
        &mut self,
        change: impl FnOnce(Option<Vec<u8>>) -> Result<(Vec<u8>, T), E> + Send,
    ) -> Result<Result<T, E>, StoreError> {
        self.0.with(|client| {
            let store: bool =
                client.query_one("SELECT to_regclass('togl.schema_version') IS NOT NULL", &[])?.try_get(0)?;
            if !store {
                let problem = "holds no store; start a coordinator on it first".to_owned();
                return Err(StoreError::Unusable { address: String::new(), problem }.into());
            }
            let mut transaction = client.transaction()?;
            transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&CHANGING])?;
            transaction.batch_execute(
                "SET LOCAL client_min_messages TO warning;
                 CREATE TABLE IF NOT EXISTS togl.tokens (number BIGINT NOT NULL, list BYTEA NOT NULL)",
            )?;
            let row = transaction.query_opt("SELECT number, list FROM togl.tokens", &[])?;
            let before: Option<Numbered> =
                row.map(|row| Ok::<_, ::postgres::Error>((row.try_get(0)?, row.try_get(1)?))).transpose()?;
            let (number, list) = before.map_or((0, None), |(number, list)| (number, Some(list)));
            let (list, result) = match change(list) {
                Ok(changed) => changed,
                Err(error) => return Ok(Err(error)), // the transaction ends with nothing changed
            };
            let sql = match number {
                0 => "INSERT INTO togl.tokens (number, list) VALUES ($1, $2)",
                _ => "UPDATE togl.tokens SET number = $1, list = $2",
            };
            transaction.execute(sql, &[&(number + 1), &list])?;
            transaction.commit()?;
            Ok(Ok(result))
        })
    }
}

fn is_there(client: &mut Client) -> Result<bool, Failed> {
    Ok(client.query_one("SELECT to_regclass('togl.tokens') IS NOT NULL", &[])?.try_get(0)?)
}
