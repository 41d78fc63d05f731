//! One round of the driver: mail that shares a transaction. Collects decisions and who waits for them, writes
//! once, and answers afterwards, so that nobody hears of anything that is not stored. Output of trainers shares the
//! transaction, but only so much of it that nobody waits for it. Used by the driver only.

use std::sync::Arc;

use togl_scheduler::{By, Change, Event, Rejection, Reply, Scheduler, Steered, Timestamp};
use tokio::sync::oneshot;

use super::handle::{CallError, Mail};
use crate::store::{LogPiece, Store, StoreError};
use crate::telling;

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
            Mail::Call { events, by, reply } => {
                let mut decide = |event| match &by {
                    Some(by) => self.steer(scheduler, now, event, by),
                    None => self.decide(scheduler, now, event),
                };
                let answers = events.into_iter().map(&mut decide).collect();
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

    /// The same for somebody whose name is kept with what he changes.
    fn steer(&mut self, scheduler: &mut Scheduler, now: Timestamp, event: Event, by: &By) -> Answer {
        let (steered, before) = (Steered::of(&event, by), self.changes.len());
        let reply = self.decide(scheduler, now, event)?;
        if self.changes.len() > before {
            let steered = steered.map(|steered| steered.led_to(&reply));
            self.changes.extend(steered.map(|steered| Change::Steered(Box::new(steered))));
        }
        Ok(reply)
    }

    /// Writes everything in one transaction; nothing to write costs nothing. Says whether there was something.
    pub(super) fn store(&mut self, store: &mut dyn Store) -> Result<bool, StoreError> {
        if self.changes.is_empty() {
            return Ok(false);
        }
        let later = self.logs.split_off(self.logs.len().min(ALONG));
        let along = std::mem::replace(&mut self.logs, later);
        crate::crash::point("commit");
        store.commit_with_log(&self.changes, &along)?;
        Ok(true)
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
            telling::log(change);
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
