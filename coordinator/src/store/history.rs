//! The history of a fold: which facts are part of it and in which words. Every store appends a [`Note`] with the fact
//! it belongs to, in the same transaction, and never changes or removes one.

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
        Change::FoldFinished { fold, attempt, .. } => (fold, "accepted", Some(*attempt), "".into()),
        Change::ReplicateKept { fold, attempt, agrees, .. } => {
            let detail = if *agrees { "says the same numbers" } else { "says other numbers" };
            (fold, "replicate", Some(*attempt), detail.into())
        }
        Change::ConflictLogged { fold, attempt, .. } => {
            (fold, "conflict", Some(*attempt), "the attempt reported other numbers before".into())
        }
        Change::ResultSetAside { fold } => {
            (fold, "set-aside", None, "its result comes from other data".into())
        }
        Change::DataDisputed { fold, data, .. } => {
            (fold, "disputed", None, format!("other {data} than before").into())
        }
        _ => return None, // sweeps, trials, data sets, workers and hosts have no history
    };
    Some(Note { fold, event, attempt, detail })
}
