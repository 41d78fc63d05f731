//! The number of the last transaction, beside the store. SQLite takes a log that is missing or damaged for one that
//! ends earlier, and the newest results would silently be gone. The store counts its transactions; so does this file,
//! written after each of them. A store that knows of fewer has lost some, one of another incarnation is another one, and
//! a file that knew of more without its log is an older one: all are refused.
//!
//! The count is not flushed: after a loss of power it may be behind, which only means that it proves less. One that
//! cannot be read proves nothing and keeps nobody from working.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::super::StoreError;
use super::place::beside;
use super::schema;
use crate::private;

/// Bytes of the numbers and their digest; an older count had two numbers.
const LENGTH: usize = 32;
const OLDER: usize = 24;

/// Instead of a number: somebody else wrote to the store while it was served.
const SPOILT: u64 = u64::MAX;

/// What is noted about a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Noted {
    pub(super) incarnation: u64,
    /// Transactions so far.
    pub(super) commits: u64,
    /// Those that are in the store even without its log.
    in_file: u64,
}

/// The count of a store that is being served.
#[derive(Debug)]
pub(super) struct Counter {
    file: File,
    noted: Noted,
}

/// Where it is.
pub(super) fn path(store: &Path) -> PathBuf {
    beside(store, "-commits")
}

impl Counter {
    /// Opens the count, or begins one.
    pub(super) fn open(store: &Path, incarnation: u64, commits: u64) -> Result<Self, StoreError> {
        let file = private::options().write(true).create(true).truncate(false).open(path(store));
        let file = file.map_err(|source| StoreError::NotWritable { path: path(store), source })?;
        let mut counter = Self { file, noted: Noted { incarnation, commits, in_file: 0 } };
        counter.look_into(store);
        counter.set(commits);
        Ok(counter)
    }

    /// Finds out what is in the store without its log, which has just been copied into it.
    pub(super) fn look_into(&mut self, store: &Path) {
        if let Some((_, commits)) = schema::identity_without_log(store) {
            self.noted.in_file = commits;
        }
    }

    /// Notes that there were so many transactions. The store is right even where this fails.
    pub(super) fn set(&mut self, commits: u64) {
        self.noted.commits = commits;
        if let Err(error) = self.file.write_all_at(&encode(self.noted), 0) {
            tracing::warn!(%error, "cannot note the number of the last transaction");
        }
    }

    /// Notes that the store must not be used any more.
    pub(super) fn condemn(&mut self) {
        self.set(SPOILT);
    }
}

fn encode(noted: Noted) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    for (number, place) in
        [noted.incarnation, noted.commits, noted.in_file].into_iter().zip(bytes.chunks_mut(8))
    {
        place.copy_from_slice(&number.to_le_bytes());
    }
    let digest = blake3::hash(&bytes[..LENGTH - 8]);
    bytes[LENGTH - 8..].copy_from_slice(&digest.as_bytes()[..8]);
    bytes
}

/// What was noted last. Read it before the store: the store may be ahead, never behind.
pub(super) fn noted(store: &Path) -> Option<Noted> {
    let bytes = fs::read(path(store)).ok().filter(|bytes| matches!(bytes.len(), OLDER | LENGTH))?;
    let (numbers, digest) = bytes.split_last_chunk::<8>()?;
    if blake3::hash(numbers).as_bytes()[..8] != digest[..] {
        return None;
    }
    let number = |at: usize| Some(u64::from_le_bytes(numbers.get(at..at + 8)?.try_into().ok()?));
    Some(Noted { incarnation: number(0)?, commits: number(8)?, in_file: number(16).unwrap_or(0) })
}

/// Refuses to begin anew where a store has been.
pub(super) fn check_gone(store: &Path) -> Result<(), StoreError> {
    match noted(store) {
        Some(Noted { commits, .. }) if commits > 0 => Err(StoreError::Corrupt {
            path: store.to_owned(),
            detail: format!(
                "it is empty or gone, and there were {commits} transactions in it; to begin anew, remove {}",
                path(store).display()
            ),
        }),
        _ => Ok(()),
    }
}

/// Refuses a store that is not the one, or not all of the one, that was noted.
pub(super) fn check(
    store: &Path,
    noted: Option<Noted>,
    incarnation: u64,
    commits: u64,
) -> Result<(), StoreError> {
    let Some(noted) = noted else { return Ok(()) };
    let counter = path(store);
    let corrupt = |what: String| {
        let detail = format!("{what}; to use it as it is, remove {}", counter.display());
        Err(StoreError::Corrupt { path: store.to_owned(), detail })
    };
    if noted.commits == SPOILT {
        return corrupt("another program wrote to it while it was served".to_owned());
    }
    if noted.incarnation != incarnation && noted.commits > 0 {
        let (path, commits) = (store.to_owned(), noted.commits);
        return Err(StoreError::AnotherStore { path, commits, counter });
    }
    if noted.incarnation == incarnation && noted.commits > commits {
        return corrupt(format!(
            "its last {} transactions are missing: the file `-wal` beside it was lost or damaged, or the store is an \
             old copy, which `togl restore` would put in place",
            noted.commits - commits,
        ));
    }
    let alone = schema::identity_without_log(store).filter(|_| noted.incarnation == incarnation);
    match alone.filter(|alone| *alone < (incarnation, noted.in_file) || alone.0 != incarnation) {
        Some(_) => corrupt("it is older than the log beside it: an old copy was put in its place".to_owned()),
        None => Ok(()),
    }
}
