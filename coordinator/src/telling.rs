//! What is told of a fact when it is stored: a note in the history of its fold, a line for operators, a number for those who
//! watch. Only words; who keeps or shows them is elsewhere.

use std::borrow::Cow;

use togl_scheduler::{
    Change, DataChange, Ending, FleetChange, FoldChange, Steered, SweepChange, TrialChange,
};
use togl_sweeps::{Attempt, FailureClass, FoldKey};

/// What a fact adds to the history of a fold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Note<'a> {
    pub(crate) fold: &'a FoldKey,
    pub(crate) event: &'static str,
    pub(crate) attempt: Option<Attempt>,
    pub(crate) detail: Cow<'a, str>,
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
        | Change::Fleet(_)
        | Change::Steered(_) => None,
    }
}

/// Event, attempt and detail.
fn words(change: &FoldChange) -> (&'static str, Option<Attempt>, Cow<'_, str>) {
    match change {
        FoldChange::Added => ("submitted", None, "".into()),
        FoldChange::Issued { attempt, host, .. } => ("leased", Some(*attempt), format!("on {host}").into()),
        FoldChange::Adopted { attempt, host, .. } => {
            ("imported", Some(*attempt), format!("trained on {host}, under another coordinator").into())
        }
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

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// There is work to hand out.
    Submitted,
    /// A lease was given.
    Leased,
    /// A lease ended because its worker was lost.
    Expired,
    /// A fold has its result.
    Accepted,
    /// A fold has a further result.
    Replicate,
    /// An attempt reported twice, differently.
    Conflict,
    /// A fold was given up.
    Failed,
}

/// As what a fact is counted, if it is.
pub(crate) fn counted(change: &Change) -> Option<Counted> {
    match change {
        Change::Sweep(SweepChange::Saved(_)) | Change::Fold(_, FoldChange::Retried) => {
            Some(Counted::Submitted)
        }
        Change::Fold(_, FoldChange::Issued { .. }) => Some(Counted::Leased),
        Change::Fold(_, FoldChange::Ended { ending: Ending::Failed(FailureClass::WorkerLost), .. }) => {
            Some(Counted::Expired)
        }
        Change::Fold(_, FoldChange::Finished { .. }) => Some(Counted::Accepted),
        Change::Fold(_, FoldChange::Replicate { .. }) => Some(Counted::Replicate),
        Change::Fold(_, FoldChange::Conflict { .. }) => Some(Counted::Conflict),
        Change::Fold(_, FoldChange::Failed(_)) => Some(Counted::Failed),
        Change::Fold(
            _,
            FoldChange::Added
            | FoldChange::Adopted { .. }
            | FoldChange::Revived { .. }
            | FoldChange::Ended { .. }
            | FoldChange::SetAside,
        )
        | Change::Sweep(
            SweepChange::Gathered { .. } | SweepChange::StateSet { .. } | SweepChange::PrioritySet { .. },
        )
        | Change::Trial(..)
        | Change::Data(_)
        | Change::Fleet(_)
        | Change::Steered(_) => None,
    }
}

/// What an operator may want to read about.
pub(crate) fn log(change: &Change) {
    match change {
        Change::Trial(_, TrialChange::Saved(_)) => {} // its sweep is told
        Change::Trial(trial, TrialChange::FloorRaised(bytes)) => {
            tracing::info!(%trial, bytes, "needs more memory");
        }
        Change::Fold(fold, change) => log_fold(fold, change),
        Change::Sweep(change) => log_sweep(change),
        Change::Data(change) => log_data(change),
        Change::Fleet(change) => log_fleet(change),
        Change::Steered(steered) => log_steered(steered),
    }
}

fn log_fold(fold: &FoldKey, change: &FoldChange) {
    match change {
        FoldChange::Added | FoldChange::Retried => {} // too many, and somebody asked for them
        FoldChange::Issued { attempt, worker, .. } => tracing::debug!(%fold, %attempt, %worker, "leased"),
        FoldChange::Adopted { attempt, worker, .. } => tracing::debug!(%fold, %attempt, %worker, "imported"),
        FoldChange::Revived { attempt } => tracing::info!(%fold, %attempt, "lease goes on"),
        FoldChange::Ended { attempt, ending, message } => {
            tracing::info!(%fold, %attempt, %ending, message, "attempt ended without a result");
        }
        FoldChange::Failed(failure) => {
            tracing::warn!(%fold, class = %failure.class, message = failure.message, "fold failed");
        }
        FoldChange::Finished { attempt, worker, .. } => {
            tracing::debug!(%fold, %attempt, %worker, "finished");
        }
        FoldChange::SetAside => tracing::info!(%fold, "result set aside"),
        FoldChange::Replicate { attempt, worker, agrees, .. } => {
            tracing::info!(%fold, %attempt, %worker, agrees, "replicate kept");
        }
        FoldChange::Conflict { attempt, worker, .. } => {
            tracing::warn!(%fold, %attempt, %worker, "the same attempt reported different numbers");
        }
    }
}

fn log_sweep(change: &SweepChange) {
    match change {
        SweepChange::Gathered { .. } => {} // told when it is saved
        SweepChange::Saved(sweep) => {
            tracing::info!(sweep = %sweep.name, folds = sweep.folds.len(), "sweep submitted");
        }
        SweepChange::StateSet { sweep, state, note } => {
            let note = note.as_deref().unwrap_or_default();
            tracing::info!(%sweep, %state, note, "sweep changed");
        }
        SweepChange::PrioritySet { sweep, priority } => tracing::info!(%sweep, priority, "sweep changed"),
    }
}

fn log_data(change: &DataChange) {
    match change {
        DataChange::Pinned { data, digest } => tracing::info!(data, digest, "data set is known"),
        DataChange::Disputed { data, fold, digest } => {
            tracing::warn!(data, %fold, digest, "a result comes from other data; an operator must decide");
        }
        DataChange::Settled { data, digest } => tracing::info!(data, digest, "dispute about data is settled"),
    }
}

fn log_fleet(change: &FleetChange) {
    match change {
        FleetChange::Drained { worker, .. } => tracing::info!(%worker, "draining"),
        FleetChange::Undrained { worker } => tracing::info!(%worker, "no longer draining"),
        FleetChange::Quarantined { host, reason } => tracing::warn!(host, %reason, "host quarantined"),
        FleetChange::Released { host } => tracing::info!(host, "quarantine ended"),
    }
}

fn log_steered(Steered { by, act, about, detail }: &Steered) {
    let (act, about) = (act.as_str(), about.as_str());
    tracing::info!(by = by.name, act, about, detail, reason = by.reason, "steered");
}
