//! The history of a fold: which facts are part of it and in which words. Every store appends a [`Note`] with the fact
//! it belongs to, in the same transaction, and never changes or removes one. What happens to every fold is told by
//! the rows that it leaves anyway, so the stores need no note for it.

use std::borrow::Cow;

use togl_scheduler::{Change, DataChange, FoldChange};
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
    matches!(change, Change::Fold(_, FoldChange::Issued { .. } | FoldChange::Finished { .. }))
}

/// The note that belongs to a fact; none if it is not about one fold.
pub(crate) fn note(change: &Change) -> Option<Note<'_>> {
    match change {
        Change::Fold(fold, change) => {
            let (event, attempt, detail) = words(change);
            Some(Note { fold, event, attempt, detail })
        }
        Change::Data(DataChange::Disputed { fold, data, .. }) => {
            let detail = format!("other {data} than before").into();
            Some(Note { fold, event: "disputed", attempt: None, detail })
        }
        Change::Data(DataChange::Pinned { .. } | DataChange::Settled { .. })
        | Change::Trial(..)
        | Change::Sweep(_)
        | Change::Fleet(_) => None,
    }
}

/// Event, attempt and detail.
fn words(change: &FoldChange) -> (&'static str, Option<Attempt>, Cow<'_, str>) {
    match change {
        FoldChange::Added => ("submitted", None, "".into()),
        FoldChange::Issued { attempt, host, .. } => ("leased", Some(*attempt), format!("on {host}").into()),
        FoldChange::Revived { attempt } => ("revived", Some(*attempt), "its worker came back in time".into()),
        FoldChange::Ended { attempt, ending, message } => {
            ("ended", Some(*attempt), format!("{ending}: {message}").into())
        }
        FoldChange::Failed(failure) => {
            ("failed", None, format!("{}: {}", failure.class, failure.message).into())
        }
        FoldChange::Retried => ("retried", None, "somebody asked for it".into()),
        FoldChange::SetAside => ("set-aside", None, "its result comes from other data".into()),
        FoldChange::Finished { attempt, .. } => ("accepted", Some(*attempt), "".into()),
        FoldChange::Replicate { attempt, agrees, .. } => {
            let numbers = if *agrees { "says the same numbers" } else { "says other numbers" };
            ("replicate", Some(*attempt), numbers.into())
        }
        FoldChange::Conflict { attempt, .. } => {
            ("conflict", Some(*attempt), "the attempt reported other numbers before".into())
        }
    }
}
