//! The courier: brings checkpoints to the coordinator, or into the storage that it names, and fetches them, each over a connection of
//! its own, so that no heartbeat waits behind bytes. Compares what came with what was promised. Whatever goes wrong costs time and never a result, so it
//! tries a few times and then says why it did not. Knows nothing of what is in the bytes; when something is carried is decided
//! by whoever trains.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use togl_proto::checkpoint::{CHUNK, DigestCheck, Held, LARGEST, LARGEST_STORED, Torn};
use togl_proto::client::{AuthorisedChannel, ConnectError};
use togl_proto::convert::ConvertError;
use togl_proto::storage::{self, StorageError};
use togl_proto::wire::checkpoint_chunk::Kind;
use togl_proto::wire::checkpoints_client::CheckpointsClient;
use togl_proto::wire::place_checkpoint_reply::Place;
use togl_proto::wire::{self, CheckpointChunk, CheckpointHead, GetCheckpointRequest};
use togl_sweeps::{Attempt, FoldKey, WorkerId};
use tonic::{Code, Status, Streaming};

/// How long one try through the coordinator may take. A worker that was told to stop leaves sooner, if its folds were given less time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pauses between tries.
const PAUSES: [Duration; 3] = [Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(2)];

/// What a connection gives: somebody to bring checkpoints to.
pub type CourierConnection = Result<CheckpointsClient<AuthorisedChannel>, ConnectError>;

type Connect = dyn Fn() -> Pin<Box<dyn Future<Output = CourierConnection> + Send>> + Send + Sync;

/// Why a checkpoint was not carried.
#[derive(Debug, thiserror::Error)]
pub enum CourierError {
    /// No connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The coordinator said no, or the connection broke.
    #[error("{}", .0.message())]
    Refused(Box<Status>),
    /// What came is not what was promised.
    #[error("it came torn: {0}")]
    Torn(#[from] Torn),
    /// What came does not make sense.
    #[error("it came without a proper head: {0}")]
    Head(#[from] ConvertError),
    /// It is too large to move.
    #[error("it has {0} bytes, and at most {max} MiB move", max = LARGEST >> 20)]
    TooLarge(u64),
    /// Storage did not take or give it.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The thread that asks storage is gone, because the program ends.
    #[error("this worker is stopping")]
    Stopping,
    /// It took too long.
    #[error("it took longer than {} s", PATIENCE.as_secs())]
    TooSlow,
}

impl From<Status> for CourierError {
    fn from(status: Status) -> Self {
        Self::Refused(Box::new(status))
    }
}

impl CourierError {
    /// Whether it may be otherwise in a moment.
    fn may_pass(&self) -> bool {
        match self {
            Self::Connect(ConnectError::Unreachable { .. } | ConnectError::Stranger { .. })
            | Self::Torn(_) => true,
            Self::Refused(status) => {
                matches!(
                    status.code(),
                    Code::ResourceExhausted | Code::Unavailable | Code::Unknown | Code::Cancelled
                )
            }
            Self::Storage(error) => error.may_pass(),
            Self::Connect(_) | Self::Head(_) | Self::TooLarge(_) | Self::TooSlow | Self::Stopping => false,
        }
    }

    fn is(&self, code: Code) -> bool {
        matches!(self, Self::Refused(status) if status.code() == code)
    }
}

/// What became of a checkpoint that was brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Brought {
    /// The coordinator holds it.
    Kept,
    /// The coordinator has no use for it, for this reason.
    Declined(String),
    /// This coordinator holds no checkpoints, so none are brought to it.
    NobodyHolds,
}

/// Carries checkpoints of one worker. Cheap to clone.
#[derive(Clone)]
pub struct Courier {
    worker: WorkerId,
    connect: Arc<Connect>,
    /// The coordinator has said that it holds none.
    nobody_holds: Arc<AtomicBool>,
}

impl Courier {
    /// A courier that makes each connection by `connect`.
    pub fn new<C>(worker: WorkerId, connect: impl Fn() -> C + Send + Sync + 'static) -> Self
    where
        C: Future<Output = CourierConnection> + Send + 'static,
    {
        Self { worker, connect: Arc::new(move || Box::pin(connect())), nobody_holds: Arc::default() }
    }

    /// Brings a checkpoint of an attempt that this worker was given.
    pub async fn bring(
        &self,
        fold: FoldKey,
        attempt: Attempt,
        epochs: u32,
        bytes: Vec<u8>,
    ) -> Result<Brought, CourierError> {
        if self.nobody_holds.load(Ordering::Relaxed) {
            return Ok(Brought::NobodyHolds);
        }
        if bytes.len() as u64 > LARGEST_STORED {
            return Err(CourierError::TooLarge(bytes.len() as u64));
        }
        let held = Held::of(epochs, &bytes);
        let worker = self.worker.to_string();
        let (fold, held, url) = (Some(fold.into()), Some(held.into()), String::new());
        let head = CheckpointHead { fold, attempt: attempt.0, worker, held, url };
        let (head, bytes) = (&head, Arc::new(bytes));
        match self.persist(|| self.carry(head.clone(), bytes.clone())).await {
            Err(error) if error.is(Code::Unimplemented) => {
                self.nobody_holds.store(true, Ordering::Relaxed);
                Ok(Brought::NobodyHolds)
            }
            outcome => outcome,
        }
    }

    /// Fetches the checkpoint that the coordinator holds of a fold; none if it holds none any more.
    pub async fn fetch(
        &self,
        fold: FoldKey,
        attempt: Attempt,
    ) -> Result<Option<(Held, Vec<u8>)>, CourierError> {
        let request = GetCheckpointRequest {
            fold: Some(fold.into()),
            attempt: attempt.0,
            worker: self.worker.to_string(),
            follows_urls: true,
        };
        let request = &request;
        match self.persist(|| self.get(request.clone())).await {
            Err(error) if error.is(Code::NotFound) || error.is(Code::Unimplemented) => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    /// Tries the way that checkpoints take, with a few bytes where it leads into storage. Says through what it leads.
    pub async fn try_out(&self) -> Result<&'static str, CourierError> {
        let asked = within(async {
            Ok((self.connect)().await?.try_storage(wire::TryStorageRequest {}).await?.into_inner())
        });
        let wire::TryStorageReply { put_url, get_url } = match asked.await {
            Err(error) if error.is(Code::Unimplemented) => return Ok("nothing; the coordinator holds none"),
            asked => asked?,
        };
        if put_url.is_empty() {
            return Ok("the coordinator");
        }
        let came = apart(move || {
            storage::put(&put_url, storage::TRIED)?;
            storage::get(&get_url, storage::TRIED.len() as u64)
        });
        match came.await? == storage::TRIED {
            true => Ok("storage"),
            false => Err(Torn::Other.into()),
        }
    }

    /// Tries until it is done, will never be, or was tried often enough.
    async fn persist<T, F>(&self, mut carry: impl FnMut() -> F) -> Result<T, CourierError>
    where
        F: Future<Output = Result<T, CourierError>>,
    {
        for pause in PAUSES {
            match carry().await {
                Err(error) if error.may_pass() => tokio::time::sleep(pause).await,
                outcome => return outcome,
            }
        }
        carry().await
    }

    /// Asks where a checkpoint goes, and brings it there.
    async fn carry(&self, head: CheckpointHead, bytes: Arc<Vec<u8>>) -> Result<Brought, CourierError> {
        let mut client = within(async { Ok((self.connect)().await?) }).await?;
        let asked = within(async { Ok(client.place(head.clone()).await?.into_inner().place) }).await;
        let place = match asked {
            Ok(place) => place.unwrap_or(Place::Here(wire::Here {})),
            // An older one knows no other place than itself.
            Err(error) if error.is(Code::Unimplemented) => Place::Here(wire::Here {}),
            Err(error) => return Err(error),
        };
        match place {
            Place::Here(_) => within(put(client, head, bytes)).await,
            Place::Declined(reason) => Ok(Brought::Declined(reason)),
            Place::Url(url) => {
                apart(move || storage::put(&url, &bytes)).await?;
                within(async { Ok(brought(client.placed(head).await?.into_inner())) }).await
            }
        }
    }

    async fn get(&self, request: GetCheckpointRequest) -> Result<(Held, Vec<u8>), CourierError> {
        let (held, url, mut came, mut comparison) = within(self.receive(request)).await?;
        if !url.is_empty() {
            came = apart(move || storage::get(&url, held.size)).await?;
            comparison.take(&came)?;
        }
        comparison.end()?;
        Ok((held, came))
    }

    /// What the coordinator says that it holds, and what came of it.
    async fn receive(
        &self,
        request: GetCheckpointRequest,
    ) -> Result<(Held, String, Vec<u8>, DigestCheck), CourierError> {
        let mut client = (self.connect)().await?;
        let mut chunks = client.get(request).await?.into_inner();
        let Some(Kind::Head(head)) = next(&mut chunks).await? else {
            return Err(ConvertError::Missing("head").into());
        };
        let held = Held::try_from(head.held.ok_or(ConvertError::Missing("held"))?)?;
        let (mut comparison, mut came) = (DigestCheck::with(held), Vec::new());
        while let Some(kind) = next(&mut chunks).await? {
            let Kind::Bytes(bytes) = kind else { return Err(ConvertError::Missing("bytes").into()) };
            comparison.take(&bytes)?;
            came.extend_from_slice(&bytes);
        }
        Ok((held, head.url, came, comparison))
    }
}

/// Brings a checkpoint chunk by chunk.
async fn put(
    mut client: CheckpointsClient<AuthorisedChannel>,
    head: CheckpointHead,
    bytes: Arc<Vec<u8>>,
) -> Result<Brought, CourierError> {
    if bytes.len() as u64 > LARGEST {
        return Err(CourierError::TooLarge(bytes.len() as u64));
    }
    let chunks = bytes.len().div_ceil(CHUNK);
    let chunk = move |number: usize| {
        let begin = number * CHUNK;
        let piece = bytes.get(begin..bytes.len().min(begin + CHUNK)).unwrap_or_default();
        CheckpointChunk { kind: Some(Kind::Bytes(piece.to_vec())) }
    };
    // Made when they are sent, not all at once.
    let first = std::iter::once(CheckpointChunk { kind: Some(Kind::Head(head)) });
    let reply = client.put(tokio_stream::iter(first.chain((0..chunks).map(chunk)))).await?.into_inner();
    Ok(brought(reply))
}

fn brought(reply: wire::PutCheckpointReply) -> Brought {
    if reply.kept { Brought::Kept } else { Brought::Declined(reply.reason) }
}

/// Asks storage on a thread where that may take its time.
async fn apart<T: Send + 'static>(
    ask: impl FnOnce() -> Result<T, StorageError> + Send + 'static,
) -> Result<T, CourierError> {
    let asked = tokio::task::spawn_blocking(ask).await.map_err(|_| CourierError::Stopping)?;
    Ok(asked?)
}

async fn within<T>(carry: impl Future<Output = Result<T, CourierError>>) -> Result<T, CourierError> {
    tokio::time::timeout(PATIENCE, carry).await.unwrap_or(Err(CourierError::TooSlow))
}

async fn next(chunks: &mut Streaming<CheckpointChunk>) -> Result<Option<Kind>, Status> {
    Ok(chunks.message().await?.and_then(|chunk| chunk.kind))
}
