//! A worker that speaks the real protocol and trains nothing. It does what `worker/src/agent.rs` and
//! `worker/src/link.rs` do: one session at a time, reconnecting with growing pauses; work goes on while the link is
//! down; whatever finished is on disk until it is acknowledged; a new process takes over the disk of a dead one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng as SmallRng;
use togl_proto::client::Bearer;
use togl_proto::convert;
use togl_proto::wire::workers_client::WorkersClient;
use togl_proto::wire::{self, coordinator_message, worker_message};
use togl_sweeps::result::example;
use togl_sweeps::{Attempt, Failure, FailureClass, FoldKey, FoldResult, trial};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

use crate::faults::pick;
use crate::ledger::Ledger;
use crate::network;

/// What survives a crash of the worker.
#[derive(Debug, Clone, Default)]
pub struct Disk(Arc<Mutex<Files>>);

#[derive(Debug, Default)]
pub struct Files {
    pub spool: BTreeMap<(FoldKey, Attempt), Entry>,
    boots: u32,
}

#[derive(Debug, Clone)]
pub struct Entry {
    incarnation: String,
    outcome: Result<Box<FoldResult>, Failure>,
}

impl Disk {
    pub fn files(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap()
    }
}

struct Work {
    fold: FoldKey,
    attempt: Attempt,
    incarnation: String,
    done: Instant,
    outcome: Result<Box<FoldResult>, Failure>,
}

enum LinkEvent {
    Open(mpsc::Sender<wire::WorkerMessage>),
    Message(Box<wire::CoordinatorMessage>),
    Lost,
}

pub struct Agent {
    id: String,
    host: String,
    slots: Vec<Option<Work>>,
    disk: Disk,
    ledger: Ledger,
    rng: SmallRng,
    session: Option<(mpsc::Sender<wire::WorkerMessage>, Option<String>)>,
    heartbeat: Duration,
    /// Chances in a hundred that an attempt fails.
    failing: u32,
}

const PAUSES: [u64; 6] = [100, 200, 500, 1_000, 2_000, 5_000];

/// Runs until its host crashes.
pub async fn run(
    host: String,
    slots: usize,
    failing: u32,
    disk: Disk,
    ledger: Ledger,
    token: String,
    seed: u64,
) -> turmoil::Result {
    let boots = {
        let mut files = disk.files();
        files.boots += 1;
        files.boots
    };
    let mut agent = Agent {
        id: format!("{host}-{boots}"),
        host,
        slots: (0..slots).map(|_| None).collect(),
        disk,
        ledger,
        rng: SmallRng::seed_from_u64(seed ^ u64::from(boots) << 32),
        session: None,
        heartbeat: Duration::from_millis(500),
        failing,
    };
    let (sender, mut link) = mpsc::channel(64);
    tokio::spawn(keep(token, sender));
    let mut beat = Instant::now() + agent.heartbeat;
    loop {
        let next = agent.slots.iter().flatten().map(|work| work.done).min();
        tokio::select! {
            event = link.recv() => match event {
                Some(event) => agent.on_link(event).await,
                None => return Err("the link ended".into()),
            },
            () = until(next) => agent.on_done().await,
            () = tokio::time::sleep_until(beat) => {
                beat = Instant::now() + agent.heartbeat;
                let running = agent.running();
                agent.send(worker_message::Kind::Heartbeat(wire::Heartbeat { running })).await;
            }
        }
    }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// Keeps a session open.
async fn keep(token: String, events: mpsc::Sender<LinkEvent>) {
    let mut failures = 0;
    loop {
        let was_open = session(&token, &events).await;
        failures = if was_open { 0 } else { failures + 1 };
        if events.send(LinkEvent::Lost).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(PAUSES[failures.min(PAUSES.len() - 1)])).await;
    }
}

/// One session; says whether it was ever open.
async fn session(token: &str, events: &mpsc::Sender<LinkEvent>) -> bool {
    let Ok(channel) = network::connect().await else { return false };
    let mut client = WorkersClient::with_interceptor(channel, Bearer::new(token).unwrap());
    let (sender, outgoing) = mpsc::channel(64);
    let Ok(response) = client.session(ReceiverStream::new(outgoing)).await else { return false };
    let mut incoming = response.into_inner();
    if events.send(LinkEvent::Open(sender)).await.is_err() {
        return true;
    }
    while let Ok(Some(message)) = incoming.message().await {
        if events.send(LinkEvent::Message(Box::new(message))).await.is_err() {
            break;
        }
    }
    true
}

impl Agent {
    async fn on_link(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Open(outgoing) => {
                self.session = Some((outgoing, None));
                let hello = wire::Hello {
                    worker: self.id.clone(),
                    host: self.host.clone(),
                    slots: u32::try_from(self.slots.len()).unwrap(),
                    devices: vec!["cpu".to_owned(); self.slots.len()],
                    code_version: "simulated".to_owned(),
                    numerics: trial::NUMERICS,
                    running: self.in_hand(),
                    ..wire::Hello::default()
                };
                self.send(worker_message::Kind::Hello(hello)).await;
            }
            LinkEvent::Message(message) => self.on_message(*message).await,
            LinkEvent::Lost => {
                self.ledger.count("lost sessions");
                self.session = None;
            }
        }
    }

    async fn on_message(&mut self, message: wire::CoordinatorMessage) {
        use coordinator_message::Kind;
        match message.kind {
            Some(Kind::Welcome(welcome)) => {
                self.heartbeat = Duration::from_millis(welcome.heartbeat_ms.into());
                if let Some((_, incarnation)) = &mut self.session {
                    *incarnation = Some(welcome.incarnation);
                }
                self.on_verdicts(welcome.verdicts.unwrap_or_default());
                let waiting: Vec<_> = self.disk.files().spool.keys().copied().collect();
                for key in waiting {
                    self.report(key).await;
                }
                self.ask().await;
            }
            Some(Kind::Leases(leases)) => {
                for lease in leases.leases {
                    self.on_lease(lease);
                }
            }
            Some(Kind::Verdicts(verdicts)) => {
                self.on_verdicts(verdicts);
                self.ask().await;
            }
            Some(Kind::Acknowledgements(acks)) => {
                acks.acknowledgements.into_iter().for_each(|ack| self.on_ack(ack))
            }
            _ => {}
        }
    }

    fn on_verdicts(&mut self, verdicts: wire::Verdicts) {
        for verdict in verdicts.verdicts.into_iter().filter(|verdict| !verdict.go_on) {
            let key = (convert::fold(verdict.fold).unwrap(), Attempt(verdict.attempt));
            for slot in &mut self.slots {
                if slot.as_ref().is_some_and(|work| (work.fold, work.attempt) == key) {
                    *slot = None;
                    self.ledger.count("abandoned");
                }
            }
        }
    }

    fn on_lease(&mut self, lease: wire::Lease) {
        let fold = convert::fold(lease.fold).unwrap();
        convert::trial(&lease.config, fold).unwrap();
        let Some((_, Some(incarnation))) = &self.session else { return };
        let (attempt, incarnation) = (Attempt(lease.attempt), incarnation.clone());
        let done =
            Instant::now() + Duration::from_millis(*pick(&mut self.rng, &[20, 200, 700, 2_000, 6_000]));
        let outcome = self.outcome(fold);
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.is_none()) else {
            return self.ledger.broken(format!("{} was given {fold} and has no free slot", self.id));
        };
        *slot = Some(Work { fold, attempt, incarnation, done, outcome });
        self.ledger.count("leases");
    }

    /// What training would have come to: mostly the same for a fold, wherever it runs.
    fn outcome(&mut self, fold: FoldKey) -> Result<Box<FoldResult>, Failure> {
        if self.rng.random_range(0..100) < self.failing {
            use FailureClass::{Crashed, Error, NotFinite, OutOfMemory, TimeLimit, Unreadable};
            let class =
                *pick(&mut self.rng, &[Crashed, Error, NotFinite, OutOfMemory, TimeLimit, Unreadable]);
            // Everybody here has one version: what one cannot read, nobody can.
            let class = if class == Unreadable { Error } else { class };
            return Err(Failure::new(class, "simulated"));
        }
        let luck = if self.rng.random_range(0..10) == 0 { 0.25 } else { 0.5 };
        let mut result = example(luck + f64::from(fold.split) / 1024.0);
        result.provenance.worker.clone_from(&self.id);
        Ok(Box::new(result))
    }

    fn on_ack(&mut self, ack: wire::Acknowledgement) {
        let key = (convert::fold(ack.fold).unwrap(), Attempt(ack.attempt));
        let Some(entry) = self.disk.files().spool.remove(&key) else { return };
        if let Ok(result) = entry.outcome {
            let (fold, attempt) = key;
            if ack.accepted {
                let bits = result.test.accuracy.to_bits();
                self.ledger.notes().acknowledged.insert((fold, attempt, bits));
            } else {
                self.ledger
                    .broken(format!("the result of {fold}, attempt {attempt}, was refused: {}", ack.reason));
            }
        }
    }

    async fn on_done(&mut self) {
        let now = Instant::now();
        for number in 0..self.slots.len() {
            let is_done = |work: &Work| work.done <= now;
            let Some(work) = self.slots[number].take_if(|work| is_done(work)) else { continue };
            let key = (work.fold, work.attempt);
            let entry = Entry { incarnation: work.incarnation, outcome: work.outcome };
            self.disk.files().spool.insert(key, entry); // on disk before it is reported
            self.report(key).await;
            if self.rng.random_range(0..5) == 0 {
                self.report(key).await; // said twice, as after a lost acknowledgement
            }
        }
        self.ask().await;
    }

    async fn report(&mut self, key: (FoldKey, Attempt)) {
        let Some(entry) = self.disk.files().spool.get(&key).cloned() else { return };
        let Some((_, Some(incarnation))) = &self.session else { return };
        if entry.incarnation != *incarnation {
            return;
        }
        let (fold, attempt) = (Some(key.0.into()), key.1.0);
        let mut reports = wire::Reports::default();
        match entry.outcome {
            Ok(result) => {
                let result = Some((*result).into());
                reports.results.push(wire::ResultReport { fold, attempt, result });
            }
            Err(failure) => {
                let failure = Some(failure.into());
                reports.failures.push(wire::FailureReport { fold, attempt, failure });
            }
        }
        self.send(worker_message::Kind::Reports(reports)).await;
    }

    fn running(&self) -> Vec<wire::Running> {
        let works = self.slots.iter().flatten();
        works.map(|work| running(work.fold, work.attempt)).collect()
    }

    fn in_hand(&self) -> Vec<wire::Running> {
        let mut all = self.running();
        all.extend(self.disk.files().spool.keys().map(|(fold, attempt)| running(*fold, *attempt)));
        all
    }

    async fn ask(&mut self) {
        let count = self.slots.iter().filter(|slot| slot.is_none()).count();
        self.send(worker_message::Kind::Ask(wire::LeaseRequest { count: u32::try_from(count).unwrap() }))
            .await;
    }

    async fn send(&mut self, kind: worker_message::Kind) {
        if let Some((outgoing, _)) = &self.session {
            // A full channel means that the link hangs; what matters is on disk and said again.
            _ = outgoing.try_send(wire::WorkerMessage { kind: Some(kind) });
        }
    }
}

fn running(fold: FoldKey, attempt: Attempt) -> wire::Running {
    wire::Running { fold: Some(fold.into()), attempt: attempt.0, progress: None, slot: 0 }
}
