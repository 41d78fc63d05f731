//! One round of the driver: mail that shares a transaction. Collects decisions and who waits for them, writes
//! once, and answers afterwards, so that nobody hears of anything that is not stored. Output of trainers shares the
//! transaction, but only so much of it that nobody waits for it. Used by the driver only.

use std::sync::Arc;

use togl_scheduler::{
    Change, DataChange, Event, FleetChange, FoldChange, Rejection, Reply, Scheduler, SweepChange, Timestamp,
    TrialChange,
};
use togl_sweeps::FoldKey;
use tokio::sync::oneshot;

use super::handle::{CallError, Mail};
use crate::store::{LogPiece, Store, StoreError};

/// Pieces of output that are written with decisions. More than that is written when everybody has heard.
const ALONG: usize = 64;

/// What was decided about one event.
type Answer = Result<Reply, Rejection>;

/// Somebody who waits, and what he will hear.
struct Waiting {
    reply: oneshot::Sender<Result<Vec<Answer>, CallError>>,
    answers: Vec<Answer>,
}

#[derive(Default)]
pub(super) struct Batch {
    changes: Vec<Change>,
    waiting: Vec<Waiting>,
    logs: Vec<LogPiece>,
    stops: Vec<oneshot::Sender<()>>,
}

impl Batch {
    /// Decides about one piece of mail.
    pub(super) fn take(&mut self, mail: Mail, scheduler: &mut Scheduler, now: Timestamp) {
        match mail {
            Mail::Call { events, reply } => {
                let answers = events.into_iter().map(|event| self.decide(scheduler, now, event)).collect();
                self.waiting.push(Waiting { reply, answers });
            }
            Mail::Log { worker, piece } => {
                if scheduler.has_issued(&piece.fold, piece.attempt, &worker) {
                    self.logs.push(piece);
                }
            }
            Mail::Stop(done) => self.stops.push(done),
        }
    }

    /// Asks the scheduler and keeps what must be stored.
    pub(super) fn decide(&mut self, scheduler: &mut Scheduler, now: Timestamp, event: Event) -> Answer {
        let outcome = scheduler.handle(now, event)?;
        self.changes.extend(outcome.changes);
        Ok(outcome.reply)
    }

    /// Writes everything in one transaction; nothing to write costs nothing.
    pub(super) fn store(&mut self, store: &mut dyn Store) -> Result<(), StoreError> {
        if self.changes.is_empty() {
            return Ok(());
        }
        let later = self.logs.split_off(self.logs.len().min(ALONG));
        let along = std::mem::replace(&mut self.logs, later);
        crate::crash::point("commit");
        store.commit_with_log(&self.changes, &along)
    }

    /// Tells everybody that nothing was stored.
    pub(super) fn fail(self, error: &Arc<StoreError>) {
        for waiting in self.waiting {
            _ = waiting.reply.send(Err(CallError::Store(error.clone()))); // gone callers do not mind
        }
    }

    /// Lets everybody hear. Says whether somebody asked to stop.
    pub(super) fn finish(self, store: &mut dyn Store) -> bool {
        for change in &self.changes {
            log(change);
        }
        crate::crash::point("ack");
        for Waiting { reply, answers } in self.waiting {
            _ = reply.send(Ok(answers)); // a caller that went away asks again
        }
        crate::crash::point("acked");
        if !self.logs.is_empty()
            && let Err(error) = store.append_log(&self.logs)
        {
            tracing::warn!(%error, "trainer output was not kept");
        }
        let stopping = !self.stops.is_empty();
        for done in self.stops {
            _ = done.send(());
        }
        stopping
    }
}

/// What an operator may want to read about.
fn log(change: &Change) {
    match change {
        Change::Trial(_, TrialChange::Saved(_)) => {} // its sweep is told
        Change::Trial(trial, TrialChange::FloorRaised(bytes)) => {
            tracing::info!(%trial, bytes, "needs more memory");
        }
        Change::Fold(fold, change) => log_fold(fold, change),
        Change::Sweep(change) => log_sweep(change),
        Change::Data(change) => log_data(change),
        Change::Fleet(change) => log_fleet(change),
    }
}

fn log_fold(fold: &FoldKey, change: &FoldChange) {
    match change {
        FoldChange::Added | FoldChange::Retried => {} // too many, and somebody asked for them
        FoldChange::Issued { attempt, worker, .. } => tracing::debug!(%fold, %attempt, %worker, "leased"),
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
