//! The agent: decides what each slot does and what the coordinator is told. One event loop owns all state;
//! slots and the link are tasks that send it events. It outlives the coordinator: while the link is down it
//! goes on training and spools what finishes. Told to stop, it gives the folds in training a moment to save.

use std::time::Duration;

use togl_proto::wire::{self, coordinator_message, worker_message};
use togl_proto::{convert, wire::WorkerMessage};
use togl_sweeps::{Attempt, Failure, FailureClass, FoldKey, WorkerId};
use tokio::sync::{mpsc, watch};

use crate::clock::later;
use crate::data::Data;
use crate::devices;
use crate::fold::Keeping;
use crate::link::LinkEvent;
use crate::protocol::{EpochReport, Request};
use crate::slot::{Assignment, Latest, Order, Report, SlotEvent};
use crate::spool::{Entry, Outcome, Spool};

/// Who this worker is and what it has.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Unique per process.
    pub worker: WorkerId,
    /// Host name.
    pub host: String,
    /// Device of each slot.
    pub devices: Vec<String>,
}

/// How this worker trains.
#[derive(Debug, Clone)]
pub struct Habits {
    /// Where data sets come from.
    pub data: Data,
    /// What folds leave on disk.
    pub keeping: Keeping,
    /// How long a fold may train without a checkpoint.
    pub save_every: Duration,
    /// How long folds may take to save when the worker is told to stop.
    pub grace: Duration,
    /// Leave after so long without work.
    pub idle_exit: Option<Duration>,
}

/// Why the agent stopped.
#[derive(Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It was told to.
    Asked,
    /// The coordinator will never take it.
    Refused(String),
    /// Nothing to do for as long as was allowed.
    Idle,
}

/// A slot as the agent sees it.
struct Slot {
    device: String,
    orders: mpsc::Sender<Order>,
    latest: watch::Receiver<Latest>,
    work: Option<Work>,
}

impl Slot {
    /// The latest epoch of this attempt; what an earlier one left does not count.
    fn progress_of(&self, work: &Work) -> Option<EpochReport> {
        let (fold, attempt, report) = (*self.latest.borrow())?;
        ((fold, attempt) == (work.fold, work.attempt)).then_some(report)
    }
}

/// An attempt in training.
struct Work {
    fold: FoldKey,
    attempt: Attempt,
    incarnation: String,
}

/// An open session.
struct Session {
    outgoing: mpsc::Sender<WorkerMessage>,
    /// Known from the welcome on.
    incarnation: Option<String>,
}

/// The agent's state.
pub struct Agent {
    identity: Identity,
    habits: Habits,
    spool: Spool,
    slots: Vec<Slot>,
    session: Option<Session>,
    heartbeat: Duration,
    last_trouble: String,
    /// Told to stop: no new work, what is in training is saved.
    leaving: bool,
}

impl Agent {
    /// An agent with one slot per device: where its orders go, and where its progress comes from.
    pub fn new(
        identity: Identity,
        habits: Habits,
        spool: Spool,
        slots: Vec<(mpsc::Sender<Order>, watch::Receiver<Latest>)>,
    ) -> Self {
        let slots = identity.devices.iter().cloned().zip(slots);
        let slot = |(device, (orders, latest))| Slot { device, orders, latest, work: None };
        let slots = slots.map(slot).collect();
        let (heartbeat, last_trouble) = (Duration::from_secs(3), String::new());
        Self { identity, habits, spool, slots, session: None, heartbeat, last_trouble, leaving: false }
    }

    /// Runs until told to stop, refused, or idle for too long.
    pub async fn run(
        mut self,
        mut link: mpsc::Receiver<LinkEvent>,
        mut slots: mpsc::Receiver<SlotEvent>,
        mut stop: mpsc::Receiver<()>,
    ) -> Stopped {
        let idle = tokio::time::sleep(self.habits.idle_exit.unwrap_or(Duration::MAX));
        let grace = tokio::time::sleep(Duration::MAX);
        tokio::pin!(idle, grace);
        let mut beat = tokio::time::interval(self.heartbeat);
        loop {
            if beat.period() != self.heartbeat {
                beat = tokio::time::interval(self.heartbeat); // the coordinator asked for another rhythm
            }
            let busy = self.slots.iter().any(|slot| slot.work.is_some());
            if self.leaving && !busy {
                break self.say_goodbye(&mut link, Stopped::Asked).await;
            }
            tokio::select! {
                event = link.recv() => match event {
                    Some(LinkEvent::Refused(reason)) => return Stopped::Refused(reason),
                    Some(event) => self.on_link(event).await,
                    None => return Stopped::Refused("the connection task ended".to_owned()),
                },
                Some(event) = slots.recv() => self.on_slot(event).await,
                _ = beat.tick() => self.send_heartbeat().await,
                Some(()) = stop.recv() => {
                    if std::mem::replace(&mut self.leaving, true) {
                        break self.say_goodbye(&mut link, Stopped::Asked).await; // told twice: at once
                    }
                    grace.as_mut().reset(later(self.habits.grace));
                    self.stop_training().await;
                }
                () = &mut grace, if self.leaving => break self.say_goodbye(&mut link, Stopped::Asked).await,
                () = &mut idle, if !busy => break self.say_goodbye(&mut link, Stopped::Idle).await,
            }
            if let (true, Some(allowed)) = (busy, self.habits.idle_exit) {
                idle.as_mut().reset(later(allowed));
            }
        }
    }

    /// Asks every trainer to save and end its fold.
    async fn stop_training(&mut self) {
        for slot in self.slots.iter().filter(|slot| slot.work.is_some()) {
            let _ = slot.orders.send(Order::Stop).await;
        }
    }

    async fn on_link(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Open(outgoing) => {
                self.session = Some(Session { outgoing, incarnation: None });
                self.say_hello().await;
            }
            LinkEvent::Message(message) => self.on_message(*message).await,
            LinkEvent::Lost(reason) | LinkEvent::Refused(reason) => {
                self.session = None;
                if reason != self.last_trouble {
                    tracing::warn!(%reason, "no connection to the coordinator; training goes on, trying again");
                    self.last_trouble = reason;
                }
            }
        }
    }

    async fn on_message(&mut self, message: wire::CoordinatorMessage) {
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
        self.report_all().await;
        self.ask_for_leases().await;
    }

    async fn on_verdicts(&mut self, verdicts: wire::Verdicts) {
        for verdict in verdicts.verdicts.into_iter().filter(|verdict| !verdict.go_on) {
            let Ok(fold) = convert::fold(verdict.fold) else { continue };
            let attempt = Attempt(verdict.attempt);
            if let Some(slot) = self.slot_of(fold, attempt) {
                let _ = self.slots[slot].orders.send(Order::Abandon(fold, attempt)).await;
            }
        }
    }

    async fn on_lease(&mut self, lease: wire::Lease) {
        let (Ok(fold), Ok(attempt)) = (convert::fold(lease.fold), convert::attempt(lease.attempt)) else {
            return tracing::warn!("a lease without a proper fold was ignored");
        };
        let Some(incarnation) = self.session.as_ref().and_then(|s| s.incarnation.clone()) else { return };
        if let Err(error) = convert::trial(&lease.config, fold) {
            let failure =
                Failure::new(FailureClass::Unreadable, format!("this worker cannot read the trial: {error}"));
            return self.finish(incarnation, fold, attempt, Outcome::Failure(failure)).await;
        }
        let free = self.slots.iter_mut().find(|slot| slot.work.is_none());
        let Some(slot) = free.filter(|_| !self.leaving) else {
            let failure = Failure::new(FailureClass::Preempted, "no free slot for this lease");
            return self.finish(incarnation, fold, attempt, Outcome::Failure(failure)).await;
        };
        let limit = lease.time_limit_seconds;
        let request = Request {
            fold,
            attempt,
            config: lease.config,
            device: slot.device.clone(),
            data: self.habits.data.clone(),
            keeping: self.habits.keeping.clone(),
        };
        let time_limit = (limit > 0).then(|| Duration::from_secs(limit));
        slot.work = Some(Work { fold, attempt, incarnation });
        let save_every = self.habits.save_every;
        let assignment = Assignment { attempt, request, time_limit, save_every };
        let _ = slot.orders.send(Order::Train(Box::new(assignment))).await;
    }

    fn on_acknowledgement(&mut self, ack: wire::Acknowledgement) {
        let (Ok(fold), Ok(attempt)) = (convert::fold(ack.fold), convert::attempt(ack.attempt)) else {
            return;
        };
        let done = if ack.accepted {
            if self.spool.has_result(fold, attempt) {
                self.forget_checkpoints(fold);
            }
            self.spool.remove(fold, attempt)
        } else {
            tracing::warn!(%fold, %attempt, reason = %ack.reason, "report refused; kept in spool/rejected");
            self.spool.reject(fold, attempt, &ack.reason)
        };
        if let Err(error) = done {
            tracing::warn!(%fold, %error, "cannot tidy the spool");
        }
    }

    /// Its result is safe: nobody will go on from there.
    fn forget_checkpoints(&self, fold: FoldKey) {
        let Some(checkpoints) = &self.habits.keeping.checkpoints else { return };
        if let Err(error) = checkpoints.remove(fold) {
            tracing::warn!(%fold, %error, "cannot remove the checkpoints of a finished fold");
        }
    }

    async fn on_slot(&mut self, event: SlotEvent) {
        let SlotEvent { slot, fold, attempt, report } = event;
        let outcome = match report {
            Report::Log(text) => return self.send_log(fold, attempt, text).await,
            Report::Done(mut result) => {
                // Whoever reports it later, this is the worker that the attempt was given to.
                result.provenance.worker = self.identity.worker.to_string();
                Some(Outcome::Result(result))
            }
            Report::Failed(failure) => Some(Outcome::Failure(failure)),
            Report::Abandoned => None,
        };
        let work = self.slots[slot].work.take();
        if let (Some(outcome), Some(work)) = (outcome, work) {
            self.finish(work.incarnation, fold, attempt, outcome).await;
        }
        self.ask_for_leases().await;
    }

    /// Makes the outcome durable, then reports it.
    async fn finish(&mut self, incarnation: String, fold: FoldKey, attempt: Attempt, outcome: Outcome) {
        let entry = Entry { incarnation, fold, attempt, outcome };
        if let Outcome::Failure(Failure { class: FailureClass::Preempted, .. }) = entry.outcome {
            // Worth saying now, so that others take the fold at once; worth nothing later.
            return self.report(&[entry]).await;
        }
        if let Err(error) = self.spool.save(entry.clone()) {
            tracing::error!(%fold, %error, "cannot spool; the report is sent once and lost if that fails");
        }
        self.report(&[entry]).await;
    }

    async fn report_all(&mut self) {
        let Some(incarnation) = self.session.as_ref().and_then(|s| s.incarnation.clone()) else { return };
        let waiting: Vec<Entry> = self.spool.waiting(&incarnation).cloned().collect();
        for some in waiting.chunks(16) {
            self.report(some).await;
        }
    }

    async fn report(&mut self, entries: &[Entry]) {
        let mut reports = wire::Reports::default();
        for entry in entries.iter().cloned() {
            let (fold, attempt) = (Some(entry.fold.into()), entry.attempt.0);
            match entry.outcome {
                Outcome::Result(result) => {
                    let result = Some((*result).into());
                    reports.results.push(wire::ResultReport { fold, attempt, result });
                }
                Outcome::Failure(failure) => {
                    let failure = Some(failure.into());
                    reports.failures.push(wire::FailureReport { fold, attempt, failure });
                }
            }
        }
        self.send(worker_message::Kind::Reports(reports)).await;
    }

    fn slot_of(&self, fold: FoldKey, attempt: Attempt) -> Option<usize> {
        let is_it = |slot: &Slot| slot.work.as_ref().is_some_and(|w| (w.fold, w.attempt) == (fold, attempt));
        self.slots.iter().position(is_it)
    }

    fn running(&self) -> Vec<wire::Running> {
        let describe = |(number, slot): (usize, &Slot)| {
            slot.work.as_ref().map(|work| wire::Running {
                fold: Some(work.fold.into()),
                attempt: work.attempt.0,
                progress: slot.progress_of(work).map(progress),
                slot: number as u32,
            })
        };
        self.slots.iter().enumerate().filter_map(describe).collect()
    }

    /// What is in training and what is finished but not acknowledged: none of it must be given to others.
    fn in_hand(&self) -> Vec<wire::Running> {
        let mut all = self.running();
        all.extend(self.spool.all().map(|entry| wire::Running {
            fold: Some(entry.fold.into()),
            attempt: entry.attempt.0,
            progress: None,
            slot: 0,
        }));
        all
    }

    async fn say_hello(&mut self) {
        let hello = wire::Hello {
            worker: self.identity.worker.to_string(),
            host: self.identity.host.clone(),
            slots: self.slots.len() as u32,
            devices: self.identity.devices.clone(),
            memories: self.identity.devices.iter().map(|device| devices::memory(device)).collect(),
            code_version: env!("CARGO_PKG_VERSION").to_owned(),
            numerics: togl_sweeps::trial::NUMERICS,
            running: self.in_hand(),
        };
        self.send(worker_message::Kind::Hello(hello)).await;
    }

    async fn ask_for_leases(&mut self) {
        if self.leaving {
            return;
        }
        let free = self.slots.iter().filter(|slot| slot.work.is_none()).count();
        self.send(worker_message::Kind::Ask(wire::LeaseRequest { count: free as u32 })).await;
    }

    async fn send_heartbeat(&mut self) {
        let running = self.running();
        self.send(worker_message::Kind::Heartbeat(wire::Heartbeat { running })).await;
    }

    async fn send_log(&mut self, fold: FoldKey, attempt: Attempt, text: String) {
        tracing::debug!(%fold, "{text}");
        let text = text + "\n"; // lines arrive one by one and are kept as one text
        let lines = wire::LogLines { fold: Some(fold.into()), attempt: attempt.0, text };
        self.send(worker_message::Kind::Log(lines)).await;
    }

    /// Tells the coordinator that the leases are free again, and waits a moment for the words to leave and for what
    /// it still has to acknowledge.
    async fn say_goodbye(&mut self, link: &mut mpsc::Receiver<LinkEvent>, why: Stopped) -> Stopped {
        self.send(worker_message::Kind::Goodbye(wire::Goodbye {})).await;
        self.session = None;
        let ended = async {
            loop {
                match link.recv().await {
                    None | Some(LinkEvent::Lost(_) | LinkEvent::Refused(_)) => break,
                    Some(LinkEvent::Message(message)) => self.on_message(*message).await,
                    Some(LinkEvent::Open(_)) => {}
                }
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(2), ended).await;
        why
    }

    /// Without a session nothing is said: what matters is in the spool, the rest is said again.
    async fn send(&mut self, kind: worker_message::Kind) {
        if let Some(session) = &self.session {
            let _ = session.outgoing.send(WorkerMessage { kind: Some(kind) }).await;
        }
    }
}

fn progress(report: EpochReport) -> wire::Progress {
    wire::Progress {
        epoch: report.epoch,
        max_epochs: report.max_epochs,
        lr: report.lr,
        train: Some(report.train.into()),
        validation: Some(report.validation.into()),
        graphs_per_second: report.graphs_per_second,
    }
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
