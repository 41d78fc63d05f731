//! Which store is meant: `sqlite:PATH`, `postgres://USER@HOST/DATABASE` or `memory:`. Owns the spelling and picks the
//! back end; never shows a password.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ::postgres::Config;
use ::postgres::config::Host;

use super::memory::MemoryStore;
use super::postgres::{self, PostgresAccess, PostgresStore};
use super::sqlite::{self, SqliteStore};
use super::{Reader, Readers, Store, StoreError};

/// A store that can be opened.
#[derive(Debug, Clone)]
pub enum StoreAddress {
    /// A file on this machine.
    Sqlite(PathBuf),
    /// The schema `togl` of a database.
    Postgres(Box<PostgresAccess>),
    /// Gone when it is closed.
    Memory,
}

impl StoreAddress {
    /// Opens the store for one coordinator, making it if it is not there. Everybody else is kept away.
    pub fn open(&self) -> Result<Box<dyn Store>, StoreError> {
        Ok(match self {
            Self::Sqlite(path) => Box::new(SqliteStore::open(path)?),
            Self::Postgres(access) => Box::new(PostgresStore::open(access)?),
            Self::Memory => Box::new(MemoryStore::default()),
        })
    }
}

impl Readers for StoreAddress {
    fn open_reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        Ok(match self {
            Self::Sqlite(path) => Box::new(sqlite::open_read_only(path)?.hold()?),
            Self::Postgres(access) => Box::new(postgres::open_read_only(access)?.hold()?),
            Self::Memory => return Err(StoreError::InMemory("be read by another process")),
        })
    }
}

impl From<&Path> for StoreAddress {
    fn from(path: &Path) -> Self {
        Self::Sqlite(path.to_owned())
    }
}

impl From<&PathBuf> for StoreAddress {
    fn from(path: &PathBuf) -> Self {
        Self::Sqlite(path.clone())
    }
}

impl FromStr for StoreAddress {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let refuse = |text: &str, reason: &str| StoreError::Address {
            text: text.to_owned(),
            reason: reason.to_owned(),
        };
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(refuse(text, "it does not say which kind"));
        };
        match scheme {
            "sqlite" if rest.is_empty() => Err(refuse(text, "the path is missing")),
            "sqlite" => Ok(Self::Sqlite(rest.into())),
            "memory" if rest.is_empty() => Ok(Self::Memory),
            "postgres" | "postgresql" => {
                let settings = if rest.starts_with("//") { text } else { rest };
                // The text may hold a password: it is not repeated.
                let access: PostgresAccess =
                    settings.parse().map_err(|reason: String| refuse("postgres:...", &reason))?;
                Ok(Self::Postgres(Box::new(access)))
            }
            _ => Err(refuse(scheme, "there is no such kind")),
        }
    }
}

/// An error of PostgreSQL with its causes, in one line.
pub(super) fn said(error: &::postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = inner.source();
    }
    text
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(access) => f.write_str(&shown(access)),
            Self::Memory => f.write_str("memory:"),
        }
    }
}

/// The address of a PostgreSQL store as people may see it.
pub(super) fn shown(config: &Config) -> String {
    let mut text = "postgres://".to_owned();
    if let Some(user) = config.get_user() {
        text = format!("{text}{user}@");
    }
    let host = config.get_hosts().first().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    });
    text.push_str(&host.unwrap_or_default());
    if let Some(port) = config.get_ports().first() {
        text = format!("{text}:{port}");
    }
    match config.get_dbname() {
        Some(name) => format!("{text}/{name}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match text.parse::<StoreAddress>() {
            Ok(address) => address.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn addresses_read_back() {
        for text in ["sqlite:/a b/c.sqlite", "sqlite:relative", "memory:", "postgres://me@db.lab:5433/togl"] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(shown("postgres:host=db user=me dbname=sweeps"), "postgres://me@db/sweeps");
    }

    #[test]
    fn passwords_are_never_shown() {
        for text in [
            "postgres://me:secret@db/togl",
            "postgres:host=db user=me password=secret",
            "postgres://me:secret@db:x/y",
            "postgres:host=db password='secret",
        ] {
            assert!(!shown(text).contains("secret"), "{}", shown(text));
        }
    }

    #[test]
    fn what_names_no_store_is_refused_with_the_forms_that_do() {
        for text in ["store.sqlite", "sqlite:", "mysql://x", "memory:x", "postgres:port=x", ""] {
            let message = shown(text);
            assert!(message.contains("names no store"), "{message}");
            assert!(
                message.ends_with("use sqlite:PATH, postgres://USER@HOST/DATABASE or memory:"),
                "{message}"
            );
        }
    }
}
