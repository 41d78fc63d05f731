//! The agent: decides what each slot does and what the coordinator is told. One event loop owns all state;
//! slots and the link are tasks that send it events. It outlives the coordinator: while the link is down it
//! goes on training and spools what finishes. Told to stop, it gives the folds in training a moment to save.

mod incoming;
mod outgoing;
#[cfg(test)]
mod tests;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use togl_proto::wire::{self, WorkerMessage, worker_message};
use togl_sweeps::{Attempt, FoldKey};
use tokio::sync::{mpsc, watch};

use crate::clock::later;
use crate::identity::WorkerIdentity;
use crate::link::{LinkEvent, LinkRefusal};
use crate::slots::{EpochReport, Latest, SlotEvent, SlotOrder};
use crate::spool::{Spool, SpooledOutcome};

/// Removes what a fold left on disk to go on from.
pub type Tidy = Arc<dyn Fn(FoldKey) -> io::Result<()> + Send + Sync>;

/// How this worker goes about its work.
#[derive(Clone)]
pub struct Habits {
    /// How long folds may take to save when the worker is told to stop.
    pub grace: Duration,
    /// Leave after so long without work.
    pub idle_exit: Option<Duration>,
    /// How long it will live, if that is known.
    pub life: Option<Life>,
    /// Called for each fold whose result is safe.
    pub tidy: Tidy,
}

/// The time that a worker has: what started it will end it.
#[derive(Debug, Clone, Copy)]
pub struct Life {
    /// From the start to the end.
    pub lasts: Duration,
    /// Takes nothing new when no more than this is left.
    pub margin: Duration,
}

/// The agent's ends of a slot: where its orders go, and where its progress comes from.
pub type SlotEnds = (mpsc::Sender<SlotOrder>, watch::Receiver<Latest>);

/// Why the agent stopped.
#[derive(Debug, PartialEq, Eq)]
pub enum AgentEnd {
    /// It was told to, or its time was over.
    Asked,
    /// The coordinator will never take it.
    Refused {
        /// Why.
        why: LinkRefusal,
        /// Results that are in the spool because nobody has acknowledged them.
        kept: usize,
    },
    /// Nothing to do for as long as was allowed.
    Idle,
}

/// A slot as the agent sees it.
struct Slot {
    device: String,
    orders: mpsc::Sender<SlotOrder>,
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
    identity: WorkerIdentity,
    habits: Habits,
    spool: Spool,
    slots: Vec<Slot>,
    session: Option<Session>,
    heartbeat: Duration,
    last_trouble: String,
    /// Which start of a coordinator was met last; none before the first one, or if they do not say.
    met: Option<u64>,
    /// Told to stop: no new work, what is in training is saved.
    leaving: bool,
    /// When what started this worker will end it.
    end: Option<tokio::time::Instant>,
    /// Too little time is left for anything new.
    closing: bool,
}

impl Agent {
    /// An agent with one slot per device.
    pub fn new(identity: WorkerIdentity, habits: Habits, spool: Spool, slots: Vec<SlotEnds>) -> Self {
        let slots = identity.devices.iter().cloned().zip(slots);
        let slot = |(device, (orders, latest))| Slot { device, orders, latest, work: None };
        let slots = slots.map(slot).collect();
        let (heartbeat, last_trouble) = (Duration::from_secs(3), String::new());
        Self {
            identity,
            habits,
            spool,
            slots,
            session: None,
            heartbeat,
            last_trouble,
            met: None,
            leaving: false,
            end: None,
            closing: false,
        }
    }

    /// Runs until told to stop, refused, or idle for too long.
    pub async fn run(
        mut self,
        mut link: mpsc::Receiver<LinkEvent>,
        mut slots: mpsc::Receiver<SlotEvent>,
        mut stop: mpsc::Receiver<()>,
    ) -> AgentEnd {
        let idle = tokio::time::sleep(self.habits.idle_exit.unwrap_or(Duration::MAX));
        let grace = tokio::time::sleep(Duration::MAX);
        let (closing, over) = self.begin_life();
        tokio::pin!(idle, grace, closing, over);
        let mut beat = tokio::time::interval(self.heartbeat);
        loop {
            if beat.period() != self.heartbeat {
                beat = tokio::time::interval(self.heartbeat); // the coordinator asked for another rhythm
            }
            let busy = self.slots.iter().any(|slot| slot.work.is_some());
            if let Some(why) = self.is_done(busy) {
                break self.say_goodbye(&mut link, why).await;
            }
            tokio::select! {
                event = link.recv() => match event {
                    Some(LinkEvent::Refused(why)) => return self.refused(why),
                    Some(event) => self.on_link(event).await,
                    None => return self.refused(LinkRefusal::Other("the connection task ended".to_owned())),
                },
                Some(event) = slots.recv() => self.on_slot(event).await,
                _ = beat.tick() => self.send_heartbeat().await,
                Some(()) = stop.recv() => {
                    if self.leaving {
                        break self.say_goodbye(&mut link, AgentEnd::Asked).await; // told twice: at once
                    }
                    self.begin_to_leave(grace.as_mut()).await;
                }
                () = &mut closing, if !self.closing => self.close().await,
                () = &mut over, if !self.leaving => self.begin_to_leave(grace.as_mut()).await,
                () = &mut grace, if self.leaving => break self.say_goodbye(&mut link, AgentEnd::Asked).await,
                () = &mut idle, if !busy => break self.say_goodbye(&mut link, AgentEnd::Idle).await,
            }
            if let (true, Some(allowed)) = (busy, self.habits.idle_exit) {
                idle.as_mut().reset(later(allowed));
            }
        }
    }

    /// Why there is nothing left to do here.
    fn is_done(&self, busy: bool) -> Option<AgentEnd> {
        if self.slots.is_empty() && self.has_delivered() {
            return Some(AgentEnd::Idle);
        }
        ((self.leaving || self.closing) && !busy).then_some(AgentEnd::Asked)
    }

    /// The moments from which nothing new is taken and at which what is in training is saved.
    fn begin_life(&mut self) -> (tokio::time::Sleep, tokio::time::Sleep) {
        let never = || tokio::time::sleep(Duration::MAX);
        let Some(Life { lasts, margin }) = self.habits.life else { return (never(), never()) };
        self.end = Some(later(lasts));
        let until = |before: Duration| tokio::time::sleep(lasts.saturating_sub(before));
        (until(margin), until(self.habits.grace))
    }

    /// From now on nothing new is taken; what is in training goes on while there is time.
    async fn close(&mut self) {
        tracing::info!("too little time is left for another fold");
        self.closing = true;
        self.send(worker_message::Kind::Ask(wire::LeaseRequest { count: 0 })).await;
    }

    /// Whether the coordinator that is met has everything that belongs to its store. Who has no slots came only for that.
    fn has_delivered(&self) -> bool {
        let met = self.session.as_ref().and_then(|session| session.incarnation.as_deref());
        met.is_some_and(|store| self.spool.waiting(store).next().is_none())
    }

    fn refused(&self, why: LinkRefusal) -> AgentEnd {
        let results = self.spool.all().filter(|entry| matches!(entry.outcome, SpooledOutcome::Result(_)));
        AgentEnd::Refused { why, kept: results.count() }
    }

    /// Asks every trainer to save and end its fold, within the grace that begins now.
    async fn begin_to_leave(&mut self, grace: Pin<&mut tokio::time::Sleep>) {
        tracing::info!("this worker saves what is in training and leaves");
        self.leaving = true;
        grace.reset(later(self.habits.grace));
        for slot in self.slots.iter().filter(|slot| slot.work.is_some()) {
            let _ = slot.orders.send(SlotOrder::Stop).await;
        }
    }

    /// Tells the coordinator that the leases are free again, and waits a moment for the words to leave and for what
    /// it still has to acknowledge.
    async fn say_goodbye(&mut self, link: &mut mpsc::Receiver<LinkEvent>, why: AgentEnd) -> AgentEnd {
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
}
