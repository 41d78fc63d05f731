//! The workers' service: one task per session that turns wire messages into events for the driver and its
//! replies into wire messages. Authenticates (through `authorisation.rs`), converts, asks; decides nothing.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use futures::{FutureExt, StreamExt};
use togl_proto::convert;
use togl_proto::wire::{self, coordinator_message::Kind, worker_message};
use togl_scheduler::{Event, FailureAnswer, Joined, Lease, Rejection, Reply, ResultAnswer, WorkerInfo};
use togl_sweeps::{Capability, WorkerId};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status, Streaming};

use super::Shared;
use super::complaints::Offence;
use super::connections::From;
use super::live_progress::Seen;
use super::seats::Seat;
use super::worker_messages::{
    Refused, Report, acknowledge, failure_event, invalid, lease, rejected, result_event, running_folds,
    verdicts,
};
use crate::tasks;
use crate::tokens::TokenId;

/// Heartbeats carry the progress that people watch, so they come more often than leases need.
const HEARTBEAT_MS: u32 = 500;

/// Characters of the name of a device.
const LONGEST_DEVICE: usize = 64;

/// Characters of where a worker runs.
const LONGEST_ALLOCATION: usize = 100;

/// What comes next from a worker: a message, the reason why there are no more, or their end.
type Incoming = Option<Result<wire::WorkerMessage, Status>>;

type Outgoing = mpsc::Sender<Result<wire::CoordinatorMessage, Status>>;

/// The calls of workers: one session each.
pub(super) struct WorkersService(pub(super) Arc<Shared>);

#[tonic::async_trait]
impl wire::workers_server::Workers for WorkersService {
    type SessionStream = ReceiverStream<Result<wire::CoordinatorMessage, Status>>;

    async fn session(
        &self,
        request: Request<Streaming<wire::WorkerMessage>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let (outgoing, messages) = mpsc::channel(64);
        let token = Seat::of(&request)?.token().clone();
        let peer = request.extensions().get::<From>().map_or([0, 0, 0, 0].into(), From::peer);
        let guest = Guest { shared: self.0.clone(), token, peer, outgoing };
        tasks::spawn("worker session", converse(guest, request.into_inner()));
        Ok(Response::new(ReceiverStream::new(messages)))
    }

    async fn program(
        &self,
        request: Request<wire::ProgramRequest>,
    ) -> Result<Response<wire::ProgramReply>, Status> {
        let digest = request.into_inner().digest;
        let Some(programs) = self.0.programs.clone() else { return Err(no_programs()) };
        let read = tokio::task::spawn_blocking(move || programs.read(&digest)).await;
        let read = read.map_err(|_| Status::internal("reading the files of a program failed"))?;
        let found =
            read.map_err(|error| Status::unavailable(format!("the files cannot be read: {error}")))?;
        let missing =
            || Status::not_found("the coordinator does not have these files; submit the sweep again");
        Ok(Response::new(wire::ProgramReply { bundle: found.ok_or_else(missing)? }))
    }
}

/// Why nothing about programs is done here.
pub(super) fn no_programs() -> Status {
    Status::failed_precondition("this coordinator takes no programs; start it with `togl serve --programs`")
}

/// Who is at the other end, before and after it has said its name.
struct Guest {
    shared: Arc<Shared>,
    token: TokenId,
    peer: IpAddr,
    outgoing: Outgoing,
}

impl Guest {
    /// Ends a session with its reason, and writes down what the peer did wrong.
    async fn refuse(&self, status: Status) {
        let offence = match status.code() {
            Code::InvalidArgument | Code::OutOfRange => Some(Offence::BadMessage),
            Code::Unauthenticated => Some(Offence::BadToken),
            _ => None,
        };
        if let Some(offence) = offence {
            self.shared.admission.complain(offence, self.peer, status.message());
        }
        let _ = self.outgoing.send(Err(status)).await; // if it is gone, it need not know
    }
}

/// One session from hello to the end of the stream.
async fn converse(guest: Guest, mut incoming: Streaming<wire::WorkerMessage>) {
    let mut session = match greet(&guest, &mut incoming).await {
        Ok((worker, number)) => Session { guest, worker, number, wanted: 0 },
        Err(status) => return guest.refuse(status).await,
    };
    let ended = session.listen(&mut incoming).await;
    session.guest.shared.live_progress.update(&session.worker, Vec::new());
    let worker = session.worker.clone();
    let farewell = match ended {
        End::Goodbye => Event::WorkerLeft { worker, session: session.number },
        End::Lost => Event::WorkerDisconnected { worker, session: session.number },
        End::Refused(status) => {
            session.guest.refuse(status).await;
            Event::WorkerDisconnected { worker, session: session.number }
        }
    };
    if let Err(error) = session.guest.shared.handle.call(farewell).await {
        tracing::debug!(worker = %session.worker, %error, "farewell was not taken");
    }
}

/// Hello and welcome. Gives the worker's name and the number of its session.
async fn greet(
    guest: &Guest,
    incoming: &mut Streaming<wire::WorkerMessage>,
) -> Result<(WorkerId, u64), Status> {
    let shared = &guest.shared;
    let first = incoming.next().await.transpose()?.and_then(|message| message.kind);
    let Some(worker_message::Kind::Hello(hello)) = first else {
        return Err(Status::invalid_argument("a session begins with a hello"));
    };
    let worker: WorkerId =
        hello.worker.parse().map_err(|e| Status::invalid_argument(format!("worker: {e}")))?;
    let running = running_folds(&hello.running)?;
    let short = |text: String, most: usize| text.chars().take(most).collect::<String>();
    let devices = hello.devices.into_iter().take(hello.slots as usize);
    let info = WorkerInfo {
        host: short(hello.host, 255),
        slots: hello.slots,
        devices: devices.map(|device| short(device, LONGEST_DEVICE)).collect(),
        memories: hello.memories.into_iter().take(hello.slots as usize).collect(),
        code_version: short(hello.code_version, 64),
        numerics: hello.numerics,
        allocation: short(hello.allocation, LONGEST_ALLOCATION),
        seconds_left: hello.seconds_left,
        moves_checkpoints: hello.moves_checkpoints,
        offers: offers(&hello.offers, shared),
    };
    let (host, slots) = (info.host.clone(), info.slots);
    let event = Event::WorkerJoined { worker: worker.clone(), info, running };
    let Reply::Joined(joined) = shared.handle.call(event).await.map_err(super::status)? else {
        return Err(super::confused());
    };
    tracing::info!(%worker, host, slots, "worker joined");
    let session = joined.session;
    let welcome = wire::CoordinatorMessage { kind: Some(Kind::Welcome(welcome(shared, joined))) };
    let _ = guest.outgoing.send(Ok(welcome)).await; // if it is gone, the other direction notices
    Ok((worker, session))
}

fn welcome(shared: &Shared, joined: Joined) -> wire::Welcome {
    let lease_ms = u32::try_from(joined.lease_term).unwrap_or(u32::MAX);
    wire::Welcome {
        incarnation: shared.incarnation.clone(),
        heartbeat_ms: (lease_ms / 3).min(HEARTBEAT_MS),
        lease_ms,
        verdicts: Some(verdicts(joined.orders)),
        start: shared.start,
    }
}

/// What a worker offers that this coordinator knows and lets be done.
fn offers(words: &[String], shared: &Shared) -> BTreeSet<Capability> {
    let known = words.iter().filter_map(|word| Capability::from_word(word));
    let allowed = |offer: &Capability| match offer {
        Capability::Programs => shared.programs.is_some(),
    };
    known.filter(allowed).collect()
}

/// How a session ended.
enum End {
    Goodbye,
    Lost,
    Refused(Status),
}

struct Session {
    guest: Guest,
    worker: WorkerId,
    number: u64,
    /// Leases that the worker asked for and has not got yet.
    wanted: u32,
}

impl Session {
    async fn listen(&mut self, incoming: &mut Streaming<wire::WorkerMessage>) -> End {
        let mut supply = self.guest.shared.handle.supply();
        let mut ahead = None;
        loop {
            let message = match ahead.take() {
                Some(message) => message,
                None => tokio::select! {
                    message = incoming.next() => message,
                    changed = supply.changed() => match changed {
                        Ok(()) => match self.refill().await {
                            Ok(()) => continue,
                            Err(status) => return End::Refused(status),
                        },
                        Err(_) => return End::Lost, // the driver stopped
                    },
                },
            };
            let kind = match message {
                Some(Ok(message)) => message.kind,
                Some(Err(status)) if matches!(status.code(), Code::OutOfRange | Code::Unauthenticated) => {
                    return End::Refused(status);
                }
                _ => return End::Lost,
            };
            if matches!(kind, Some(worker_message::Kind::Reports(_))) {
                ahead = self.look_ahead(incoming);
            }
            // Several messages may have come at once, so each is asked about when its turn has come.
            let handled = match (self.still_good(), kind) {
                (Err(status), _) => Err(status),
                (Ok(()), Some(worker_message::Kind::Goodbye(_))) => return End::Goodbye,
                (Ok(()), kind) => self.on_message(kind).await,
            };
            if let Err(status) = handled {
                return End::Refused(status);
            }
        }
    }

    /// Workers report and ask in one breath. A request that is here already is answered together with the reports, in
    /// one transaction; anything else is kept for its turn.
    fn look_ahead(&mut self, incoming: &mut Streaming<wire::WorkerMessage>) -> Option<Incoming> {
        match incoming.next().now_or_never()? {
            Some(Ok(wire::WorkerMessage { kind: Some(worker_message::Kind::Ask(ask)) })) => {
                self.wanted = ask.count;
                None
            }
            other => Some(other),
        }
    }

    async fn on_message(&mut self, kind: Option<worker_message::Kind>) -> Result<(), Status> {
        match kind {
            Some(worker_message::Kind::Ask(ask)) => {
                self.wanted = ask.count;
                self.fill_demand().await
            }
            Some(worker_message::Kind::Heartbeat(heartbeat)) => self.on_heartbeat(heartbeat).await,
            Some(worker_message::Kind::Reports(reports)) => self.on_reports(reports).await,
            Some(worker_message::Kind::Log(lines)) => self.on_log(lines).await,
            Some(worker_message::Kind::Hello(_)) => {
                Err(Status::invalid_argument("hello is said once a session"))
            }
            Some(worker_message::Kind::Goodbye(_)) | None => Ok(()),
        }
    }

    /// The request for what the worker still wants; none if it wants nothing.
    fn demand(&self) -> Option<Event> {
        (self.wanted > 0).then(|| Event::LeasesAsked { worker: self.worker.clone(), count: self.wanted })
    }

    fn still_good(&self) -> Result<(), Status> {
        self.guest.shared.admission.still_good(&self.guest.token)
    }

    /// There may be something for a worker that asked before.
    async fn refill(&mut self) -> Result<(), Status> {
        if self.wanted > 0 {
            self.still_good()?;
        }
        self.fill_demand().await
    }

    async fn fill_demand(&mut self) -> Result<(), Status> {
        match self.demand() {
            Some(event) => {
                let reply = self.ask(event).await?;
                self.supply_leases(reply).await
            }
            None => Ok(()),
        }
    }

    async fn supply_leases(&mut self, reply: Reply) -> Result<(), Status> {
        let leases = match reply {
            Reply::Leases(leases) => leases,
            Reply::Leave => {
                self.wanted = 0;
                self.say(Kind::Leave(wire::Leave {})).await;
                return Ok(());
            }
            _ => return Err(super::confused()),
        };
        if leases.is_empty() {
            return Ok(());
        }
        self.wanted = self.wanted.saturating_sub(leases.len() as u32);
        let with_held = |granted: Lease| {
            let held = self.guest.shared.held(&granted.fold);
            lease(granted, held)
        };
        let leases = leases.into_iter().map(with_held).collect();
        self.say(Kind::Leases(wire::Leases { leases })).await;
        Ok(())
    }

    async fn on_heartbeat(&mut self, heartbeat: wire::Heartbeat) -> Result<(), Status> {
        let running = running_folds(&heartbeat.running)?;
        let seen = running.iter().zip(heartbeat.running).map(|((fold, _), said)| Seen {
            fold: *fold,
            slot: said.slot,
            progress: said.progress,
        });
        self.guest.shared.live_progress.update(&self.worker, seen.collect());
        let Reply::Orders(orders) = self.ask(Event::Renewed { worker: self.worker.clone(), running }).await?
        else {
            return Err(super::confused());
        };
        let stops = verdicts(orders.into_iter().filter(|order| order.verdict.is_err()).collect());
        if !stops.verdicts.is_empty() {
            self.say(Kind::Verdicts(stops)).await;
        }
        Ok(())
    }

    /// Everything in one message is decided and stored together, and so is what the worker wants next.
    async fn on_reports(&mut self, reports: wire::Reports) -> Result<(), Status> {
        let results = reports.results.into_iter().map(|report| result_event(&self.worker, report));
        let failures = reports.failures.into_iter().map(|report| failure_event(&self.worker, report));
        let (mut acknowledgements, mut told, mut events) = (Vec::new(), Vec::new(), Vec::new());
        for Report { fold, attempt, seconds, event, refusal } in results.chain(failures) {
            if let Some(Refused { reason, .. }) = &refusal {
                self.complain(reason);
            }
            match event {
                Some(event) => {
                    told.push((fold, attempt, seconds, refusal));
                    events.push(event);
                }
                None => acknowledgements.push(acknowledge(fold, attempt, refusal.map_or(Ok(()), Err))),
            }
        }
        events.extend(self.demand());
        let mut answers = self.guest.shared.handle.call_all(events).await.map_err(super::status)?;
        let leases = (answers.len() > told.len()).then(|| answers.pop()).flatten();
        let mut finished = Vec::new();
        for ((fold, attempt, seconds, refusal), answer) in told.into_iter().zip(answers) {
            if matches!(answer, Ok(Reply::Result(ResultAnswer::Accepted))) {
                finished.extend(convert::fold(fold.clone()));
            }
            let outcome = self.judge(answer, seconds)?;
            acknowledgements.push(acknowledge(fold, attempt, refusal.map_or(outcome, Err)));
        }
        self.say(Kind::Acknowledgements(wire::Acknowledgements { acknowledgements })).await;
        if let Some(reply) = leases {
            self.supply_leases(reply.map_err(rejected)?).await?;
        }
        self.guest.shared.forget_checkpoints(finished).await;
        Ok(())
    }

    /// What the worker is told of a report that could be read; `Err` inside: refused for good, with the reason.
    fn judge(&self, answer: Result<Reply, Rejection>, seconds: f64) -> Result<Result<(), Refused>, Status> {
        let answer = answer.map_err(rejected)?;
        Ok(match answer {
            Reply::Result(ResultAnswer::Accepted) => {
                self.guest.shared.live_progress.note_seconds(seconds);
                Ok(())
            }
            Reply::Result(ResultAnswer::Refused(refusal))
            | Reply::Failure(FailureAnswer::Refused(refusal)) => {
                self.complain(&refusal.to_string());
                Err(Refused { reason: refusal.to_string(), keep: false })
            }
            Reply::Result(_) | Reply::Failure(_) => Ok(()),
            _ => return Err(super::confused()),
        })
    }

    /// Losing a line of a log is allowed; failing the session over it is not.
    async fn on_log(&mut self, lines: wire::LogLines) -> Result<(), Status> {
        let (fold, attempt) =
            (convert::fold(lines.fold).map_err(invalid)?, convert::attempt(lines.attempt).map_err(invalid)?);
        if let Err(error) =
            self.guest.shared.handle.append_log(self.worker.clone(), fold, attempt, lines.text).await
        {
            tracing::debug!(%fold, %error, "log line dropped");
        }
        Ok(())
    }

    fn complain(&self, reason: &str) {
        let Guest { shared, peer, .. } = &self.guest;
        shared.admission.complain(Offence::BadReport, *peer, &format!("worker {}: {reason}", self.worker));
    }

    async fn ask(&self, event: Event) -> Result<Reply, Status> {
        self.guest.shared.handle.call(event).await.map_err(super::status)
    }

    /// If the worker is gone, the other direction notices.
    async fn say(&self, kind: Kind) {
        let _ = self.guest.outgoing.send(Ok(wire::CoordinatorMessage { kind: Some(kind) })).await;
    }
}
