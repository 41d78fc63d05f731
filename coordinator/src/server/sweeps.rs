//! The people's service: submit, cancel, look. Converts and asks the driver; decides nothing.

use std::sync::Arc;
use std::time::Duration;

use togl_proto::wire;
use togl_scheduler::{Event, FoldState, FoldView, Reply, Submission, SweepDetail, SweepView, WorkerView};
use togl_sweeps::{FoldKey, SweepName, SweepSpec};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::{Shared, status};
use crate::store::{LogPiece, ResultQuery};
use crate::tasks;

/// Watchers hear of changes at most this often.
const WATCH_PAUSE: Duration = Duration::from_millis(200);

/// Folds in one page of a listing.
const FOLD_PAGE: usize = 1000;

/// The service.
pub(super) struct SweepsService(pub(super) Arc<Shared>);

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl wire::sweeps_server::Sweeps for SweepsService {
    async fn submit(&self, request: Request<wire::SubmitRequest>) -> Answer<wire::SubmitReply> {
        let yaml = request.into_inner().yaml;
        // Enumerating a large grid takes a while; the other calls must not wait for it.
        let submission = tokio::task::spawn_blocking(move || plan(yaml))
            .await
            .map_err(|_| Status::internal("planning the sweep failed"))??;
        let sweep = submission.name.to_string();
        let Reply::Submitted(s) = self.ask(Event::Submit(Box::new(submission))).await? else {
            return Err(super::confused());
        };
        Ok(Response::new(wire::SubmitReply {
            sweep,
            trials: s.trials,
            folds: s.folds,
            done: s.already_done,
            added: s.added,
            removed: s.removed,
        }))
    }

    async fn cancel(&self, request: Request<wire::CancelRequest>) -> Answer<wire::CancelReply> {
        let sweep = sweep_name(&request.into_inner().sweep)?;
        let Reply::Cancelled { abandoned, finished } = self.ask(Event::Cancel { sweep }).await? else {
            return Err(super::confused());
        };
        Ok(Response::new(wire::CancelReply { abandoned, finished }))
    }

    async fn pause(&self, request: Request<wire::PauseRequest>) -> Answer<wire::PauseReply> {
        let sweep = sweep_name(&request.into_inner().sweep)?;
        self.ask(Event::Pause { sweep }).await?;
        Ok(Response::new(wire::PauseReply {}))
    }

    async fn resume(&self, request: Request<wire::ResumeRequest>) -> Answer<wire::ResumeReply> {
        let sweep = sweep_name(&request.into_inner().sweep)?;
        self.ask(Event::Resume { sweep }).await?;
        Ok(Response::new(wire::ResumeReply {}))
    }

    async fn retry(&self, request: Request<wire::RetryRequest>) -> Answer<wire::RetryReply> {
        let sweep = sweep_name(&request.into_inner().sweep)?;
        let Reply::Retried { folds } = self.ask(Event::Retry { sweep }).await? else {
            return Err(super::confused());
        };
        Ok(Response::new(wire::RetryReply { folds }))
    }

    async fn list_sweeps(&self, _: Request<wire::ListSweepsRequest>) -> Answer<wire::ListSweepsReply> {
        let sweeps = self.0.handle.sweeps().await.map_err(status)?;
        Ok(Response::new(wire::ListSweepsReply { sweeps: sweeps.into_iter().map(summary).collect() }))
    }

    async fn list_workers(&self, _: Request<wire::ListWorkersRequest>) -> Answer<wire::ListWorkersReply> {
        let workers = self.0.handle.workers().await.map_err(status)?;
        Ok(Response::new(wire::ListWorkersReply { workers: workers.into_iter().map(worker).collect() }))
    }

    async fn status(&self, request: Request<wire::StatusRequest>) -> Answer<wire::SweepStatus> {
        let sweep = sweep_name(&request.into_inner().sweep)?;
        Ok(Response::new(look(&self.0, &sweep).await?.0))
    }

    type WatchStream = ReceiverStream<Result<wire::SweepStatus, Status>>;

    async fn watch(&self, request: Request<wire::StatusRequest>) -> Answer<Self::WatchStream> {
        let sweep = sweep_name(&request.into_inner().sweep)?;
        look(&self.0, &sweep).await?; // refuse an unknown sweep at once
        let (sender, states) = mpsc::channel(4);
        tasks::spawn("watch", watch(self.0.clone(), sweep, sender));
        Ok(Response::new(ReceiverStream::new(states)))
    }

    async fn list_folds(&self, request: Request<wire::ListFoldsRequest>) -> Answer<wire::ListFoldsReply> {
        let wire::ListFoldsRequest { sweep, from } = request.into_inner();
        let sweep = sweep_name(&sweep)?;
        let start = usize::try_from(from).unwrap_or(usize::MAX);
        let page = self.0.handle.folds(sweep.clone(), start, FOLD_PAGE).await.map_err(status)?;
        let Some(folds) = page else { return Err(unknown_sweep(&self.0, &sweep).await?) };
        let next = if folds.len() == FOLD_PAGE { from + FOLD_PAGE as u64 } else { 0 };
        Ok(Response::new(wire::ListFoldsReply { folds: folds.into_iter().map(fold).collect(), next }))
    }

    async fn explain(&self, request: Request<wire::ExplainRequest>) -> Answer<wire::ExplainReply> {
        let fold = self.find(request.into_inner().fold).await?;
        let explanation = self.0.handle.explain(fold).await.map_err(status)?;
        let explanation = explanation.ok_or_else(|| Status::not_found(format!("there is no fold {fold}")))?;
        let attempts =
            explanation.attempts.into_iter().map(|(attempt, worker, ending)| wire::AttemptSummary {
                attempt: attempt.0,
                worker: worker.to_string(),
                ending: ending.map_or_else(String::new, |ending| ending.to_string()),
            });
        Ok(Response::new(wire::ExplainReply {
            fold: Some(fold.into()),
            reason: explanation.reason.to_string(),
            sweeps: explanation.sweeps.iter().map(SweepName::to_string).collect(),
            attempts: attempts.collect(),
        }))
    }

    type ResultsStream = ReceiverStream<Result<wire::ResultRow, Status>>;

    async fn results(&self, request: Request<wire::ResultsRequest>) -> Answer<Self::ResultsStream> {
        let sweep = sweep_name(&request.into_inner().sweep)?;
        let (sender, stream) = mpsc::channel(64);
        tasks::spawn("results", send_results(self.0.clone(), sweep, sender));
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn log(&self, request: Request<wire::LogRequest>) -> Answer<wire::LogReply> {
        let fold = self.find(request.into_inner().fold).await?;
        let entries = self.0.handle.log(fold).await.map_err(status)?;
        let entry = |piece: LogPiece| wire::LogEntry {
            fold: Some(piece.fold.into()),
            attempt: piece.attempt.0,
            text: piece.text,
        };
        Ok(Response::new(wire::LogReply { entries: entries.into_iter().map(entry).collect() }))
    }
}

impl SweepsService {
    /// The one fold that a perhaps shortened name means.
    async fn find(&self, asked: String) -> Result<FoldKey, Status> {
        let found = self.0.handle.find_fold(asked).await.map_err(status)?;
        found.map_err(|error| Status::not_found(error.to_string()))
    }

    async fn ask(&self, event: Event) -> Result<Reply, Status> {
        self.0.handle.call(event).await.map_err(status)
    }
}

/// Sends every accepted result, page by page, until done or the reader left.
async fn send_results(
    shared: Arc<Shared>,
    sweep: SweepName,
    rows: mpsc::Sender<Result<wire::ResultRow, Status>>,
) {
    let mut query = ResultQuery::accepted(sweep);
    loop {
        let page = match shared.handle.results(query.clone()).await {
            Ok(page) => page,
            Err(error) => return drop(rows.send(Err(status(error))).await),
        };
        for row in page.rows {
            let row = wire::ResultRow {
                fold: Some(row.fold.into()),
                attempt: row.attempt.0,
                worker: row.worker.to_string(),
                config: row.trial,
                result: Some(row.result.into()),
            };
            if rows.send(Ok(row)).await.is_err() {
                return;
            }
        }
        match page.next {
            Some(next) => query.from = next,
            None => return,
        }
    }
}

/// Checks the text again and makes the event's content of it.
fn plan(yaml: String) -> Result<Submission, Status> {
    let spec = SweepSpec::parse(&yaml).map_err(|error| Status::invalid_argument(error.to_string()))?;
    let trials = spec.trials().map_err(|error| Status::invalid_argument(error.to_string()))?;
    let folds = trials.iter().flat_map(|trial| spec.folds_of(trial.id)).collect();
    let trials = trials.iter().map(|trial| (trial.id, trial.config.canonical())).collect();
    Ok(Submission {
        name: spec.name,
        yaml,
        priority: spec.priority,
        limits: spec.limits,
        resources: spec.resources,
        data_digests: Vec::new(),
        trials,
        folds,
    })
}

fn sweep_name(text: &str) -> Result<SweepName, Status> {
    text.parse().map_err(|error: togl_sweeps::ids::IdError| Status::invalid_argument(error.to_string()))
}

/// The sweep as it is now, and whether it has ended.
async fn look(shared: &Shared, sweep: &SweepName) -> Result<(wire::SweepStatus, bool), Status> {
    let detail = shared.handle.sweep_detail(sweep.clone()).await.map_err(status)?;
    let Some(detail) = detail else { return Err(unknown_sweep(shared, sweep).await?) };
    let ended = detail.summary.has_ended();
    let eta_seconds = if ended { 0 } else { time_left(shared, &detail) };
    Ok((wire_status(shared, detail, eta_seconds), ended))
}

/// The refusal of a sweep that does not exist, with the nearest name.
async fn unknown_sweep(shared: &Shared, sweep: &SweepName) -> Result<Status, Status> {
    let known = shared.handle.sweeps().await.map_err(status)?;
    let names: Vec<&str> = known.iter().map(|view| view.name.as_str()).collect();
    let hint = togl_sweeps::nearest::hint(sweep.as_str(), names);
    Ok(Status::not_found(format!("there is no sweep `{sweep}`; {hint}")))
}

/// Folds left, in units of the mean fold so far, spread over as many slots as are busy now; 0 if unknown.
fn time_left(shared: &Shared, detail: &SweepDetail) -> u64 {
    let counts = detail.summary.counts;
    let share_done = |fold: &FoldKey| {
        let progress = shared.board.get(fold).and_then(|seen| seen.progress)?;
        Some(f64::from(progress.epoch) / f64::from(progress.max_epochs.max(1)))
    };
    let done: f64 = detail.running.iter().filter_map(|running| share_done(&running.fold)).sum();
    let left = (counts.pending + counts.running) as f64 - done;
    let seconds = shared.board.mean_seconds().unwrap_or(0.0) * left / counts.running.max(1) as f64;
    seconds.max(0.0) as u64
}

fn wire_status(shared: &Shared, detail: SweepDetail, eta_seconds: u64) -> wire::SweepStatus {
    let running = detail.running.into_iter().map(|running| {
        let seen = shared.board.get(&running.fold).filter(|seen| seen.worker == running.worker);
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
        summary: Some(summary(detail.summary)),
        trials_finished: detail.trials_finished,
        yaml: detail.yaml.to_string(),
        eta_seconds,
    }
}

/// Sends a state whenever something changed, until the sweep has ended or the watcher left.
async fn watch(
    shared: Arc<Shared>,
    sweep: SweepName,
    states: mpsc::Sender<Result<wire::SweepStatus, Status>>,
) {
    loop {
        let (state, ended) = match look(&shared, &sweep).await {
            Ok(looked) => looked,
            Err(status) => return drop(states.send(Err(status)).await),
        };
        if states.send(Ok(state)).await.is_err() || ended {
            return;
        }
        // Progress of epochs is not a stored change, so look again after a pause in any case.
        tokio::time::sleep(WATCH_PAUSE).await;
    }
}

fn fold(view: FoldView) -> wire::FoldSummary {
    let state = view.state.as_str().to_owned();
    let (worker, failure) = match view.state {
        FoldState::Running { worker, .. } | FoldState::Finished { worker, .. } => (worker.to_string(), None),
        FoldState::Failed(failure) => (String::new(), Some(failure.into())),
        FoldState::Pending => (String::new(), None),
    };
    wire::FoldSummary { fold: Some(view.fold.into()), state, attempts: view.attempts, worker, failure }
}

fn summary(view: SweepView) -> wire::SweepSummary {
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
    }
}

fn worker(view: WorkerView) -> wire::WorkerSummary {
    wire::WorkerSummary {
        worker: view.worker.to_string(),
        host: view.info.host,
        state: view.connection.as_str().to_owned(),
        slots: view.info.slots,
        devices: view.info.devices,
        running: view.running.into_iter().map(|(fold, _)| fold.into()).collect(),
        code_version: view.info.code_version,
    }
}
