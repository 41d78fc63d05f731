//! What the agent hears and what follows from it: messages of the coordinator, events of the slots, the ups and downs
//! of the link. Changes the agent's state and gives orders; how things are said is in `outgoing.rs`.

use std::time::Duration;

use togl_proto::checkpoint::Held;
use togl_proto::convert;
use togl_proto::wire::{self, coordinator_message};
use togl_sweeps::{Attempt, Failure, FailureClass, FoldKey};

use super::{Agent, Session, Slot, Work};
use crate::crash;
use crate::link::LinkEvent;
use crate::slots::{Assignment, SlotEvent, SlotOrder, SlotReport};
use crate::spool::{SpoolEntry, SpooledOutcome};

impl Agent {
    pub(super) async fn on_link(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Open(outgoing) => {
                self.session = Some(Session { outgoing, incarnation: None });
                self.say_hello().await;
            }
            LinkEvent::Message(message) => self.on_message(*message).await,
            LinkEvent::Refused(_) => self.session = None, // the end of the agent, which has seen it before
            LinkEvent::Lost(reason) => {
                self.session = None;
                if reason != self.last_trouble {
                    tracing::warn!(%reason, "no connection to the coordinator; training goes on, trying again");
                    self.last_trouble = reason;
                }
            }
        }
    }

    pub(super) async fn on_message(&mut self, message: wire::CoordinatorMessage) {
        use coordinator_message::Kind;
        match message.kind {
            Some(Kind::Welcome(welcome)) => self.on_welcome(welcome).await,
            Some(Kind::Leases(leases)) => {
                for lease in leases.leases {
                    self.on_lease(lease).await;
                }
            }
            Some(Kind::Verdicts(verdicts)) => self.on_verdicts(verdicts).await,
            Some(Kind::Acknowledgements(acks)) => {
                acks.acknowledgements.into_iter().for_each(|ack| self.on_acknowledgement(ack));
            }
            Some(Kind::Leave(_)) => {
                tracing::info!("drained: the coordinator has nothing more for this worker");
                self.leaving = true;
            }
            None => tracing::warn!("the coordinator said something this version does not know"),
        }
    }

    async fn on_welcome(&mut self, welcome: wire::Welcome) {
        let Some(session) = &mut self.session else { return };
        tracing::info!(incarnation = %welcome.incarnation, "joined the coordinator");
        session.incarnation = Some(welcome.incarnation);
        self.last_trouble.clear();
        self.heartbeat = Duration::from_millis(welcome.heartbeat_ms.clamp(50, 60_000).into());
        self.on_verdicts(welcome.verdicts.unwrap_or_default()).await;
        self.meet(welcome.start).await;
        self.report_all().await;
        self.ask_for_leases().await;
    }

    /// Whoever serves since another start may hold nothing of what was brought before: after a take-over it never had it.
    async fn meet(&mut self, start: u64) {
        let Some(start) = Some(start).filter(|start| *start != 0) else { return };
        if self.met.replace(start).is_none_or(|before| before == start) {
            return;
        }
        for slot in self.slots.iter().filter(|slot| slot.work.is_some()) {
            let _ = slot.orders.send(SlotOrder::Bring).await;
        }
    }

    async fn on_verdicts(&mut self, verdicts: wire::Verdicts) {
        for verdict in verdicts.verdicts.into_iter().filter(|verdict| !verdict.go_on) {
            let Ok(fold) = convert::fold(verdict.fold) else { continue };
            let attempt = Attempt(verdict.attempt);
            if let Some(slot) = self.slot_of(fold, attempt) {
                let _ = self.slots[slot].orders.send(SlotOrder::Abandon(fold, attempt)).await;
            }
        }
    }

    async fn on_lease(&mut self, lease: wire::Lease) {
        let (Ok(fold), Ok(attempt)) = (convert::fold(lease.fold), convert::attempt(lease.attempt)) else {
            return tracing::warn!("a lease without a proper fold was ignored");
        };
        let Some(incarnation) = self.session.as_ref().and_then(|s| s.incarnation.clone()) else { return };
        let trial = match convert::trial(&lease.config, fold) {
            Ok(trial) => trial,
            Err(error) => {
                let message = format!("this worker cannot read the trial: {error}");
                let failure = Failure::new(FailureClass::Unreadable, message);
                self.finish(incarnation, fold, attempt, SpooledOutcome::Failure(failure)).await;
                return self.ask_for_leases().await; // no slot will end and ask for the next one
            }
        };
        let free = self.free_slot(lease.slot as usize);
        let Some(slot) =
            free.filter(|_| !self.leaving && !self.closing).map(|number| &mut self.slots[number])
        else {
            let failure = Failure::new(FailureClass::Preempted, "no free slot for this lease");
            return self.finish(incarnation, fold, attempt, SpooledOutcome::Failure(failure)).await;
        };
        let (limit, device) = (lease.time_limit_seconds, slot.device.clone());
        let time_limit = (limit > 0).then(|| Duration::from_secs(limit));
        slot.work = Some(Work { fold, attempt, incarnation });
        // One that cannot be read is none: the fold is trained all the same.
        let held = lease.held.and_then(|held| Held::try_from(held).ok());
        let assignment = Assignment { fold, attempt, trial, device, time_limit, held };
        let _ = slot.orders.send(SlotOrder::Train(Box::new(assignment))).await;
    }

    /// The slot that the coordinator had in mind, if it is free; otherwise any that is.
    fn free_slot(&self, meant: usize) -> Option<usize> {
        let is_free = |slot: &Slot| slot.work.is_none();
        let meant = self.slots.get(meant).is_some_and(is_free).then_some(meant);
        meant.or_else(|| self.slots.iter().position(is_free))
    }

    fn on_acknowledgement(&mut self, ack: wire::Acknowledgement) {
        let (Ok(fold), Ok(attempt)) = (convert::fold(ack.fold), convert::attempt(ack.attempt)) else {
            return;
        };
        let Some(store) = self.session.as_ref().and_then(|s| s.incarnation.clone()) else { return };
        crash::point("acknowledged");
        let done = if ack.accepted {
            if self.spool.has_result(&store, fold, attempt) {
                self.tidy(fold);
            }
            self.spool.remove(&store, fold, attempt)
        } else if ack.keep {
            tracing::warn!(%fold, %attempt, reason = %ack.reason, "report not taken yet; kept, and told again");
            Ok(())
        } else {
            tracing::warn!(%fold, %attempt, reason = %ack.reason, "report refused; kept in spool/rejected");
            self.spool.reject(&store, fold, attempt, &ack.reason)
        };
        crash::point("removed");
        if let Err(error) = done {
            tracing::warn!(%fold, %error, "cannot tidy the spool");
        }
    }

    /// Its result is safe: nobody will go on from its checkpoints.
    fn tidy(&self, fold: FoldKey) {
        if let Err(error) = (self.habits.tidy)(fold) {
            tracing::warn!(%fold, %error, "cannot remove the checkpoints of a finished fold");
        }
    }

    pub(super) async fn on_slot(&mut self, event: SlotEvent) {
        let SlotEvent { slot, fold, attempt, report } = event;
        let outcome = match report {
            SlotReport::Log(text) => return self.send_log(fold, attempt, text).await,
            SlotReport::Done(mut result) => {
                // Whoever reports it later, this is the worker that the attempt was given to.
                result.provenance.worker = self.identity.worker.to_string();
                Some(match result.check() {
                    Ok(result) => SpooledOutcome::Result(Box::new(result)),
                    // Nobody would take it.
                    Err(error) => {
                        SpooledOutcome::Failure(Failure::new(FailureClass::ReportRefused, error.to_string()))
                    }
                })
            }
            SlotReport::Failed(failure) => Some(SpooledOutcome::Failure(failure)),
            SlotReport::Abandoned => None,
        };
        let work = self.slots[slot].work.take();
        if let (Some(outcome), Some(work)) = (outcome, work) {
            self.finish(work.incarnation, fold, attempt, outcome).await;
        }
        self.ask_for_leases().await;
    }

    /// Makes the outcome durable, then reports it to the store that it belongs to: at once, or when that is met again.
    async fn finish(
        &mut self,
        incarnation: String,
        fold: FoldKey,
        attempt: Attempt,
        outcome: SpooledOutcome,
    ) {
        let entry = SpoolEntry { incarnation, fold, attempt, outcome };
        if let SpooledOutcome::Failure(Failure { class: FailureClass::Preempted, .. }) = entry.outcome {
            // Worth saying now, so that others take the fold at once; worth nothing later.
            return self.report(&[entry]).await;
        }
        if let Err(error) = self.spool.save(entry.clone()) {
            tracing::error!(%fold, %error, "cannot spool; the report is lost if this worker ends before it is acknowledged");
            self.spool.hold(entry.clone());
        }
        self.report(&[entry]).await;
    }

    fn slot_of(&self, fold: FoldKey, attempt: Attempt) -> Option<usize> {
        let is_it = |slot: &Slot| slot.work.as_ref().is_some_and(|w| (w.fold, w.attempt) == (fold, attempt));
        self.slots.iter().position(is_it)
    }
}
