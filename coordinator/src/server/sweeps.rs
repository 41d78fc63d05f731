//! The people's service: submit, cancel, look. Converts and asks the driver; decides nothing.

use std::collections::HashMap;
use std::sync::Arc;

use togl_proto::{convert, wire};
use togl_scheduler::{By, Event, Reply, Submission, Submitted};
use togl_sweeps::program::Program;
use togl_sweeps::{SweepName, SweepSpec, WorkerId};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::seats::Seat;
use super::watching::look;
use super::workers::no_programs;
use super::{Shared, adoption, facts, following, status, views, watching};
use crate::programs::{ProgramError, Programs};
use crate::store::find_fold;
use crate::store::reading::acts;
use crate::tasks;

/// The calls of people and their programs.
pub(super) struct SweepsService(pub(super) Arc<Shared>);

/// Where callers say why.
const REASON_KEY: &str = "togl-reason-bin";

/// Bytes of a reason.
const REASON: usize = 500;

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl wire::sweeps_server::Sweeps for SweepsService {
    async fn submit(&self, request: Request<wire::SubmitRequest>) -> Answer<wire::SubmitReply> {
        let by = self.by(&request)?;
        let submission = planned(request.into_inner(), Files::Keep(self.0.programs.clone())).await?;
        let sweep = submission.name.to_string();
        let Reply::Submitted(change) = self.0.handle.submit(submission, by).await.map_err(status)? else {
            return Err(super::confused());
        };
        Ok(Response::new(submitted(sweep, change)))
    }

    async fn preview(&self, request: Request<wire::SubmitRequest>) -> Answer<wire::PreviewReply> {
        let submission = planned(request.into_inner(), Files::LookAt(self.0.programs.clone())).await?;
        let sweep = submission.name.to_string();
        let change = self.0.handle.preview(submission).await.map_err(status)?;
        let change = change.map(|change| submitted(sweep, change));
        Ok(Response::new(wire::PreviewReply { known: change.is_some(), change }))
    }

    async fn adopt(&self, request: Request<wire::AdoptRequest>) -> Answer<wire::AdoptReply> {
        let by = self.by(&request)?;
        let wire::AdoptRequest { sweep, results, check_only } = request.into_inner();
        let adoption = adoption::adoption(sweep_name(&sweep)?, results)?;
        if check_only {
            let counts = self.0.handle.check_adoption(adoption).await.map_err(status)?;
            return Ok(Response::new(adoption::counted(counts)));
        }
        let Reply::Adopted(counts) = self.ask(Event::Adopt(Box::new(adoption)), by).await? else {
            return Err(super::confused());
        };
        Ok(Response::new(adoption::counted(counts)))
    }

    async fn cancel(&self, request: Request<wire::CancelRequest>) -> Answer<wire::CancelReply> {
        let (by, sweep) = (self.by(&request)?, sweep_name(&request.into_inner().sweep)?);
        let Reply::Cancelled { abandoned, finished } = self.ask(Event::Cancel { sweep }, by).await? else {
            return Err(super::confused());
        };
        Ok(Response::new(wire::CancelReply { abandoned, finished }))
    }

    async fn pause(&self, request: Request<wire::PauseRequest>) -> Answer<wire::PauseReply> {
        let (by, sweep) = (self.by(&request)?, sweep_name(&request.into_inner().sweep)?);
        self.ask(Event::Pause { sweep }, by).await?;
        Ok(Response::new(wire::PauseReply {}))
    }

    async fn resume(&self, request: Request<wire::ResumeRequest>) -> Answer<wire::ResumeReply> {
        let (by, sweep) = (self.by(&request)?, sweep_name(&request.into_inner().sweep)?);
        self.ask(Event::Resume { sweep }, by).await?;
        Ok(Response::new(wire::ResumeReply {}))
    }

    async fn retry(&self, request: Request<wire::RetryRequest>) -> Answer<wire::RetryReply> {
        let (by, sweep) = (self.by(&request)?, sweep_name(&request.into_inner().sweep)?);
        let Reply::Retried { folds } = self.ask(Event::Retry { sweep }, by).await? else {
            return Err(super::confused());
        };
        Ok(Response::new(wire::RetryReply { folds }))
    }

    async fn archive(&self, request: Request<wire::ArchiveRequest>) -> Answer<wire::ArchiveReply> {
        let (by, sweep) = (self.by(&request)?, sweep_name(&request.into_inner().sweep)?);
        let Reply::Cancelled { abandoned, finished } = self.ask(Event::Archive { sweep }, by).await? else {
            return Err(super::confused());
        };
        Ok(Response::new(wire::ArchiveReply { abandoned, finished }))
    }

    async fn prioritise(&self, request: Request<wire::PrioritiseRequest>) -> Answer<wire::PrioritiseReply> {
        let by = self.by(&request)?;
        let wire::PrioritiseRequest { sweep, priority } = request.into_inner();
        self.ask(Event::Prioritise { sweep: sweep_name(&sweep)?, priority }, by).await?;
        Ok(Response::new(wire::PrioritiseReply {}))
    }

    async fn drain(&self, request: Request<wire::DrainRequest>) -> Answer<wire::DrainReply> {
        let by = self.by(&request)?;
        let wire::DrainRequest { worker, undo } = request.into_inner();
        // A drain can be taken back while the worker is away.
        if undo
            && let Ok(known) = worker.parse::<WorkerId>()
            && self.ask(Event::Undrain { worker: known.clone() }, by.clone()).await.is_ok()
        {
            return Ok(Response::new(wire::DrainReply { workers: vec![known.to_string()] }));
        }
        let workers = match worker.as_str() {
            "" => {
                self.0.handle.workers().await.map_err(status)?.into_iter().map(|view| view.worker).collect()
            }
            name => vec![self.worker(name).await?],
        };
        let event = |worker| if undo { Event::Undrain { worker } } else { Event::Drain { worker } };
        let events = workers.iter().cloned().map(event).collect();
        let answers = self.0.handle.steer_all(events, by).await.map_err(status)?;
        let told = workers.iter().zip(answers).filter(|(_, answer)| answer.is_ok()); // others left meanwhile
        Ok(Response::new(wire::DrainReply { workers: told.map(|(worker, _)| worker.to_string()).collect() }))
    }

    async fn settle_data(&self, request: Request<wire::SettleDataRequest>) -> Answer<wire::SettleDataReply> {
        let by = self.by(&request)?;
        let wire::SettleDataRequest { data, digest } = request.into_inner();
        let Reply::Settled { reopened } = self.ask(Event::SettleData { data, digest }, by).await? else {
            return Err(super::confused());
        };
        Ok(Response::new(wire::SettleDataReply { reopened }))
    }

    async fn list_disputes(&self, _: Request<wire::ListDisputesRequest>) -> Answer<wire::ListDisputesReply> {
        let disputes = self.0.handle.disputes().await.map_err(status)?;
        Ok(Response::new(wire::ListDisputesReply {
            disputes: disputes.into_iter().map(views::dispute).collect(),
        }))
    }

    async fn history(&self, request: Request<wire::HistoryRequest>) -> Answer<wire::HistoryReply> {
        let asked = request.into_inner().fold;
        let read = self.0.handle.reads().once(move |reader| {
            let fold = find_fold(reader, &asked)?;
            Ok((fold, reader.history(&fold)?))
        });
        let (fold, entries) = read.await.map_err(status)?;
        let entries = entries.into_iter().map(facts::happened).collect();
        Ok(Response::new(wire::HistoryReply { fold: Some(fold.into()), entries }))
    }

    async fn acts(&self, request: Request<wire::ActsRequest>) -> Answer<wire::ActsReply> {
        let sweep = match request.into_inner().sweep.as_str() {
            "" => None,
            name => Some(sweep_name(name)?),
        };
        let read = self.0.handle.reads().once(move |reader| acts(reader, sweep.as_ref()));
        let acts = read.await.map_err(status)?.into_iter().map(facts::act).collect();
        Ok(Response::new(wire::ActsReply { acts }))
    }

    async fn list_sweeps(&self, request: Request<wire::ListSweepsRequest>) -> Answer<wire::ListSweepsReply> {
        let mut sweeps = self.0.handle.sweeps().await.map_err(status)?;
        if request.into_inner().archived {
            sweeps.extend(self.0.handle.archived().await.map_err(status)?);
        }
        Ok(Response::new(wire::ListSweepsReply { sweeps: sweeps.into_iter().map(views::summary).collect() }))
    }

    async fn list_workers(&self, _: Request<wire::ListWorkersRequest>) -> Answer<wire::ListWorkersReply> {
        let workers = self.0.handle.workers().await.map_err(status)?;
        Ok(Response::new(wire::ListWorkersReply {
            workers: workers.into_iter().map(views::worker).collect(),
        }))
    }

    async fn demand(&self, _: Request<wire::DemandRequest>) -> Answer<wire::DemandReply> {
        Ok(Response::new(views::demand(self.0.handle.demand().await.map_err(status)?)))
    }

    async fn hold_pool(&self, request: Request<wire::HoldPoolRequest>) -> Answer<wire::HoldPoolReply> {
        let now = self.0.handle.now().await.map_err(status)?;
        self.0.pools.hold(now, request.into_inner()).map(Response::new)
    }

    async fn list_pools(&self, _: Request<wire::ListPoolsRequest>) -> Answer<wire::ListPoolsReply> {
        let now = self.0.handle.now().await.map_err(status)?;
        Ok(Response::new(wire::ListPoolsReply { pools: self.0.pools.list(now) }))
    }

    async fn status(&self, request: Request<wire::StatusRequest>) -> Answer<wire::SweepStatus> {
        let sweep = sweep_name(&request.into_inner().sweep)?;
        Ok(Response::new(look(&self.0, &sweep).await?.status))
    }

    async fn curves(&self, request: Request<wire::CurvesRequest>) -> Answer<wire::CurvesReply> {
        let wire::CurvesRequest { sweep, fold } = request.into_inner();
        let Some(fold) = fold else {
            return Ok(Response::new(watching::curves(&self.0, &sweep_name(&sweep)?).await?));
        };
        let key = convert::fold(Some(fold)).map_err(|error| Status::invalid_argument(error.to_string()))?;
        let points = self.0.live_progress.curve(&key);
        let curve = wire::RunningCurve { fold: Some(key.into()), points, config: String::new() };
        let running = if curve.points.is_empty() { Vec::new() } else { vec![curve] };
        Ok(Response::new(wire::CurvesReply { running }))
    }

    type WatchStream = ReceiverStream<Result<wire::SweepStatus, Status>>;

    async fn watch(&self, request: Request<wire::StatusRequest>) -> Answer<Self::WatchStream> {
        let seat = Seat::of(&request)?;
        let sweep = self.known_sweep(&request.into_inner().sweep).await?;
        let (sender, states) = mpsc::channel(1);
        tasks::spawn("watch", watching::watch(&self.0, seat, sweep, sender));
        Ok(Response::new(ReceiverStream::new(states)))
    }

    type FollowStream = ReceiverStream<Result<wire::Following, Status>>;

    async fn follow(&self, request: Request<wire::FollowRequest>) -> Answer<Self::FollowStream> {
        let seat = Seat::of(&request)?;
        let wire::FollowRequest { sweep, cursor } = request.into_inner();
        let sweep = self.known_sweep(&sweep).await?;
        let (sender, changes) = mpsc::channel(1);
        tasks::spawn("follow", following::follow(&self.0, seat, sweep, cursor, sender));
        Ok(Response::new(ReceiverStream::new(changes)))
    }

    async fn explain(&self, request: Request<wire::ExplainRequest>) -> Answer<wire::ExplainReply> {
        let asked = request.into_inner().fold;
        let fold =
            self.0.handle.reads().once(move |reader| find_fold(reader, &asked)).await.map_err(status)?;
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

    type ReadStream = facts::Stream;

    async fn read(&self, request: Request<wire::ReadRequest>) -> Answer<Self::ReadStream> {
        let seat = Seat::of(&request)?;
        let pages =
            self.0.handle.reads().begin(facts::wanted(request.into_inner())?).await.map_err(status)?;
        Ok(Response::new(facts::stream(pages, seat)))
    }

    async fn log(&self, request: Request<wire::LogRequest>) -> Answer<wire::LogReply> {
        let asked = request.into_inner().fold;
        let read = self.0.handle.reads().once(move |reader| reader.log(&find_fold(reader, &asked)?));
        let entries = read.await.map_err(status)?.into_iter().map(facts::log).collect();
        Ok(Response::new(wire::LogReply { entries }))
    }
}

impl SweepsService {
    /// A sweep that exists.
    async fn known_sweep(&self, name: &str) -> Result<SweepName, Status> {
        let sweep = sweep_name(name)?;
        match self.0.handle.sweep(sweep.clone()).await.map_err(status)? {
            Some(_) => Ok(sweep),
            None => Err(watching::unknown_sweep(&self.0, &sweep).await?),
        }
    }

    /// A worker that is here, with the nearest name if it is not.
    async fn worker(&self, name: &str) -> Result<WorkerId, Status> {
        let here = self.0.handle.workers().await.map_err(status)?;
        let found = here.iter().find(|view| view.worker.as_str() == name);
        let hint = || match here.is_empty() {
            true => "no worker is connected".to_owned(),
            false => togl_sweeps::nearest::hint(
                name,
                here.iter().map(|view| view.worker.as_str()).collect::<Vec<_>>(),
            ),
        };
        let unknown = || Status::not_found(format!("there is no worker `{name}`; {}", hint()));
        found.map(|view| view.worker.clone()).ok_or_else(unknown)
    }

    async fn ask(&self, event: Event, by: By) -> Result<Reply, Status> {
        self.0.handle.steer(event, by).await.map_err(status)
    }

    /// Who steers, and why.
    fn by<T>(&self, request: &Request<T>) -> Result<By, Status> {
        let name = self.0.admission.name_of(Seat::of(request)?.token());
        let said = request.metadata().get_bin(REASON_KEY).map(|said| said.to_bytes());
        let said = said.transpose().map_err(|_| Status::invalid_argument("the reason is no text"))?;
        let reason = String::from_utf8(said.map(Vec::from).unwrap_or_default())
            .map_err(|_| Status::invalid_argument("the reason is no text"))?;
        if reason.len() > REASON {
            let message = format!(
                "the reason has {} bytes, and {REASON} are kept; say it in fewer words",
                reason.len()
            );
            return Err(Status::invalid_argument(message));
        }
        Ok(By { name, reason })
    }
}

/// Enumerating a large grid takes a while; the other calls must not wait for it.
async fn planned(request: wire::SubmitRequest, files: Files) -> Result<Submission, Status> {
    let wire::SubmitRequest { yaml, data_digests, program } = request;
    let planning = tokio::task::spawn_blocking(move || plan(yaml, data_digests, &files, &program));
    planning.await.map_err(|_| Status::internal("planning the sweep failed"))?
}

fn submitted(sweep: String, change: Submitted) -> wire::SubmitReply {
    let Submitted { trials, folds, already_done: done, added, removed, .. } = change;
    wire::SubmitReply { sweep, trials, folds, done, added, removed }
}

/// What is done with the files of a program, and where they are.
enum Files {
    Keep(Option<Programs>),
    LookAt(Option<Programs>),
}

impl Files {
    /// Refuses a program where none are run, and one whose files are not known.
    fn take(&self, program: &Program, bytes: &[u8]) -> Result<(), Status> {
        let (Self::Keep(programs) | Self::LookAt(programs)) = self;
        let Some(programs) = programs else { return Err(no_programs()) };
        if !program.is_frozen() {
            return Err(Status::invalid_argument(
                "the files of the program were not read; submit with `togl submit`",
            ));
        }
        match (self, &program.frozen) {
            (Self::Keep(_), Some(digest)) => programs.keep(digest, bytes).map_err(|error| match error {
                ProgramError::Disk(_) => Status::unavailable(error.to_string()),
                _ => Status::invalid_argument(error.to_string()),
            }),
            _ => Ok(()),
        }
    }
}

/// Checks the text again and makes the event's content of it.
fn plan(
    yaml: String,
    data_digests: HashMap<String, String>,
    files: &Files,
    program: &[u8],
) -> Result<Submission, Status> {
    let spec = SweepSpec::parse(&yaml).map_err(|error| Status::invalid_argument(error.to_string()))?;
    if let Some(own) = &spec.program {
        files.take(own, program)?;
    }
    let folds = spec.folds();
    let trials = spec.trials.iter().map(|trial| (trial.id, trial.config.canonical())).collect();
    Ok(Submission {
        race: spec.race().map(Arc::new),
        name: spec.name,
        yaml,
        priority: spec.priority,
        limits: spec.limits,
        resources: spec.resources,
        data_digests: data_digests.into_iter().collect(),
        trials,
        folds,
        gathered: 0,
    })
}

fn sweep_name(text: &str) -> Result<SweepName, Status> {
    text.parse().map_err(|error: togl_sweeps::ids::IdError| Status::invalid_argument(error.to_string()))
}
