//! What the scheduler shows, as wire messages. Converts and nothing else.

use togl_proto::wire;
use togl_scheduler::{Demand, Dispute, FoldShape, SweepView, WorkerView};

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
        allocation: view.info.allocation,
    }
}

pub(super) fn demand(demand: Demand) -> wire::DemandReply {
    let shape = |shape: FoldShape| wire::Shape {
        device: shape.device.as_str().to_owned(),
        memory: shape.memory,
        resumable: shape.resumable,
        p90_seconds: shape.p90_seconds,
        folds: shape.folds,
        free_slots: shape.free_slots,
    };
    let free_slots = demand.free_slots;
    wire::DemandReply { shapes: demand.shapes.into_iter().map(shape).collect(), free_slots }
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
