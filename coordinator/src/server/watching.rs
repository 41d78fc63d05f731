//! One sweep as people watch it: what is running where and how far, what failed, how long it may take, why nothing happens.
//! Puts together what the scheduler and the live progress know, once for all who watch; decides nothing.

use std::sync::Arc;

use togl_proto::wire;
use togl_scheduler::SweepDetail;
use togl_sweeps::{FoldKey, SweepName, WorkerId};
use tokio::sync::mpsc;
use tonic::Status;

use super::feeds::Listener;
use super::seats::Seat;
use super::{Shared, status, views};

/// A sweep as it was a moment ago.
#[derive(Debug, PartialEq)]
pub(super) struct Picture {
    pub(super) status: wire::SweepStatus,
    /// Whether nothing more will happen.
    pub(super) ended: bool,
}

/// The sweep as it is now.
pub(super) async fn look(shared: &Shared, sweep: &SweepName) -> Result<Picture, Status> {
    let detail = shared.handle.sweep_detail(sweep.clone()).await.map_err(status)?;
    let Some(detail) = detail else { return Err(unknown_sweep(shared, sweep).await?) };
    let ended = detail.summary.has_ended();
    let eta_seconds = if ended { 0 } else { time_left(shared, &detail) };
    Ok(Picture { status: wire_status(shared, detail, eta_seconds), ended })
}

/// The refusal of a sweep that does not exist, with the nearest name.
pub(super) async fn unknown_sweep(shared: &Shared, sweep: &SweepName) -> Result<Status, Status> {
    let known = shared.handle.sweeps().await.map_err(status)?;
    let names: Vec<&str> = known.iter().map(|view| view.name.as_str()).collect();
    let hint = togl_sweeps::nearest::hint(sweep.as_str(), names);
    Ok(Status::not_found(format!("there is no sweep `{sweep}`; {hint}")))
}

/// Folds left, in units of the mean fold so far, spread over as many slots as are busy now; 0 if unknown or if nothing
/// moves.
fn time_left(shared: &Shared, detail: &SweepDetail) -> u64 {
    let counts = detail.summary.counts;
    if counts.running == 0 {
        return 0;
    }
    let share_done = |worker: &WorkerId, fold: &FoldKey| {
        let progress = shared.live_progress.get(worker, fold).and_then(|seen| seen.progress)?;
        Some(f64::from(progress.epoch) / f64::from(progress.max_epochs.max(1)))
    };
    let shares = detail.running.iter().filter_map(|running| share_done(&running.worker, &running.fold));
    let done: f64 = shares.sum();
    let left = (counts.pending + counts.running) as f64 - done;
    let seconds = shared.live_progress.mean_seconds().unwrap_or(0.0) * left / counts.running as f64;
    seconds.max(0.0) as u64
}

fn wire_status(shared: &Shared, detail: SweepDetail, eta_seconds: u64) -> wire::SweepStatus {
    let running = detail.running.into_iter().map(|running| {
        let seen = shared.live_progress.get(&running.worker, &running.fold);
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
        host: failed.host.to_string(),
    });
    let classes = detail.classes.into_iter();
    wire::SweepStatus {
        running: running.collect(),
        failures: failed.collect(),
        summary: Some(views::summary(detail.summary)),
        trials_finished: detail.trials_finished,
        yaml: detail.yaml.to_string(),
        eta_seconds,
        failed_by_class: classes
            .map(|(class, folds)| wire::ClassCount { class: class.to_string(), folds })
            .collect(),
        standstill: detail.standstill.map(|why| why.to_string()).unwrap_or_default(),
    }
}

/// The learning curves of folds that run, as far as they go.
pub(super) async fn curves(shared: &Shared, sweep: &SweepName) -> Result<wire::CurvesReply, Status> {
    let detail = shared.handle.sweep_detail(sweep.clone()).await.map_err(status)?;
    let Some(detail) = detail else { return Err(unknown_sweep(shared, sweep).await?) };
    let curves = detail.running.into_iter().map(|running| {
        let points = shared.live_progress.curve(&running.fold);
        let (fold, config) = (Some(running.fold.into()), running.trial.to_string());
        wire::RunningCurve { fold, points, config }
    });
    Ok(wire::CurvesReply { running: curves.filter(|curve| !curve.points.is_empty()).collect() })
}

/// Begins to send a state whenever something changed, until the sweep has ended or the watcher left.
pub(super) fn watch(
    shared: &Arc<Shared>,
    seat: Seat,
    sweep: SweepName,
    to: mpsc::Sender<Result<wire::SweepStatus, Status>>,
) -> impl Future<Output = ()> + Send + 'static {
    let (looking, name) = (shared.clone(), sweep.clone());
    let feed = shared.watched.listen(sweep.clone(), move |_| {
        let (shared, sweep) = (looking.clone(), name.clone());
        async move { glance(&shared, &sweep).await }
    });
    let mut listener = Listener { shared: shared.clone(), seat, feed, to };
    async move {
        while let Some(mut picture) = listener.next().await {
            // The feed may have looked before the sweep was submitted again, so the end is looked at once more.
            if picture.ended
                && let Ok(now) = glance(&listener.shared, &sweep).await
            {
                picture = Arc::new(now);
            }
            if !listener.send(picture.status.clone()).await || picture.ended {
                return;
            }
        }
    }
}

/// The sweep without its text, which may be large and does not change while somebody watches.
async fn glance(shared: &Shared, sweep: &SweepName) -> Result<Picture, Status> {
    let mut picture = look(shared, sweep).await?;
    picture.status.yaml.clear();
    Ok(picture)
}
