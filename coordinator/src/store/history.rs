//! The history of a fold, and that of what people did, as they are read and in which order. Every store appends a note with the
//! fact it belongs to (`telling` has the words), in the same transaction, and never changes or removes one.

use togl_sweeps::{Attempt, WorkerId};

/// Something that happened to a fold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happened {
    /// Milliseconds since 1970, by the clock of the coordinator at that time.
    pub at: i64,
    /// In one word.
    pub event: String,
    /// Which attempt is concerned.
    pub attempt: Option<Attempt>,
    /// Who had that attempt.
    pub worker: Option<WorkerId>,
    /// For people; may be empty.
    pub detail: String,
}

/// Something that somebody did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acted {
    /// Milliseconds since 1970, by the clock of the coordinator at that time.
    pub at: i64,
    /// What his token was called then.
    pub by: String,
    /// In one word, that of the command.
    pub act: String,
    /// To which sweep, worker or data set.
    pub about: String,
    /// What it led to, for people; may be empty.
    pub detail: String,
    /// Why; may be empty.
    pub reason: String,
}

/// What people did is told back to so many acts.
pub const ACTS: usize = 1_000;

/// Bits of the numbers of a history that count within a transaction; the others are the number of the transaction. Numbers
/// only grow, so a history is in order without looking at what it has.
const WITHIN: u32 = 24;

/// The number of the first thing that happens in a transaction.
pub(crate) fn first_number(transaction: u64) -> i64 {
    transaction.cast_signed() << WITHIN
}
