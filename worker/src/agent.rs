//! The agent: decides what each slot does and what the coordinator is told. One event loop owns all state;
//! slots and the link are tasks that send it events. It outlives the coordinator: while the link is down it
//! goes on training and spools what finishes.

use std::path::PathBuf;
use std::time::Duration;

use togl_proto::wire::{self, coordinator_message, worker_message};
use togl_proto::{convert, wire::WorkerMessage};
use togl_sweeps::{Attempt, Failure, FailureClass, FoldKey, WorkerId};
use tokio::sync::mpsc;

use crate::link::LinkEvent;
use crate::protocol::{EpochReport, Request};
use crate::slot::{Assignment, Order, Report, SlotEvent};
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
    work: Option<Work>,
}

/// An attempt in training.
struct Work {
    fold: FoldKey,
    attempt: Attempt,
    incarnation: String,
    progress: Option<EpochReport>,
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
    data_dir: Option<PathBuf>,
    spool: Spool,
    slots: Vec<Slot>,
    session: Option<Session>,
    heartbeat: Duration,
    last_trouble: String,
}

impl Agent {
    /// An agent with one order channel per device.
    pub fn new(
        identity: Identity,
        data_dir: Option<PathBuf>,
        spool: Spool,
        orders: Vec<mpsc::Sender<Order>>,
    ) -> Self {
        let slots = identity.devices.iter().cloned().zip(orders);
        let slots = slots.map(|(device, orders)| Slot { device, orders, work: None }).collect();
        let (heartbeat, last_trouble) = (Duration::from_secs(3), String::new());
        Self { identity, data_dir, spool, slots, session: None, heartbeat, last_trouble }
    }

    /// Runs until told to stop, refused, or idle for `idle_exit`.
    pub async fn run(
        mut self,
        mut link: mpsc::Receiver<LinkEvent>,
        mut slots: mpsc::Receiver<SlotEvent>,
        mut stop: mpsc::Receiver<()>,
        idle_exit: Option<Duration>,
    ) -> Stopped {
        let idle = tokio::time::sleep(idle_exit.unwrap_or(Duration::MAX));
        tokio::pin!(idle);
        let mut beat = tokio::time::interval(self.heartbeat);
        loop {
            if beat.period() != self.heartbeat {
                beat = tokio::time::interval(self.heartbeat); // the coordinator asked for another rhythm
            }
            let busy = self.slots.iter().any(|slot| slot.work.is_some());
            tokio::select! {
                event = link.recv() => match event {
                    Some(LinkEvent::Refused(reason)) => return Stopped::Refused(reason),
                    Some(event) => self.on_link(event).await,
                    None => return Stopped::Refused("the connection task ended".to_owned()),
                },
                Some(event) = slots.recv() => self.on_slot(event).await,
                _ = beat.tick() => self.send_heartbeat().await,
                _ = stop.recv() => { self.say_goodbye(&mut link).await; return Stopped::Asked }
                () = &mut idle, if !busy => { self.say_goodbye(&mut link).await; return Stopped::Idle }
            }
            if let (true, Some(allowed)) = (busy, idle_exit) {
                idle.as_mut().reset(later(allowed));
            }
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
                Failure::new(FailureClass::Config, format!("this worker cannot read the trial: {error}"));
            return self.finish(incarnation, fold, attempt, Outcome::Failure(failure)).await;
        }
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.work.is_none()) else {
            let failure = Failure::new(FailureClass::Preempted, "no free slot for this lease");
            return self.finish(incarnation, fold, attempt, Outcome::Failure(failure)).await;
        };
        let limit = lease.time_limit_seconds;
        let request = Request {
            fold,
            config: lease.config,
            device: slot.device.clone(),
            data_dir: self.data_dir.clone(),
        };
        let time_limit = (limit > 0).then(|| Duration::from_secs(limit));
        slot.work = Some(Work { fold, attempt, incarnation, progress: None });
        let _ = slot.orders.send(Order::Train(Box::new(Assignment { attempt, request, time_limit }))).await;
    }

    fn on_acknowledgement(&mut self, ack: wire::Acknowledgement) {
        let (Ok(fold), Ok(attempt)) = (convert::fold(ack.fold), convert::attempt(ack.attempt)) else {
            return;
        };
        let done = if ack.accepted {
            self.spool.remove(fold, attempt)
        } else {
            tracing::warn!(%fold, %attempt, reason = %ack.reason, "report refused; kept in spool/rejected");
            self.spool.reject(fold, attempt, &ack.reason)
        };
        if let Err(error) = done {
            tracing::warn!(%fold, %error, "cannot tidy the spool");
        }
    }

    async fn on_slot(&mut self, event: SlotEvent) {
        let SlotEvent { slot, fold, attempt, report } = event;
        let outcome = match report {
            Report::Epoch(progress) => {
                if let Some(work) = &mut self.slots[slot].work {
                    work.progress = Some(progress);
                }
                return;
            }
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
                progress: work.progress.map(progress),
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
            code_version: env!("CARGO_PKG_VERSION").to_owned(),
            numerics: togl_sweeps::trial::NUMERICS,
            running: self.in_hand(),
        };
        self.send(worker_message::Kind::Hello(hello)).await;
    }

    async fn ask_for_leases(&mut self) {
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

    /// Tells the coordinator that the leases are free again, and waits a moment for the words to leave.
    async fn say_goodbye(&mut self, link: &mut mpsc::Receiver<LinkEvent>) {
        self.send(worker_message::Kind::Goodbye(wire::Goodbye {})).await;
        self.session = None;
        let ended = async { while !matches!(link.recv().await, None | Some(LinkEvent::Lost(_))) {} };
        let _ = tokio::time::timeout(Duration::from_secs(2), ended).await;
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

#[expect(clippy::disallowed_methods, reason = "only to restart a timer of the runtime's own clock")]
fn later(pause: Duration) -> tokio::time::Instant {
    tokio::time::Instant::now() + pause
}
