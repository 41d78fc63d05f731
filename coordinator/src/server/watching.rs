//! One sweep as people watch it: what is running where and how far, what failed, how long it may take. Puts together
//! what the scheduler and the board know; decides nothing.

use std::sync::Arc;
use std::time::Duration;

use togl_proto::wire;
use togl_scheduler::SweepDetail;
use togl_sweeps::{FoldKey, SweepName, WorkerId};
use tokio::sync::mpsc;
use tonic::Status;

use super::{Shared, status, still_good, views};
use crate::tokens::TokenId;

/// Watchers hear of changes at most this often.
const PAUSE: Duration = Duration::from_millis(200);

/// The sweep as it is now, and whether it has ended.
pub(super) async fn look(shared: &Shared, sweep: &SweepName) -> Result<(wire::SweepStatus, bool), Status> {
    let detail = shared.handle.sweep_detail(sweep.clone()).await.map_err(status)?;
    let Some(detail) = detail else { return Err(unknown_sweep(shared, sweep).await?) };
    let ended = detail.summary.has_ended();
    let eta_seconds = if ended { 0 } else { time_left(shared, &detail) };
    Ok((wire_status(shared, detail, eta_seconds), ended))
}

/// The refusal of a sweep that does not exist, with the nearest name.
pub(super) async fn unknown_sweep(shared: &Shared, sweep: &SweepName) -> Result<Status, Status> {
    let known = shared.handle.sweeps().await.map_err(status)?;
    let names: Vec<&str> = known.iter().map(|view| view.name.as_str()).collect();
    let hint = togl_sweeps::nearest::hint(sweep.as_str(), names);
    Ok(Status::not_found(format!("there is no sweep `{sweep}`; {hint}")))
}

/// Folds left, in units of the mean fold so far, spread over as many slots as are busy now; 0 if unknown.
fn time_left(shared: &Shared, detail: &SweepDetail) -> u64 {
    let counts = detail.summary.counts;
    let share_done = |worker: &WorkerId, fold: &FoldKey| {
        let progress = shared.board.get(worker, fold).and_then(|seen| seen.progress)?;
        Some(f64::from(progress.epoch) / f64::from(progress.max_epochs.max(1)))
    };
    let shares = detail.running.iter().filter_map(|running| share_done(&running.worker, &running.fold));
    let done: f64 = shares.sum();
    let left = (counts.pending + counts.running) as f64 - done;
    let seconds = shared.board.mean_seconds().unwrap_or(0.0) * left / counts.running.max(1) as f64;
    seconds.max(0.0) as u64
}

fn wire_status(shared: &Shared, detail: SweepDetail, eta_seconds: u64) -> wire::SweepStatus {
    let running = detail.running.into_iter().map(|running| {
        let seen = shared.board.get(&running.worker, &running.fold);
        let (slot, progress) = seen.map_or((0, None), |seen| (seen.slot, seen.progress));
        wire::RunningFold {
            fold: Some(running.fold.into()),
            attempt: running.attempt.0,
            worker: running.worker.to_string(),
            slot,
            progress,
            config: running.trial.to_string(),
        }
    });
    let failed = detail.failed.into_iter().map(|failed| wire::FailedFold {
        fold: Some(failed.fold.into()),
        failure: Some(failed.failure.into()),
        config: failed.trial.to_string(),
    });
    wire::SweepStatus {
        running: running.collect(),
        failures: failed.collect(),
        summary: Some(views::summary(detail.summary)),
        trials_finished: detail.trials_finished,
        yaml: detail.yaml.to_string(),
        eta_seconds,
    }
}

/// Sends a state whenever something changed, until the sweep has ended or the watcher left.
pub(super) async fn watch(
    shared: Arc<Shared>,
    token: TokenId,
    sweep: SweepName,
    states: mpsc::Sender<Result<wire::SweepStatus, Status>>,
) {
    loop {
        let looked = match still_good(&shared, &token) {
            Ok(()) => look(&shared, &sweep).await,
            Err(status) => Err(status),
        };
        let (state, ended) = match looked {
            Ok(looked) => looked,
            Err(status) => return drop(states.send(Err(status)).await),
        };
        if states.send(Ok(state)).await.is_err() || ended {
            return;
        }
        // Progress of epochs is not a stored change, so look again after a pause in any case.
        tokio::time::sleep(PAUSE).await;
    }
}
