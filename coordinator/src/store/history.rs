//! The history of a fold: which facts are part of it and in which words. Every store appends a [`Note`] with the fact
//! it belongs to, in the same transaction, and never changes or removes one. What happens to every fold is told by
//! the rows that it leaves anyway, so the stores need no note for it.

use std::borrow::Cow;

use togl_scheduler::Change;
use togl_sweeps::{Attempt, FoldKey, WorkerId};

/// Something that happened to a fold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happened {
    /// Milliseconds since 1970, by the clock of the coordinator at that time.
    pub at: i64,
    /// One of the words below.
    pub event: String,
    /// Which attempt is concerned.
    pub attempt: Option<Attempt>,
    /// Who had that attempt.
    pub worker: Option<WorkerId>,
    /// For people; may be empty.
    pub detail: String,
}

/// What a fact adds to the history of a fold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Note<'a> {
    pub(crate) fold: &'a FoldKey,
    pub(crate) event: &'static str,
    pub(crate) attempt: Option<Attempt>,
    pub(crate) detail: Cow<'a, str>,
}

/// Bits of the numbers of a history that count within a transaction; the others are the number of the transaction. Numbers
/// only grow, so a history is in order without looking at what it has.
const WITHIN: u32 = 24;

/// The number of the first thing that happens in a transaction.
pub(crate) fn first_number(transaction: u64) -> i64 {
    transaction.cast_signed() << WITHIN
}

/// Whether the row that a fact leaves says when it happened: an attempt that it was leased, a result that it was accepted.
pub(crate) fn is_dated(change: &Change) -> bool {
    matches!(change, Change::AttemptIssued { .. } | Change::FoldFinished { .. })
}

/// The note that belongs to a fact; none if it is not about one fold.
pub(crate) fn note(change: &Change) -> Option<Note<'_>> {
    let (fold, event, attempt, detail) = match change {
        Change::FoldAdded { fold } => (fold, "submitted", None, "".into()),
        Change::AttemptIssued { fold, attempt, host, .. } => {
            (fold, "leased", Some(*attempt), format!("on {host}").into())
        }
        Change::LeaseRevived { fold, attempt } => {
            (fold, "revived", Some(*attempt), "its worker came back in time".into())
        }
        Change::AttemptEnded { fold, attempt, ending, message } => {
            (fold, "ended", Some(*attempt), format!("{ending}: {message}").into())
        }
        Change::FoldFailed { fold, failure } => {
            (fold, "failed", None, format!("{}: {}", failure.class, failure.message).into())
        }
        Change::FoldRetried { fold } => (fold, "retried", None, "somebody asked for it".into()),
        Change::ResultSetAside { fold } => {
            (fold, "set-aside", None, "its result comes from other data".into())
        }
        Change::DataDisputed { fold, data, .. } => {
            (fold, "disputed", None, format!("other {data} than before").into())
        }
        other => return note_of_result(other),
    };
    Some(Note { fold, event, attempt, detail })
}

/// The same for facts about results, and for those that are about no fold.
fn note_of_result(change: &Change) -> Option<Note<'_>> {
    let (fold, event, attempt, detail) = match change {
        Change::FoldFinished { fold, attempt, .. } => (fold, "accepted", attempt, ""),
        Change::ReplicateKept { fold, attempt, agrees: true, .. } => {
            (fold, "replicate", attempt, "says the same numbers")
        }
        Change::ReplicateKept { fold, attempt, agrees: false, .. } => {
            (fold, "replicate", attempt, "says other numbers")
        }
        Change::ConflictLogged { fold, attempt, .. } => {
            (fold, "conflict", attempt, "the attempt reported other numbers before")
        }
        _ => return None,
    };
    Some(Note { fold, event, attempt: Some(*attempt), detail: detail.into() })
}
