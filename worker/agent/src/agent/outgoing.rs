//! What the agent says: hello, requests for leases, heartbeats, reports, logs. Reads the agent's state and changes
//! nothing; when something is to be said is decided elsewhere.

use togl_proto::wire::{self, WorkerMessage, worker_message};
use togl_sweeps::{Attempt, FoldKey, FoldResult};

use super::{Agent, Slot};
use crate::clock::left;
use crate::crash;
use crate::slots::EpochReport;
use crate::spool::{SpoolEntry, SpooledOutcome};

impl Agent {
    pub(super) async fn say_hello(&mut self) {
        let hello = wire::Hello {
            worker: self.identity.worker.to_string(),
            host: self.identity.host.clone(),
            slots: self.slots.len() as u32,
            devices: self.identity.devices.clone(),
            memories: self.identity.memories.clone(),
            code_version: self.identity.code_version.clone(),
            numerics: togl_sweeps::trial::NUMERICS,
            running: self.in_hand(),
            allocation: self.identity.allocation.clone(),
            seconds_left: self.end.map(|end| left(end).as_secs()),
            moves_checkpoints: self.identity.moves_checkpoints,
            offers: self.identity.offers.iter().map(ToString::to_string).collect(),
        };
        self.send(worker_message::Kind::Hello(hello)).await;
    }

    pub(super) async fn ask_for_leases(&mut self) {
        if self.leaving || self.closing {
            return;
        }
        let free = self.slots.iter().filter(|slot| slot.work.is_none()).count();
        self.send(worker_message::Kind::Ask(wire::LeaseRequest { count: free as u32 })).await;
    }

    pub(super) async fn send_heartbeat(&mut self) {
        let running = self.running();
        self.send(worker_message::Kind::Heartbeat(wire::Heartbeat { running })).await;
    }

    pub(super) async fn send_log(&mut self, fold: FoldKey, attempt: Attempt, text: String) {
        tracing::debug!(%fold, "{text}");
        let text = text + "\n"; // lines arrive one by one and are kept as one text
        let lines = wire::LogLines { fold: Some(fold.into()), attempt: attempt.0, text };
        self.send(worker_message::Kind::Log(lines)).await;
    }

    pub(super) async fn report_all(&mut self) {
        let Some(incarnation) = self.session.as_ref().and_then(|s| s.incarnation.clone()) else { return };
        let waiting: Vec<SpoolEntry> = self.spool.waiting(&incarnation).cloned().collect();
        for some in waiting.chunks(16) {
            self.report(some).await;
        }
    }

    /// Reports to the store that issued the attempts; another one would refuse them for good.
    pub(super) async fn report(&mut self, entries: &[SpoolEntry]) {
        let store = self.session.as_ref().and_then(|session| session.incarnation.as_deref());
        let mut reports = wire::Reports::default();
        for entry in entries.iter().filter(|entry| store == Some(&entry.incarnation)).cloned() {
            let (fold, attempt) = (Some(entry.fold.into()), entry.attempt.0);
            match entry.outcome {
                SpooledOutcome::Result(result) => {
                    let result = Some(FoldResult::from(*result).into());
                    reports.results.push(wire::ResultReport { fold, attempt, result });
                }
                SpooledOutcome::Failure(failure) => {
                    let failure = Some(failure.into());
                    reports.failures.push(wire::FailureReport { fold, attempt, failure });
                }
            }
        }
        if reports.results.is_empty() && reports.failures.is_empty() {
            return;
        }
        crash::point("report");
        self.send(worker_message::Kind::Reports(reports)).await;
        crash::point("reported");
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

    /// Without a session nothing is said: what matters is in the spool, the rest is said again.
    pub(super) async fn send(&mut self, kind: worker_message::Kind) {
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
