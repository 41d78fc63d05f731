//! What the scheduler and the store show, as wire messages. Converts and nothing else.

use togl_proto::wire;
use togl_scheduler::{Dispute, FoldState, FoldView, SweepView, WorkerView};
use togl_sweeps::WorkerId;

use crate::store::history::Happened;

pub(super) fn fold(view: FoldView) -> wire::FoldSummary {
    let state = view.state.as_str().to_owned();
    let (worker, failure) = match view.state {
        FoldState::Running { worker, .. } | FoldState::Finished { worker, .. } => (worker.to_string(), None),
        FoldState::Failed(failure) => (String::new(), Some(failure.into())),
        FoldState::Pending => (String::new(), None),
    };
    wire::FoldSummary { fold: Some(view.fold.into()), state, attempts: view.attempts, worker, failure }
}

pub(super) fn summary(view: SweepView) -> wire::SweepSummary {
    wire::SweepSummary {
        name: view.name.to_string(),
        state: view.state.to_string(),
        trials: view.trials,
        folds: view.counts.total(),
        pending: view.counts.pending,
        running: view.counts.running,
        finished: view.counts.finished,
        failed: view.counts.failed,
        priority: view.priority,
        note: view.note.as_deref().unwrap_or_default().to_owned(),
    }
}

pub(super) fn worker(view: WorkerView) -> wire::WorkerSummary {
    wire::WorkerSummary {
        worker: view.worker.to_string(),
        host: view.info.host,
        state: view.connection.as_str().to_owned(),
        slots: view.info.slots,
        devices: view.info.devices,
        running: view.running.into_iter().map(|(fold, _)| fold.into()).collect(),
        code_version: view.info.code_version,
        note: view.note.as_deref().unwrap_or_default().to_owned(),
    }
}

pub(super) fn dispute(dispute: Dispute) -> wire::Dispute {
    let dissent = dispute.dissent.into_iter();
    wire::Dispute {
        data: dispute.data.to_string(),
        expected: dispute.expected.to_string(),
        dissent: dissent
            .map(|(fold, digest)| wire::Dissent { fold: Some(fold.into()), digest: digest.to_string() })
            .collect(),
    }
}

pub(super) fn happened(happened: Happened) -> wire::HistoryEntry {
    wire::HistoryEntry {
        at: happened.at,
        event: happened.event,
        attempt: happened.attempt.map_or(0, |attempt| attempt.0),
        worker: happened.worker.as_ref().map(WorkerId::to_string).unwrap_or_default(),
        detail: happened.detail,
    }
}
