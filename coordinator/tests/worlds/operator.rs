//! The operator of a world: submits, meddles while things go wrong, and is content when every sweep has ended, every
//! report has arrived and no checkpoint is left of a fold that has its result.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng as SmallRng;
use togl_proto::client::{self, AuthorisedChannel, Bearer};
use togl_proto::wire;
use togl_proto::wire::sweeps_client::SweepsClient;

use crate::ledger::Ledger;
use crate::network;
use crate::worker::Machine;
use crate::world::FAULTY;

/// Two sweeps that share half of their folds, one whose trials race over splits, and one that halves over epochs.
const SWEEPS: [(&str, &str); 4] = [
    (
        "a",
        "version: 1\nname: a\nbase: {dataset: necklaces, depth: 2}\ngrid: {togl: [false, true]}\nsplits: [0, 1, 2, 3]\n",
    ),
    (
        "b",
        "version: 1\nname: b\nbase: {dataset: necklaces, depth: 2}\ngrid: {togl: [true]}\nsplits: [0, 1, 2, 3, 4, 5]\npriority: 1\n",
    ),
    (
        "c",
        "version: 1\nname: c\nbase: {dataset: necklaces, depth: 3}\ngrid: {lr: [0.1, 0.2, 0.3]}\nsplits: [3, 2, 1, 0]\n\
         race: {among: [lr], after: 2}\n",
    ),
    (
        "d",
        "version: 1\nname: d\nbase: {dataset: necklaces, depth: 4}\ngrid: {lr: [0.1, 0.2, 0.3]}\nsplits: [0, 1]\n\
         halve: {over: max_epochs, rungs: [5, 10], keep: 1/3, among: [lr]}\n",
    ),
];

pub struct Operator {
    pub token: String,
    pub machines: Vec<Machine>,
    /// Where each coordinator holds checkpoints.
    pub checkpoints: Vec<PathBuf>,
    pub ledger: Ledger,
    pub rng: SmallRng,
    submitted: BTreeSet<&'static str>,
}

impl Operator {
    /// `places`: the machines of the workers, and where each coordinator holds checkpoints.
    pub fn new(token: String, places: (Vec<Machine>, Vec<PathBuf>), ledger: Ledger, seed: u64) -> Self {
        let (machines, checkpoints) = places;
        let rng = SmallRng::seed_from_u64(seed);
        Self { token, machines, checkpoints, ledger, rng, submitted: BTreeSet::new() }
    }

    /// Comes back until content.
    pub async fn operate(mut self) -> turmoil::Result {
        loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let connecting = tokio::time::timeout(Duration::from_secs(5), network::connect());
            let Ok(Ok(channel)) = connecting.await else { continue };
            let client = client::sweeps_on(channel, Bearer::new(&self.token)?);
            let talk = tokio::time::timeout(Duration::from_secs(60), self.attend(client));
            if let Ok(Ok(())) = talk.await {
                return Ok(());
            }
        }
    }

    async fn attend(&mut self, mut client: SweepsClient<AuthorisedChannel>) -> Result<(), tonic::Status> {
        loop {
            for (name, yaml) in SWEEPS {
                if !self.submitted.contains(name) {
                    client
                        .submit(wire::SubmitRequest { yaml: yaml.to_owned(), ..Default::default() })
                        .await?;
                    self.submitted.insert(name);
                }
            }
            let sweeps = client.list_sweeps(wire::ListSweepsRequest::default()).await?.into_inner().sweeps;
            let meddling = self.ledger.now() < FAULTY;
            for sweep in &sweeps {
                self.steer(&mut client, sweep, meddling).await?;
            }
            if meddling && self.rng.random_range(0..40) == 0 {
                self.drain_somebody(&mut client).await?;
            }
            let is_over =
                |sweep: &wire::SweepSummary| sweep.state == "active" && sweep.pending + sweep.running == 0;
            let delivered = self.machines.iter().all(|machine| machine.spooled().is_empty());
            // One that does not serve puts its folder in order when it serves again.
            let tidy = self.checkpoints.iter().any(|folder| self.ledger.is_tidy(folder));
            if sweeps.iter().all(is_over) && delivered && tidy && !meddling {
                for sweep in &sweeps {
                    // Both have twelve; what is stopped is in no count.
                    let saved = 12_u64.saturating_sub(sweep.finished + sweep.failed);
                    match sweep.name.as_str() {
                        "c" => self.ledger.add("folds that a race saved", saved),
                        "d" => self.ledger.add("folds that a halving saved", saved),
                        _ => {}
                    }
                }
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    async fn steer(
        &mut self,
        client: &mut SweepsClient<AuthorisedChannel>,
        sweep: &wire::SweepSummary,
        meddling: bool,
    ) -> Result<(), tonic::Status> {
        let name = sweep.name.clone();
        if sweep.state == "paused" {
            client.resume(wire::ResumeRequest { sweep: name }).await?;
        } else if meddling && self.rng.random_range(0..10) == 0 {
            client.pause(wire::PauseRequest { sweep: name }).await?;
        } else if meddling && sweep.failed > 0 && self.rng.random_range(0..3) == 0 {
            client.retry(wire::RetryRequest { sweep: name }).await?;
        }
        Ok(())
    }

    async fn drain_somebody(
        &mut self,
        client: &mut SweepsClient<AuthorisedChannel>,
    ) -> Result<(), tonic::Status> {
        let workers = client.list_workers(wire::ListWorkersRequest::default()).await?.into_inner().workers;
        if let Some(worker) = workers.first() {
            self.ledger.count("drains");
            let worker = worker.worker.clone();
            client.drain(wire::DrainRequest { worker, ..Default::default() }).await?;
        }
        Ok(())
    }
}
