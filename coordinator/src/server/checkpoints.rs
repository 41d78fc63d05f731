//! The service of checkpoints: takes them in and hands them out, chunk by chunk, whoever is slow or lies. Authenticates through
//! `authorisation.rs`, converts, asks the driver who may and the room what is kept; decides nothing and touches no file on
//! the threads that serve others.

use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use togl_proto::checkpoint::{CHUNK, Held, LARGEST};
use togl_proto::convert::{self, ConvertError};
use togl_proto::storage::StorageError;
use togl_proto::wire::checkpoint_chunk::Kind;
use togl_proto::wire::place_checkpoint_reply::Place;
use togl_proto::wire::{self, CheckpointChunk, CheckpointHead};
use togl_scheduler::Use;
use togl_sweeps::{Attempt, FoldKey, WorkerId, hint};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status, Streaming};

use super::Shared;
use super::complaints::Offence;
use super::connections::From;
use super::worker_messages::invalid;
use crate::checkpoints::{Declined, HeldCheckpoints, UploadError};
use crate::driver::Handle;
use crate::tasks;

/// How long a peer may take for one chunk, in either direction.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a checkpoint may take to come.
const LONGEST: Duration = Duration::from_secs(600);

/// How often it is looked which checkpoints are of use.
const REVIEW: Duration = Duration::from_secs(10);

/// Folds that are asked about in one look.
const PART: usize = 1_000;

/// The calls about checkpoints.
pub(super) struct CheckpointsService(pub(super) Arc<Shared>);

#[tonic::async_trait]
impl wire::checkpoints_server::Checkpoints for CheckpointsService {
    type GetStream = ReceiverStream<Result<CheckpointChunk, Status>>;

    async fn put(
        &self,
        request: Request<Streaming<CheckpointChunk>>,
    ) -> Result<Response<wire::PutCheckpointReply>, Status> {
        let peer = peer(&request);
        let taken = tokio::time::timeout(LONGEST, self.take(request.into_inner())).await;
        let taken = taken.unwrap_or_else(|_| Err(too_slow()));
        Ok(answer(taken.inspect_err(|status| self.complain(peer, status))?))
    }

    async fn get(
        &self,
        request: Request<wire::GetCheckpointRequest>,
    ) -> Result<Response<Self::GetStream>, Status> {
        let (peer, room) = (peer(&request), self.room()?.clone());
        let wire::GetCheckpointRequest { fold, attempt, worker, follows_urls } = request.into_inner();
        let about = About::read(fold, attempt, &worker)?;
        self.good_for(&about).await.inspect_err(|status| self.complain(peer, status))?;
        let About { fold, attempt, .. } = about;
        let nothing = || Status::not_found(format!("no checkpoint of {fold} is held"));
        let head = |held: Held, url| {
            let (fold, attempt, worker) = (Some(fold.into()), attempt.0, String::new());
            CheckpointHead { fold, attempt, worker, held: Some(held.into()), url }
        };
        let (sender, chunks) = mpsc::channel(1);
        if room.is_in_storage() {
            let (held, url) = room.url_to_get(fold).filter(|_| follows_urls).ok_or_else(nothing)?;
            let chunk = CheckpointChunk { kind: Some(Kind::Head(head(held, url))) };
            let _ = sender.try_send(Ok(chunk)); // there is room for one
        } else {
            let (held, file) = apart(move || room.read(fold)).await?.ok_or_else(nothing)?;
            tasks::spawn("checkpoint", hand_out(head(held, String::new()), file, sender));
        }
        Ok(Response::new(ReceiverStream::new(chunks)))
    }

    async fn place(
        &self,
        request: Request<CheckpointHead>,
    ) -> Result<Response<wire::PlaceCheckpointReply>, Status> {
        let peer = peer(&request);
        let place = self.place_for(request.into_inner()).await;
        let place = Some(place.inspect_err(|status| self.complain(peer, status))?);
        Ok(Response::new(wire::PlaceCheckpointReply { place }))
    }

    async fn placed(
        &self,
        request: Request<CheckpointHead>,
    ) -> Result<Response<wire::PutCheckpointReply>, Status> {
        let peer = peer(&request);
        let taken = self.take_placed(request.into_inner()).await;
        Ok(answer(taken.inspect_err(|status| self.complain(peer, status))?))
    }

    async fn try_storage(
        &self,
        _: Request<wire::TryStorageRequest>,
    ) -> Result<Response<wire::TryStorageReply>, Status> {
        let (put_url, get_url) = self.room()?.urls_to_try().unwrap_or_default();
        Ok(Response::new(wire::TryStorageReply { put_url, get_url }))
    }
}

fn answer(taken: Result<(), Declined>) -> Response<wire::PutCheckpointReply> {
    let (kept, reason) = match taken {
        Ok(()) => (true, String::new()),
        Err(declined) => (false, declined.to_string()),
    };
    Response::new(wire::PutCheckpointReply { kept, reason })
}

impl CheckpointsService {
    fn room(&self) -> Result<&HeldCheckpoints, Status> {
        let nobody = || Status::unimplemented("this coordinator holds no checkpoints");
        self.0.checkpoints.as_ref().ok_or_else(nobody)
    }

    /// What a checkpoint of a fold is good for; nobody hears of it who was not given the fold.
    async fn good_for(&self, about: &About) -> Result<Use, Status> {
        let About { fold, attempt, worker } = about;
        let asked = self.0.handle.checkpoint_of(worker.clone(), *fold, *attempt).await;
        let (issued, good_for) = asked.map_err(super::status)?;
        let never =
            || format!("this coordinator never gave attempt {attempt} of fold {fold} to worker {worker}");
        issued.then_some(good_for).ok_or_else(|| Status::permission_denied(never()))
    }

    /// What a head says, and what its fold is good for.
    async fn read(&self, head: CheckpointHead) -> Result<(FoldKey, Held, Use), Status> {
        let about = About::read(head.fold, head.attempt, &head.worker)?;
        let held =
            head.held.ok_or(ConvertError::Missing("held")).and_then(Held::try_from).map_err(invalid)?;
        let good_for = self.good_for(&about).await?;
        Ok((about.fold, held, good_for))
    }

    /// Where one goes.
    async fn place_for(&self, head: CheckpointHead) -> Result<Place, Status> {
        let room = self.room()?;
        let (fold, held, good_for) = self.read(head).await?;
        Ok(match room.judge(&fold, held, good_for) {
            Err(declined) => Place::Declined(declined.to_string()),
            Ok(()) => room.url_to_put(fold, held).map_or(Place::Here(wire::Here {}), Place::Url),
        })
    }

    /// Takes in one that is in storage.
    async fn take_placed(&self, head: CheckpointHead) -> Result<Result<(), Declined>, Status> {
        let room = self.room()?.clone();
        let (fold, held, good_for) = self.read(head).await?;
        if good_for == Use::Over {
            room.discard(fold, held);
            return Ok(Err(Declined::Over));
        }
        let kept = apart(move || room.take_placed(fold, held)).await?.map_err(refused)?;
        let (epochs, bytes) = (held.epochs, held.size);
        tracing::debug!(%fold, epochs, bytes, kept = kept.is_ok(), "a checkpoint is in storage");
        Ok(kept)
    }

    /// Takes one in.
    async fn take(&self, mut chunks: Streaming<CheckpointChunk>) -> Result<Result<(), Declined>, Status> {
        let room = self.room()?.clone();
        let Some(Kind::Head(head)) = next(&mut chunks).await? else {
            return Err(Status::invalid_argument("a checkpoint begins with its head"));
        };
        let (fold, held, good_for) = self.read(head).await?;
        if held.size > LARGEST {
            return Err(Status::invalid_argument(format!(
                "held.size: {} bytes; at most {} MiB move through a coordinator",
                held.size,
                LARGEST >> 20
            )));
        }
        if room.is_in_storage() {
            return Ok(Err(Declined::Elsewhere));
        }
        if let Err(declined) = room.judge(&fold, held, good_for) {
            return Ok(Err(declined));
        }
        let _place = room.place().ok_or_else(crowded)?;
        let begun = apart(move || room.begin(fold, held)).await?;
        let mut upload = begun.map_err(|error| refused(error.into()))?;
        while let Some(kind) = next(&mut chunks).await? {
            let Kind::Bytes(bytes) = kind else {
                return Err(Status::invalid_argument("a checkpoint has one head"));
            };
            upload = apart(move || upload.take(&bytes).map(|()| upload)).await?.map_err(refused)?;
        }
        let kept = apart(move || upload.keep()).await?.map_err(refused)?;
        let (epochs, bytes) = (held.epochs, held.size);
        tracing::debug!(%fold, epochs, bytes, kept = kept.is_ok(), "a checkpoint came");
        Ok(kept)
    }

    /// Writes down what the peer did wrong.
    fn complain(&self, peer: IpAddr, status: &Status) {
        let offence = match status.code() {
            Code::InvalidArgument | Code::OutOfRange => Offence::BadMessage,
            Code::PermissionDenied => Offence::BadReport,
            Code::Unauthenticated => Offence::BadToken,
            _ => return,
        };
        self.0.admission.complain(offence, peer, status.message());
    }
}

/// Who speaks of which attempt.
struct About {
    fold: FoldKey,
    attempt: Attempt,
    worker: WorkerId,
}

impl About {
    fn read(fold: Option<wire::Fold>, attempt: u32, worker: &str) -> Result<Self, Status> {
        let (fold, attempt) =
            (convert::fold(fold).map_err(invalid)?, convert::attempt(attempt).map_err(invalid)?);
        let worker = worker.parse().map_err(|error| Status::invalid_argument(format!("worker: {error}")))?;
        Ok(Self { fold, attempt, worker })
    }
}

fn peer<T>(request: &Request<T>) -> IpAddr {
    request.extensions().get::<From>().map_or([0, 0, 0, 0].into(), From::peer)
}

/// What comes next; nothing after the last.
async fn next(chunks: &mut Streaming<CheckpointChunk>) -> Result<Option<Kind>, Status> {
    let chunk = tokio::time::timeout(PATIENCE, chunks.next()).await.map_err(|_| too_slow())?;
    let Some(chunk) = chunk.transpose()? else { return Ok(None) };
    chunk.kind.map(Some).ok_or_else(|| Status::invalid_argument("a chunk of a checkpoint holds nothing"))
}

fn too_slow() -> Status {
    Status::deadline_exceeded("the checkpoint takes too long to come")
}

fn crowded() -> Status {
    let hint = "try again in a moment";
    Status::resource_exhausted(hint::below("too many checkpoints come at once", hint))
}

fn refused(error: UploadError) -> Status {
    match error {
        UploadError::Torn(_) => Status::invalid_argument(error.to_string()),
        UploadError::Disk(_) => {
            tracing::warn!(%error, "a checkpoint is not kept");
            Status::internal(error.to_string())
        }
        UploadError::Storage(StorageError::NotThere { .. }) => Status::failed_precondition(error.to_string()),
        UploadError::Storage(_) => Status::unavailable(error.to_string()),
    }
}

/// Sends a checkpoint for as long as somebody takes it.
async fn hand_out(
    head: CheckpointHead,
    mut file: File,
    chunks: mpsc::Sender<Result<CheckpointChunk, Status>>,
) {
    let mut kind = Kind::Head(head);
    loop {
        let chunk = Ok(CheckpointChunk { kind: Some(kind) });
        if !matches!(tokio::time::timeout(PATIENCE, chunks.send(chunk)).await, Ok(Ok(()))) {
            return; // gone, or so slow that the file is better closed
        }
        let read = move || {
            let mut bytes = Vec::with_capacity(CHUNK);
            file.by_ref().take(CHUNK as u64).read_to_end(&mut bytes).map(|_| (bytes, file))
        };
        let (bytes, rest) = match apart(read).await {
            Ok(Ok((bytes, rest))) if !bytes.is_empty() => (bytes, rest),
            Ok(Ok(_)) => return,
            // The worker finds that something is missing.
            Ok(Err(error)) => return tracing::warn!(%error, "a checkpoint cannot be read to its end"),
            Err(_) => return,
        };
        (kind, file) = (Kind::Bytes(bytes), rest);
    }
}

/// Removes, for as long as the coordinator lives, what is of no use any more: also what a process before this one did not come
/// to, and what came while its fold ended.
pub(super) async fn look_after(room: Option<HeldCheckpoints>, handle: Handle) {
    let Some(room) = room else { return std::future::pending().await };
    let mut due = tokio::time::interval(REVIEW);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = due.tick() => {
                for part in room.folds().chunks(PART) {
                    if let Ok((now, uses)) = handle.uses_of_checkpoints(part.to_vec()).await {
                        let room = room.clone();
                        let _ = apart(move || room.review(now, &uses)).await; // only a stop keeps it from that
                    }
                }
                let room = room.clone();
                let _ = apart(move || room.tidy()).await; // likewise
            }
            () = room.has_waste() => {
                let room = room.clone();
                let _ = apart(move || room.remove_waste()).await; // likewise
            }
        }
    }
}

impl Shared {
    /// The checkpoint that is held of a fold.
    pub(super) fn held(&self, fold: &FoldKey) -> Option<Held> {
        self.checkpoints.as_ref()?.held(fold)
    }

    /// These folds have their results.
    pub(super) async fn forget_checkpoints(&self, folds: Vec<FoldKey>) {
        let held: Vec<FoldKey> = folds.into_iter().filter(|fold| self.held(fold).is_some()).collect();
        let Some(room) = self.checkpoints.clone().filter(|_| !held.is_empty()) else { return };
        let _ = apart(move || held.iter().for_each(|fold| room.forget(fold))).await; // else it is reviewed later
    }
}

/// Does something on a thread where it may take its time.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Status> {
    let stopping = |_| Status::unavailable("the coordinator is stopping; try again in a moment");
    tokio::task::spawn_blocking(work).await.map_err(stopping)
}
