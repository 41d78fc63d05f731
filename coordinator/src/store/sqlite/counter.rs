//! The number of the last transaction, beside the store. SQLite takes a log that is missing or damaged for one that
//! ends earlier, and the newest results would silently be gone. The store counts its transactions; so does this file,
//! written after each of them. A store that knows of fewer has lost some, and is refused.
//!
//! The file is not flushed: after a loss of power it may be behind, which only means that it proves less. A file that
//! cannot be read proves nothing and keeps nobody from working.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::super::StoreError;
use super::place::beside;

const LENGTH: usize = 24;

/// The count of a store that is being served.
#[derive(Debug)]
pub(super) struct Counter {
    file: File,
    incarnation: u64,
}

/// Where it is.
pub(super) fn path(store: &Path) -> PathBuf {
    beside(store, "-commits")
}

impl Counter {
    /// Opens the count, or begins one.
    pub(super) fn open(store: &Path, incarnation: u64, commits: u64) -> Result<Self, StoreError> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path(store));
        let file = file.map_err(|source| StoreError::NotWritable { path: path(store), source })?;
        let counter = Self { file, incarnation };
        counter.set(commits);
        Ok(counter)
    }

    /// Notes that there were so many transactions. The store is right even where this fails.
    pub(super) fn set(&self, commits: u64) {
        let noted: io::Result<()> = self.file.write_all_at(&encode(self.incarnation, commits), 0);
        if let Err(error) = noted {
            tracing::warn!(%error, "cannot note the number of the last transaction");
        }
    }
}

fn encode(incarnation: u64, commits: u64) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[..8].copy_from_slice(&incarnation.to_le_bytes());
    bytes[8..16].copy_from_slice(&commits.to_le_bytes());
    let digest = blake3::hash(&bytes[..16]);
    bytes[16..].copy_from_slice(&digest.as_bytes()[..8]);
    bytes
}

/// What was noted last: incarnation and transactions. Read it before the store: the store may be ahead, never behind.
pub(super) fn noted(store: &Path) -> Option<(u64, u64)> {
    let bytes: [u8; LENGTH] = fs::read(path(store)).ok()?.try_into().ok()?;
    let number = |at: usize| Some(u64::from_le_bytes(bytes[at..at + 8].try_into().ok()?));
    let (incarnation, commits) = (number(0)?, number(8)?);
    (encode(incarnation, commits) == bytes).then_some((incarnation, commits))
}

/// Refuses to begin anew where a store has been.
pub(super) fn check_gone(store: &Path) -> Result<(), StoreError> {
    match noted(store) {
        Some((_, commits)) if commits > 0 => Err(StoreError::Corrupt {
            path: store.to_owned(),
            detail: format!(
                "it is empty or gone, and there were {commits} transactions in it; to begin anew, remove {}",
                path(store).display()
            ),
        }),
        _ => Ok(()),
    }
}

/// Refuses a store that has lost transactions since `noted`.
pub(super) fn check(
    store: &Path,
    noted: Option<(u64, u64)>,
    incarnation: u64,
    commits: u64,
) -> Result<(), StoreError> {
    match noted {
        Some((whose, known)) if whose == incarnation && known > commits => Err(StoreError::Corrupt {
            path: store.to_owned(),
            detail: format!(
                "its last {} transactions are missing: the file `-wal` beside it was lost or damaged, or the store \
                 is an old copy, which `togl restore` would put in place; to go on without them, remove {}",
                known - commits,
                path(store).display()
            ),
        }),
        _ => Ok(()),
    }
}
