//! Somebody who stands between a worker's link and its agent, sees every message, and compares it with what the ledger
//! knows. Repeats a report now and then, as if its acknowledgement had been lost, and keeps the heartbeats of some
//! sessions to itself while there are faults; changes nothing else.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng as SmallRng;
use togl_agent::link::LinkEvent;
use togl_proto::convert;
use togl_proto::wire::{self, WorkerMessage, coordinator_message, worker_message};
use togl_sweeps::{Attempt, FoldKey};
use tokio::sync::mpsc;

use crate::ledger::Ledger;
use crate::worker::Strings;
use crate::world::FAULTY;

pub struct Eyes {
    worker: String,
    ledger: Ledger,
    strings: Arc<Mutex<Strings>>,
    rng: SmallRng,
}

impl Eyes {
    pub fn new(worker: String, ledger: Ledger, strings: Arc<Mutex<Strings>>, rng: SmallRng) -> Self {
        Self { worker, ledger, strings, rng }
    }

    /// Passes on what the link says until one side is gone.
    pub async fn watch(mut self, mut link: mpsc::Receiver<LinkEvent>, agent: mpsc::Sender<LinkEvent>) {
        while let Some(event) = link.recv().await {
            Strings::while_paused(&self.strings, &self.ledger).await;
            let event = match event {
                LinkEvent::Open(outgoing) => {
                    let (sender, said) = mpsc::channel(1);
                    let (worker, ledger) = (self.worker.clone(), self.ledger.clone());
                    let (strings, rng) = (self.strings.clone(), SmallRng::from_rng(&mut self.rng));
                    tokio::spawn(Self { worker, ledger, strings, rng }.listen(said, outgoing));
                    LinkEvent::Open(sender)
                }
                LinkEvent::Message(message) => {
                    self.hears(&message);
                    LinkEvent::Message(message)
                }
                LinkEvent::Lost(reason) => {
                    self.ledger.count("lost sessions");
                    LinkEvent::Lost(reason)
                }
                LinkEvent::Refused(reason) => LinkEvent::Refused(reason),
            };
            if agent.send(event).await.is_err() {
                return;
            }
        }
    }

    /// Passes on what the agent says in one session.
    async fn listen(mut self, mut said: mpsc::Receiver<WorkerMessage>, link: mpsc::Sender<WorkerMessage>) {
        let is_faulty = |ledger: &Ledger| ledger.now() < FAULTY;
        let mute = is_faulty(&self.ledger) && self.rng.random_range(0..6) == 0;
        if mute {
            self.ledger.count("sessions without heartbeats");
        }
        while let Some(mut message) = said.recv().await {
            let is_heartbeat = matches!(message.kind, Some(worker_message::Kind::Heartbeat(_)));
            if mute && is_heartbeat && is_faulty(&self.ledger) {
                continue;
            }
            Strings::while_paused(&self.strings, &self.ledger).await;
            let is_report = matches!(message.kind, Some(worker_message::Kind::Reports(_)));
            if let Some(worker_message::Kind::Reports(reports)) = &mut message.kind {
                self.distort(reports);
            }
            self.says(&message);
            if is_report && self.rng.random_range(0..5) == 0 {
                self.ledger.count("doubled reports");
                _ = link.send(message.clone()).await;
            }
            if link.send(message).await.is_err() {
                return;
            }
        }
    }

    /// Makes reports such as the coordinator cannot read, if that is what this world is about.
    fn distort(&mut self, reports: &mut wire::Reports) {
        let outdated = self.ledger.notes().outdated;
        for report in &mut reports.results {
            let key = (convert::fold(report.fold.clone()).unwrap(), Attempt(report.attempt));
            let spoilt = self.ledger.is_spoilt(key, self.rng.random_range(0..10) == 0);
            if let Some(result) = &mut report.result {
                result.version += 2 * u32::from(outdated); // version 2 is known
                result.best_epoch += if spoilt { 100 } else { 0 };
            }
        }
        for failure in reports.failures.iter_mut().filter_map(|report| report.failure.as_mut()) {
            if outdated {
                failure.class = format!("new-{}", failure.class);
            }
        }
    }

    fn says(&self, message: &WorkerMessage) {
        self.ledger.tell(&self.worker, &message.kind);
        match &message.kind {
            Some(worker_message::Kind::Hello(hello)) => self.says_hello(hello),
            Some(worker_message::Kind::Reports(reports)) => {
                reports.results.iter().for_each(|report| self.reports_result(report));
                reports.failures.iter().for_each(|report| self.reports_failure(report));
            }
            Some(worker_message::Kind::Goodbye(_)) => self.ledger.count("goodbyes"),
            _ => {}
        }
    }

    /// Whatever its slots train at this moment must be in it.
    fn says_hello(&self, hello: &wire::Hello) {
        self.ledger.count("hellos");
        let named: BTreeSet<(FoldKey, Attempt)> = hello
            .running
            .iter()
            .map(|running| (convert::fold(running.fold.clone()).unwrap(), Attempt(running.attempt)))
            .collect();
        for (fold, attempt) in self.ledger.in_training(&self.worker) {
            if !named.contains(&(fold, attempt)) {
                let worker = &self.worker;
                self.ledger.broken(format!("{worker} trains {fold}, attempt {attempt}, and does not say so"));
            }
        }
    }

    fn reports_result(&self, report: &wire::ResultReport) {
        let key = (convert::fold(report.fold.clone()).unwrap(), Attempt(report.attempt));
        let bits = report.result.as_ref().unwrap().test.as_ref().unwrap().accuracy.to_bits();
        if !self.ledger.is_spoilt(key, false) {
            self.ledger.reported(&self.worker, key, bits);
        }
    }

    fn reports_failure(&self, report: &wire::FailureReport) {
        self.ledger.count("reported failures");
        if report.failure.as_ref().unwrap().message.contains("no free slot") && !self.leaves() {
            self.ledger.sent_back(&self.worker);
        }
    }

    /// Whether it was asked to leave.
    fn leaves(&self) -> bool {
        self.strings.lock().unwrap().told().is_some()
    }

    fn hears(&self, message: &wire::CoordinatorMessage) {
        use coordinator_message::Kind;
        self.ledger.tell(&format!("to {}", self.worker), &message.kind);
        match &message.kind {
            Some(Kind::Welcome(welcome)) => {
                let verdicts = welcome.verdicts.iter().flat_map(|verdicts| &verdicts.verdicts);
                verdicts.for_each(|verdict| self.hears_verdict(verdict));
                self.ledger.met(&self.worker, welcome.start);
            }
            Some(Kind::Verdicts(verdicts)) => {
                verdicts.verdicts.iter().for_each(|verdict| self.hears_verdict(verdict));
            }
            Some(Kind::Acknowledgements(acks)) => {
                acks.acknowledgements.iter().for_each(|ack| self.hears_acknowledgement(ack));
            }
            _ => {}
        }
    }

    fn hears_verdict(&self, verdict: &wire::Verdict) {
        if !verdict.go_on {
            let fold = convert::fold(verdict.fold.clone()).unwrap();
            self.ledger.told_to_stop(&self.worker, fold, Attempt(verdict.attempt));
        }
    }

    fn hears_acknowledgement(&self, ack: &wire::Acknowledgement) {
        let (fold, attempt) = (convert::fold(ack.fold.clone()).unwrap(), Attempt(ack.attempt));
        let (was_outdated, spoilt) = {
            let notes = self.ledger.notes();
            (notes.was_outdated, notes.spoilt.contains(&(fold, attempt)))
        };
        match (ack.accepted, ack.keep) {
            (true, _) => self.ledger.acknowledged(fold, attempt),
            (false, true) if was_outdated => self.ledger.count("kept for an upgrade"),
            (false, false) if spoilt => self.ledger.count("refused for good"),
            (false, _) => self
                .ledger
                .broken(format!("the report of {fold}, attempt {attempt}, was refused: {}", ack.reason)),
        }
    }
}
