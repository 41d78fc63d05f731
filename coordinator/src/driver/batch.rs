//! One round of the driver: mail that shares a transaction. Collects decisions and who waits for them, writes
//! once, and answers afterwards, so that nobody hears of anything that is not stored. Output of trainers shares the
//! transaction, but only so much of it that nobody waits for it. Used by the driver only.

use std::sync::Arc;

use togl_scheduler::{Change, Event, Rejection, Reply, Scheduler, Timestamp};
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
        Change::SweepSaved(sweep) => {
            tracing::info!(sweep = %sweep.name, folds = sweep.folds.len(), "sweep submitted");
        }
        Change::SweepStateSet { sweep, state, note } => {
            let note = note.as_deref().unwrap_or_default();
            tracing::info!(%sweep, %state, note, "sweep changed");
        }
        Change::SweepPrioritySet { sweep, priority } => tracing::info!(%sweep, priority, "sweep changed"),
        Change::MemoryFloorRaised { trial, bytes } => tracing::info!(%trial, bytes, "needs more memory"),
        Change::DataPinned { data, digest } => tracing::info!(data, digest, "data set is known"),
        Change::DataDisputed { data, fold, digest } => {
            tracing::warn!(data, %fold, digest, "a result comes from other data; an operator must decide");
        }
        Change::DataSettled { data, digest } => tracing::info!(data, digest, "dispute about data is settled"),
        Change::ResultSetAside { fold } => tracing::info!(%fold, "result set aside"),
        Change::AttemptIssued { fold, attempt, worker, .. } => {
            tracing::debug!(%fold, %attempt, %worker, "leased");
        }
        Change::LeaseRevived { fold, attempt } => tracing::info!(%fold, %attempt, "lease goes on"),
        Change::AttemptEnded { fold, attempt, ending, message } => {
            tracing::info!(%fold, %attempt, %ending, message, "attempt ended without a result");
        }
        Change::FoldFailed { fold, failure } => {
            tracing::warn!(%fold, class = %failure.class, message = failure.message, "fold failed");
        }
        Change::FoldFinished { fold, attempt, worker, .. } => {
            tracing::debug!(%fold, %attempt, %worker, "finished");
        }
        Change::ReplicateKept { fold, attempt, worker, agrees, .. } => {
            tracing::info!(%fold, %attempt, %worker, agrees, "replicate kept");
        }
        Change::ConflictLogged { fold, attempt, worker, .. } => {
            tracing::warn!(%fold, %attempt, %worker, "the same attempt reported different numbers");
        }
        fleet => log_fleet(fleet),
    }
}

/// The same, about workers and hosts.
fn log_fleet(change: &Change) {
    match change {
        Change::WorkerDrained { worker, .. } => tracing::info!(%worker, "draining"),
        Change::WorkerUndrained { worker } => tracing::info!(%worker, "no longer draining"),
        Change::HostQuarantined { host, reason } => tracing::warn!(host, %reason, "host quarantined"),
        Change::HostReleased { host } => tracing::info!(host, "quarantine ended"),
        _ => {} // told above, or not worth a line
    }
}
