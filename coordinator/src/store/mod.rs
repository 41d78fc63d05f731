//! The store: what must outlive the process, in domain words. One trait for the driver, which writes, and one
//! for whoever reads results beside it. Back ends keep facts; they decide nothing and know no wire type.
//!
//! [`sqlite`] is the embedded default, [`postgres`] is for labs that outgrow one machine, [`memory`] is for tests;
//! one suite of contract tests runs on all. [`address`] says which one is meant, [`copy`] moves contents between them,
//! [`check`] finds what is damaged.

pub mod address;
pub mod check;
pub mod copy;
mod database;
pub mod delete;
mod facts;
pub mod history;
mod load;
mod lookup;
pub mod memory;
pub mod postgres;
mod queries;
pub mod reading;
pub mod replicates;
mod rows;
pub mod sqlite;
mod statement;
mod tables;
mod writes;

#[cfg(test)]
pub(crate) mod contract;
#[cfg(test)]
pub(crate) mod postgres_server;

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use togl_scheduler::{Change, Digest, Snapshot};
use togl_sweeps::{CheckedResult, FoldKey, FoldResult, SweepName};

use self::history::{Acted, Happened};
pub use togl_scheduler::{FoldState, SweepState};
pub use togl_sweeps::plan::FoldWord;

pub use self::lookup::{FoldLookupError, find_fold, trials_beginning};
pub use self::rows::{
    FoldAttempt, FoldDetail, FoldFilter, FoldPage, FoldQuery, LogPiece, PastWorker, ResultKind, ResultPage,
    ResultQuery, ResultRow, ResultSummary, StoredFold, StoredSweep, SweepCounts,
};

/// Bytes of trainer output that are kept for one attempt; older ones make room for newer ones.
pub const LOG_LIMIT: usize = 64 * 1024;

/// What the driver writes to. Owned by one coordinator at a time.
pub trait Store: Send {
    /// Everything the scheduler needs to start.
    fn load(&self) -> Result<Snapshot, StoreError>;

    /// Keeps these facts, all or none. When it returns, they survive a loss of power.
    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        self.commit_with_log(changes, &[])
    }

    /// The same, and in the same transaction what [`Store::append_log`] does. Facts are kept also where output cannot be.
    fn commit_with_log(&mut self, changes: &[Change], log: &[LogPiece]) -> Result<(), StoreError>;

    /// Adds output of trainers, at most [`LOG_LIMIT`] bytes an attempt. Output of attempts that were never
    /// issued is dropped.
    fn append_log(&mut self, pieces: &[LogPiece]) -> Result<(), StoreError>;

    /// Fails if somebody else has taken the store over, or could have. A commit that was kept says as much; this is for times
    /// without commits. Who is alone with its store need not be asked.
    fn still_ours(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// A random number made with the store: tells whether a report belongs here.
    fn incarnation(&self) -> u64;

    /// A way to read what was committed without stopping the writer.
    fn readers(&self) -> Arc<dyn Readers>;

    /// The state of the store now.
    fn reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        self.readers().open_reader()
    }

    /// Puts everything in order for the next start.
    fn close(self: Box<Self>) -> Result<(), StoreError>;
}

/// Where readers of a store come from.
pub trait Readers: Send + Sync {
    /// The state of the store now, as one reader sees it for as long as it lives.
    fn open_reader(&self) -> Result<Box<dyn Reader>, StoreError>;
}

/// One state of a store, whatever a coordinator commits meanwhile: everything that is asked of a reader comes from the
/// moment it was opened. What is asked for in pages goes on behind a key, so that no page counts what came before.
pub trait Reader: Send {
    /// All sweeps, in the order of their first submission.
    fn sweeps(&self) -> Result<Vec<StoredSweep>, StoreError>;

    /// What has become of the folds of a sweep. Looks at every fold.
    fn counts(&self, sweep: &SweepName) -> Result<SweepCounts, StoreError>;

    /// A page of results.
    fn results(&self, query: &ResultQuery) -> Result<ResultPage, StoreError>;

    /// The result that counts of a fold; none if it has none.
    fn result(&self, fold: &FoldKey) -> Result<Option<ResultRow>, StoreError>;

    /// A page of folds.
    fn folds(&self, query: &FoldQuery) -> Result<FoldPage, StoreError>;

    /// How many folds a query has, on all pages together. Looks at every fold.
    fn count_folds(&self, query: &FoldQuery) -> Result<u64, StoreError>;

    /// Everything about a fold; none if there is no such fold.
    fn fold(&self, fold: &FoldKey) -> Result<Option<FoldDetail>, StoreError>;

    /// The first two folds with this split and seed whose trial is between these, in order.
    fn folds_between(&self, least: &FoldKey, greatest: &FoldKey) -> Result<Vec<FoldKey>, StoreError>;

    /// How many digits of a trial's id are enough to tell all trials apart.
    fn digits(&self) -> Result<usize, StoreError>;

    /// What the trainers of a fold wrote, the first attempt first.
    fn log(&self, fold: &FoldKey) -> Result<Vec<LogPiece>, StoreError>;

    /// What happened to a fold, in order; empty if there is no such fold.
    fn history(&self, fold: &FoldKey) -> Result<Vec<Happened>, StoreError>;

    /// What people did, to this sweep or at all, in order; of more than [`history::ACTS`] acts the last ones.
    fn acts(&self, sweep: Option<&SweepName>) -> Result<Vec<Acted>, StoreError>;

    /// Everybody who ever had a fold, by name.
    fn workers(&self) -> Result<Vec<PastWorker>, StoreError>;

    /// How many transactions of a coordinator there were.
    fn transactions(&self) -> Result<u64, StoreError>;
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder is not there.
    #[error("{} does not exist; create the folder, or choose another with `--state`", path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// There is nothing to read.
    #[error("there is no store at {}", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error(
        "cannot write to {}: {source}; check its owner and permissions, or choose another with `--state`",
        path.display()
    )]
    NotWritable {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// The operating system refused reading.
    #[error("cannot read {}: {source}", path.display())]
    NotReadable {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// Somebody else has it.
    #[error(
        "another coordinator ({holder}) is using {}; stop it, or choose another store with `--state`",
        path.display()
    )]
    Locked {
        /// The store.
        path: PathBuf,
        /// `pid N`, if known.
        holder: String,
    },
    /// Not one of ours.
    #[error("{} is not a togl store; it was left untouched", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// From the future.
    #[error(
        "{} was written by a newer togl (schema {found}, this one knows up to {known}); update togl; \
         the file was left untouched", path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Damaged.
    #[error("{} is damaged ({detail}); restore it from a backup", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// Its place was taken.
    #[error(
        "{} is not the store that was served here: that one had {commits} transactions and another incarnation; put it \
         back, or restore a backup; to go on with this one, remove {}", path.display(), counter.display()
    )]
    AnotherStore {
        /// The file.
        path: PathBuf,
        /// Transactions of the one that was here.
        commits: u64,
        /// Where they are noted.
        counter: PathBuf,
    },
    /// Its log belongs to one name only.
    #[error(
        "{} has {names} names (hard links), and what is written under one may be missing under the other; keep one: \
         `find FOLDER -samefile {0}` shows them", path.display()
    )]
    ManyNames {
        /// The file.
        path: PathBuf,
        /// How many.
        names: u64,
    },
    /// Somebody else touched its files while it was served.
    #[error("{} {what}; nothing more is acknowledged; {advice}", path.display())]
    Disturbed {
        /// The file.
        path: PathBuf,
        /// What happened.
        what: &'static str,
        /// What to do.
        advice: String,
    },
    /// A stored value that cannot be what was stored.
    #[error("the store holds an impossible {what}: {detail}; restore it from a backup")]
    Impossible {
        /// What it is.
        what: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// No sweep of this name.
    #[error("there is no sweep `{name}`; {hint}")]
    UnknownSweep {
        /// As asked.
        name: String,
        /// The nearest name.
        hint: String,
    },
    /// A fold that was asked for and is not there.
    #[error(transparent)]
    Fold(#[from] FoldLookupError),
    /// The text names no store.
    #[error("`{text}` names no store: {reason}; use sqlite:PATH, postgres://USER@HOST/DATABASE or memory:")]
    Address {
        /// As given, without a password.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The server of a store does not answer.
    #[error("cannot reach the store {address}: {reason}; check that PostgreSQL runs and who may connect")]
    Unreachable {
        /// Which store.
        address: String,
        /// What was said.
        reason: String,
    },
    /// A PostgreSQL store is used by another coordinator.
    #[error(
        "another coordinator ({holder}) is using {address}; stop it, or choose another store with `--store`"
    )]
    Held {
        /// Which store.
        address: String,
        /// Who has it.
        holder: String,
    },
    /// Another coordinator took a PostgreSQL store over while this one could not reach it.
    #[error(
        "taken over: another coordinator has {address} now; this one stops, and nothing acknowledged is lost"
    )]
    TakenOver {
        /// Which store.
        address: String,
    },
    /// A PostgreSQL store that cannot be used as it is.
    #[error("{address} {problem}")]
    Unusable {
        /// Which store.
        address: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// PostgreSQL said no.
    #[error("the store {address} failed: {reason}")]
    Postgres {
        /// Which store.
        address: String,
        /// What it said.
        reason: String,
    },
    /// A copy that does not say what the original says.
    #[error("the copy differs from the original in `{table}`; it must not be used")]
    CopyDiffers {
        /// The first table that differs.
        table: &'static str,
    },
    /// A place that must be empty is not.
    #[error("{place} is not empty; {hint}")]
    NotEmpty {
        /// Which place.
        place: String,
        /// What to do.
        hint: &'static str,
    },
    /// This kind of store cannot do it.
    #[error("a store in memory cannot {0}")]
    InMemory(&'static str),
    /// SQLite said no.
    #[error("the store failed: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// A fault that a test asked for.
    #[error("the store failed: {0}")]
    Injected(&'static str),
}

impl StoreError {
    /// Whether what is stored is not what was stored: then only a backup helps.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Corrupt { .. } | Self::Impossible { .. } | Self::AnotherStore { .. } => true,
            Self::Sqlite(error) => sqlite::damage(error).is_some(),
            _ => false,
        }
    }

    /// Whether there is no room left where it is written.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Sqlite(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull))
    }
}

/// No sweep of this name, for who cannot say which one is meant.
pub(crate) fn unknown_sweep(name: &SweepName) -> StoreError {
    StoreError::UnknownSweep { name: name.to_string(), hint: "`togl sweeps` lists them".to_owned() }
}

/// A value that cannot have been stored.
pub(crate) fn impossible(what: &'static str, error: impl ToString) -> StoreError {
    StoreError::Impossible { what, detail: error.to_string() }
}

/// A stored word of a fixed list.
pub(crate) fn word<T: FromStr<Err: ToString>>(what: &'static str, text: &str) -> Result<T, StoreError> {
    text.parse().map_err(|error: T::Err| impossible(what, error))
}

/// A result as it is stored.
pub(crate) fn encode(result: &CheckedResult) -> Result<String, StoreError> {
    serde_json::to_string(result).map_err(|error| impossible("result", error))
}

/// A stored result, if its numbers are those of its digest.
pub(crate) fn decode(fold: &FoldKey, digest: Digest, body: &str) -> Result<FoldResult, StoreError> {
    let result: FoldResult = serde_json::from_str(body).map_err(|error| impossible("result", error))?;
    if Digest::of(&result) != digest {
        return Err(impossible("result", format!("the numbers of fold {fold} do not fit their digest")));
    }
    Ok(result)
}

/// Adds `more` to `text` and lets the oldest lines go if that makes it too long.
pub(crate) fn append_bounded(text: &mut String, more: &str) {
    text.push_str(more);
    if text.len() <= LOG_LIMIT {
        return;
    }
    let at_least = text.len() - LOG_LIMIT;
    let line = text.bytes().skip(at_least).position(|byte| byte == b'\n').map(|next| at_least + next + 1);
    let mut cut = line.filter(|line| *line < text.len()).unwrap_or(at_least);
    while !text.is_char_boundary(cut) {
        cut += 1;
    }
    text.drain(..cut);
}
