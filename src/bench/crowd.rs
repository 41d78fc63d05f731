//! A simulated worker: speaks the protocol of a real one (hello, asks, heartbeats, reports until acknowledged) and
//! trains nothing. Times how long leases and acknowledgements take. Decides nothing about the measurement.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use togl_proto::client;
use togl_proto::wire::{self, CoordinatorMessage, WorkerMessage, coordinator_message, worker_message::Kind};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::clock;
use crate::problem::Problem;

/// How the workers of a measurement are.
#[derive(Debug, Clone)]
pub struct Manner {
    /// The coordinator.
    pub address: String,
    /// A worker token.
    pub token: String,
    /// Folds at once, for each worker.
    pub slots: u32,
    /// How long a fold lasts.
    pub fold: Duration,
}

/// What one worker has seen.
#[derive(Debug, Default)]
pub struct CrowdFigures {
    /// Folds acknowledged as stored.
    pub finished: u64,
    /// From asking to getting, when there was work.
    pub leases: Vec<Duration>,
    /// From reporting to being told that it is stored.
    pub reports: Vec<Duration>,
}

/// A fold as it travels: which, and which attempt.
type Work = (wire::Fold, u32);

/// One worker with an open session.
pub struct SimulatedWorker {
    sender: mpsc::Sender<WorkerMessage>,
    incoming: Streaming<CoordinatorMessage>,
    heartbeat: Duration,
    slots: u32,
    fold: Duration,
    running: HashMap<(String, u32, u64), u32>,
    asked: Option<Instant>,
    reported: HashMap<(String, u32, u64), Instant>,
    /// Folds that last.
    training: JoinSet<Work>,
    /// Folds that are over and not reported.
    ended: Vec<Work>,
    seen: CrowdFigures,
    result: wire::FoldResult,
}

impl SimulatedWorker {
    /// Connects and says hello.
    pub async fn join(name: String, manner: &Manner) -> Result<Self, Problem> {
        let mut client = client::workers(&manner.address, &manner.token).await.map_err(Problem::ours)?;
        let (sender, outgoing) = mpsc::channel(64);
        let hello = wire::Hello {
            worker: name.clone(),
            host: name,
            slots: manner.slots,
            devices: vec!["cpu".to_owned(); manner.slots as usize],
            code_version: env!("CARGO_PKG_VERSION").to_owned(),
            numerics: togl_sweeps::trial::NUMERICS,
            ..wire::Hello::default()
        };
        say(&sender, Kind::Hello(hello)).await?;
        let session = client.session(ReceiverStream::new(outgoing)).await;
        let mut incoming = session.map_err(Problem::ours)?.into_inner();
        let first = incoming.message().await.map_err(Problem::ours)?.and_then(|message| message.kind);
        let Some(coordinator_message::Kind::Welcome(welcome)) = first else {
            return Err(Problem::ours("the coordinator did not welcome a worker"));
        };
        let result = wire::FoldResult::from(togl_sweeps::result::example(0.5));
        Ok(Self {
            sender,
            incoming,
            heartbeat: Duration::from_millis(u64::from(welcome.heartbeat_ms.max(1))),
            slots: manner.slots,
            fold: manner.fold,
            running: HashMap::new(),
            asked: None,
            reported: HashMap::new(),
            training: JoinSet::new(),
            ended: Vec::new(),
            seen: CrowdFigures::default(),
            result,
        })
    }

    /// Works until told to stop, from `after` on; counts what it finished in `done` as it goes.
    pub async fn work(
        mut self,
        after: Duration,
        mut stop: watch::Receiver<bool>,
        done: mpsc::UnboundedSender<u64>,
    ) -> Result<CrowdFigures, Problem> {
        tokio::time::sleep(after).await;
        let mut beat = tokio::time::interval(self.heartbeat);
        self.ask().await?;
        loop {
            tokio::select! {
                message = self.incoming.message() => {
                    let Some(message) = message.map_err(Problem::ours)? else { return Ok(self.seen) };
                    let stored = self.hear(message);
                    let _ = done.send(stored); // nobody counts any more when the measurement is over
                    self.report().await?;
                }
                Some(ended) = self.training.join_next() => {
                    self.ended.push(ended.map_err(Problem::ours)?);
                    self.report().await?;
                }
                _ = beat.tick() => self.beat().await?,
                _ = stop.changed() => return Ok(self.seen), // told once, or nobody is left to tell
            }
        }
    }

    /// Waits for one lease, with heartbeats, and never does anything about it. Afterwards it is silent.
    pub async fn take_one(&mut self) -> Result<Instant, Problem> {
        say(&self.sender, Kind::Ask(wire::LeaseRequest { count: 1 })).await?;
        let mut beat = tokio::time::interval(self.heartbeat);
        loop {
            let message = tokio::select! {
                message = self.incoming.message() => message.map_err(Problem::ours)?,
                _ = beat.tick() => {
                    self.beat().await?;
                    continue;
                }
            };
            match message.and_then(|message| message.kind) {
                Some(coordinator_message::Kind::Leases(_)) => return Ok(clock::now()),
                Some(_) => {}
                None => return Err(Problem::ours("the coordinator ended the session")),
            }
        }
    }

    /// A heartbeat that is answered: it names a fold that was never leased, so the answer is to stop it.
    pub async fn call_out(&mut self) -> Result<(), Problem> {
        let fold = wire::Fold { trial: "0".repeat(32), split: 0, seed: 0 };
        let running = wire::Running { fold: Some(fold), attempt: 1, ..wire::Running::default() };
        say(&self.sender, Kind::Heartbeat(wire::Heartbeat { running: vec![running] })).await?;
        match self.incoming.message().await.map_err(Problem::ours)?.and_then(|message| message.kind) {
            Some(coordinator_message::Kind::Verdicts(_)) => Ok(()),
            _ => Err(Problem::ours("the coordinator did not answer a heartbeat")),
        }
    }

    async fn ask(&mut self) -> Result<(), Problem> {
        let count = self.slots - self.running.len() as u32;
        if count > 0 {
            self.asked = Some(clock::now());
            say(&self.sender, Kind::Ask(wire::LeaseRequest { count })).await?;
        }
        Ok(())
    }

    /// Deals with one message; gives the number of folds that it says are stored.
    fn hear(&mut self, message: CoordinatorMessage) -> u64 {
        match message.kind {
            Some(coordinator_message::Kind::Leases(leases)) => {
                if let Some(asked) = self.asked.take() {
                    self.seen.leases.push(asked.elapsed());
                }
                for lease in leases.leases {
                    let Some(fold) = lease.fold else { continue };
                    self.running.insert(key(&fold), lease.attempt);
                    self.train((fold, lease.attempt));
                }
                0
            }
            Some(coordinator_message::Kind::Acknowledgements(all)) => {
                let mut stored = 0;
                for one in all.acknowledgements {
                    let sent = one.fold.as_ref().and_then(|fold| self.reported.remove(&key(fold)));
                    self.seen.reports.extend(sent.map(|sent| sent.elapsed()));
                    stored += u64::from(one.accepted);
                }
                self.seen.finished += stored;
                stored
            }
            _ => 0,
        }
    }

    /// A fold that lasts; one that does not is over at once.
    fn train(&mut self, work: Work) {
        if self.fold.is_zero() {
            self.ended.push(work);
            return;
        }
        let lasts = self.fold;
        self.training.spawn(async move {
            tokio::time::sleep(lasts).await;
            work
        });
    }

    /// Everything that has ended by now goes into one message, with the next request behind it.
    async fn report(&mut self) -> Result<(), Problem> {
        while let Some(ended) = self.training.try_join_next() {
            self.ended.push(ended.map_err(Problem::ours)?);
        }
        if self.ended.is_empty() {
            return Ok(());
        }
        let now = clock::now();
        let mut results = Vec::with_capacity(self.ended.len());
        for (fold, attempt) in std::mem::take(&mut self.ended) {
            self.running.remove(&key(&fold));
            self.reported.insert(key(&fold), now);
            results.push(wire::ResultReport { fold: Some(fold), attempt, result: Some(self.result.clone()) });
        }
        say(&self.sender, Kind::Reports(wire::Reports { results, failures: Vec::new() })).await?;
        self.ask().await
    }

    async fn beat(&mut self) -> Result<(), Problem> {
        let running =
            self.running.iter().enumerate().map(|(slot, ((trial, split, seed), attempt))| wire::Running {
                fold: Some(wire::Fold { trial: trial.clone(), split: *split, seed: *seed }),
                attempt: *attempt,
                progress: None,
                slot: slot as u32,
            });
        say(&self.sender, Kind::Heartbeat(wire::Heartbeat { running: running.collect() })).await
    }
}

fn key(fold: &wire::Fold) -> (String, u32, u64) {
    (fold.trial.clone(), fold.split, fold.seed)
}

async fn say(sender: &mpsc::Sender<WorkerMessage>, kind: Kind) -> Result<(), Problem> {
    let message = WorkerMessage { kind: Some(kind) };
    sender.send(message).await.map_err(|_| Problem::ours("the coordinator ended a session"))
}
