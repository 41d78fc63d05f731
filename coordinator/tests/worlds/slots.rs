//! A slot that trains nothing: takes orders and, after a while of virtual time, says how it ended, as
//! `worker/src/slot.rs` would. Notices orders that no slot should get, and orders that should have come.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::RngExt;
use rand_chacha::ChaCha8Rng as SmallRng;
use togl_agent::slots::{Assignment, EpochReport, Latest, SlotEvent, SlotOrder, SlotReport};
use togl_proto::checkpoint::Held;
use togl_sweeps::result::{Metrics, example};
use togl_sweeps::{Attempt, Failure, FailureClass, FoldKey, FoldResult};
use tokio::sync::{mpsc, watch};

use crate::faults::pick;
use crate::ledger::Ledger;
use crate::moving::{EPOCHS, HOW, How, Moving};
use crate::worker::Strings;

/// How long after the word to stop an attempt may still come to its end.
const PATIENCE: Duration = Duration::from_secs(1);

pub struct Slot {
    pub worker: String,
    pub number: usize,
    /// Chances in a hundred that an attempt fails.
    pub failing: u32,
    pub ledger: Ledger,
    pub rng: SmallRng,
    pub strings: Arc<Mutex<Strings>>,
    pub moving: Moving,
}

impl Slot {
    /// Runs until its orders end.
    pub async fn run(
        mut self,
        mut orders: mpsc::Receiver<SlotOrder>,
        events: mpsc::Sender<SlotEvent>,
        latest: watch::Sender<Latest>,
    ) {
        while let Some(order) = orders.recv().await {
            let SlotOrder::Train(assignment) = order else { continue }; // about a fold that has just ended
            let Assignment { fold, attempt, held, .. } = *assignment;
            let (slot, place) = (self.number, (self.worker.clone(), self.number));
            let event = |report| SlotEvent { slot, fold, attempt, report };
            self.ledger.notes().training.insert(place.clone(), (fold, attempt));
            self.ledger.count("leases");
            if self.rng.random_range(0..4) == 0 {
                _ = events.try_send(event(SlotReport::Log("a line of the log".to_owned())));
            }
            latest.send_replace(Some((fold, attempt, epoch())));
            let report = self.train(fold, attempt, held, &mut orders).await;
            self.ledger.notes().training.remove(&place);
            if let SlotReport::Done(result) = &report {
                let bits = result.test.accuracy.to_bits();
                self.ledger.notes().trained.insert((fold, attempt, bits));
            }
            _ = events.send(event(report)).await;
        }
    }

    /// Goes on from the furthest checkpoint that it can have, epoch by epoch.
    async fn train(
        &mut self,
        fold: FoldKey,
        attempt: Attempt,
        held: Option<Held>,
        orders: &mut mpsc::Receiver<SlotOrder>,
    ) -> SlotReport {
        let takes = *pick(&mut self.rng, &[20, 700, 2_000, 5_000, 9_000]);
        self.ledger.leased_with(fold, attempt, held);
        let (moving, heard) = (self.moving.clone(), self.ledger.clone());
        let mut work = Box::pin(async move {
            let begin = moving.begin(fold, attempt, held).await;
            heard.tell("begins", &(fold, attempt, begin));
            begin
        });
        let begin = loop {
            tokio::select! {
                begin = &mut work => break begin,
                order = orders.recv() => if let Some(report) = self.hear(order, fold, attempt, 0).await {
                    return report;
                },
            }
        };
        for epoch in begin..EPOCHS {
            let end = tokio::time::sleep(Duration::from_millis(takes / u64::from(EPOCHS)));
            tokio::pin!(end);
            loop {
                tokio::select! {
                    () = &mut end => break,
                    order = orders.recv() => if let Some(report) = self.hear(order, fold, attempt, epoch).await {
                        return report;
                    },
                }
            }
            Strings::while_paused(&self.strings, &self.ledger).await;
            self.moving.save(fold, epoch + 1);
            if self.rng.random_range(0..3) == 0 {
                let how = *pick(&mut self.rng, &HOW);
                tokio::spawn(self.moving.clone().bring(fold, attempt, how));
            }
        }
        self.ledger.ended_by_itself(&self.worker, fold, attempt, PATIENCE);
        self.outcome(fold)
    }

    /// What an order means for the attempt in training: its end, or nothing.
    async fn hear(
        &mut self,
        order: Option<SlotOrder>,
        fold: FoldKey,
        attempt: Attempt,
        epoch: u32,
    ) -> Option<SlotReport> {
        match order {
            Some(SlotOrder::Abandon(of, which)) if (of, which) != (fold, attempt) => None,
            Some(SlotOrder::Abandon(..)) => {
                self.ledger.count("abandoned");
                Some(SlotReport::Abandoned)
            }
            Some(SlotOrder::Stop) => Some(self.save(fold, attempt, epoch).await),
            Some(SlotOrder::Bring) => {
                self.ledger.brings_anew(&self.worker, fold, attempt);
                tokio::spawn(self.moving.clone().bring(fold, attempt, How::Well));
                None
            }
            Some(SlotOrder::Train(other)) => {
                let (worker, slot, other) = (&self.worker, self.number, other.fold);
                self.ledger.broken(format!("slot {slot} of {worker} trains {fold} and was given {other}"));
                None
            }
            None => std::future::pending().await, // the agent is gone, and soon the process
        }
    }

    /// Told to stop: the epoch in hand is finished first, and sometimes it was the last one. The checkpoint is brought
    /// before anybody hears that the fold is free.
    async fn save(&mut self, fold: FoldKey, attempt: Attempt, epoch: u32) -> SlotReport {
        tokio::time::sleep(Duration::from_millis(self.rng.random_range(0..400))).await;
        if self.rng.random_range(0..4) == 0 {
            return self.outcome(fold);
        }
        self.moving.save(fold, epoch + 1);
        // A link may be down for longer than anybody waits; the real agent leaves when the grace is over.
        let bringing = self.moving.clone().bring(fold, attempt, How::Well);
        _ = tokio::time::timeout(Duration::from_secs(1), bringing).await;
        self.ledger.count("saved and stopped");
        SlotReport::Failed(Failure::new(FailureClass::Preempted, "simulated stop"))
    }

    /// What training would have come to: mostly the same for a fold, wherever it runs.
    fn outcome(&mut self, fold: FoldKey) -> SlotReport {
        if self.rng.random_range(0..100) < self.failing {
            use FailureClass::{Crashed, Error, NotFinite, OutOfMemory, TimeLimit};
            let class = *pick(&mut self.rng, &[Crashed, Error, NotFinite, OutOfMemory, TimeLimit]);
            return SlotReport::Failed(Failure::new(class, "simulated"));
        }
        let luck = if self.rng.random_range(0..10) == 0 { 0.25 } else { 0.5 };
        // Some trials are better than others, so that races have somebody to stop.
        let trial = f64::from(fold.trial.as_bytes()[0] % 4) / 16.0;
        let result: FoldResult = example(luck + trial + f64::from(fold.split) / 1024.0);
        SlotReport::Done(Box::new(result))
    }
}

fn epoch() -> EpochReport {
    let metrics = Metrics { loss: 1.0, accuracy: 0.5 };
    EpochReport {
        epoch: 1,
        max_epochs: 2,
        lr: 0.1,
        train: metrics,
        validation: metrics,
        graphs_per_second: 1.0,
    }
}
