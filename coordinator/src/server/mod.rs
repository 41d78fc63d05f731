//! The gRPC server: services behind connections and authorisation, health and reflection beside them. Authenticates, converts and
//! sends to the driver; touches neither the store nor the scheduler's decisions.

mod admission;
mod adoption;
mod authorisation;
mod checkpoints;
mod complaints;
mod connections;
mod facts;
mod feeds;
mod following;
mod health;
mod live_progress;
pub(crate) mod metrics_page;
mod pools;
mod seats;
mod sweeps;
mod token_watch;
mod views;
mod visitors;
mod watching;
mod worker_messages;
mod workers;

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use togl_proto::checkpoint::CHUNK_MESSAGE;
use togl_proto::wire::checkpoints_server::CheckpointsServer;
use togl_proto::wire::sweeps_server::SweepsServer;
use togl_proto::wire::workers_server::WorkersServer;
use togl_proto::{DESCRIPTORS, LARGEST_MESSAGE};
use togl_scheduler::Rejection;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_stream::Stream;
use tonic::Status;
use tonic::transport::Server;
use tonic::transport::server::Connected;

use self::authorisation::Authorisation;
use self::checkpoints::CheckpointsService;
use self::connections::Connections;
use self::feeds::Feeds;
use self::live_progress::LiveProgress;
use self::pools::Pools;
use self::seats::Seats;
use self::sweeps::SweepsService;
use self::workers::WorkersService;
use crate::checkpoints::HeldCheckpoints;
use crate::driver::{CallError, Handle};
use crate::programs::Programs;
use crate::store::StoreError;

pub use self::admission::{Admission, Bounds};
pub use self::authorisation::CALLS;
pub use self::seats::CallKind;

/// Bytes that a peer may send before somebody has read what came before. Also what a stranger can make us hold.
const WINDOW: u32 = 256 << 10;

/// Calls at once over one connection.
const STREAMS: u32 = 256;

/// Bytes of the headers of one call.
const HEADERS: u32 = 16 << 10;

/// What all services share.
struct Shared {
    handle: Handle,
    admission: Arc<Admission>,
    /// None where no checkpoints are held.
    checkpoints: Option<HeldCheckpoints>,
    /// None where no programs are run.
    programs: Option<Programs>,
    live_progress: LiveProgress,
    watched: Feeds<watching::Picture>,
    followed: Feeds<following::Recent>,
    pools: Pools,
    incarnation: String,
    /// Another number each time, so that nobody goes on with what another start of the coordinator said.
    start: u64,
}

impl Shared {
    fn new(handle: Handle, admission: Arc<Admission>, rooms: Rooms) -> Self {
        let Rooms { checkpoints, programs } = rooms;
        Self {
            programs,
            incarnation: format!("{:016x}", handle.incarnation()),
            start: RandomState::new().hash_one("start"), // the standard library's hash keys are random
            handle,
            admission,
            checkpoints,
            live_progress: LiveProgress::default(),
            watched: Feeds::default(),
            followed: Feeds::default(),
            pools: Pools::default(),
        }
    }
}

/// What lies beside the store and is handed to workers.
#[derive(Clone, Default)]
pub struct Rooms {
    /// Checkpoints of folds; none where none are held.
    pub checkpoints: Option<HeldCheckpoints>,
    /// Files of programs; none where no programs are run.
    pub programs: Option<Programs>,
}

/// Why the server stopped before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The transport failed.
    #[error("the gRPC server failed: {0}")]
    Transport(#[from] tonic::transport::Error),
    /// The built-in descriptors are broken.
    #[error("gRPC reflection cannot be set up: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// How connections are protected.
#[derive(Clone)]
pub struct Protection {
    /// Who may come in.
    pub admission: Arc<Admission>,
    /// How the server speaks TLS.
    pub tls: Arc<ServerConfig>,
    /// Whether other machines may come without TLS.
    pub plaintext: bool,
}

/// Serves until `shutdown` is done. The listener is given, so that whoever asks for a port knows it.
pub async fn serve(
    listener: TcpListener,
    handle: Handle,
    protection: Protection,
    rooms: Rooms,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let Protection { admission, tls, plaintext } = protection;
    let connections = Connections { admission: admission.clone(), tls, plaintext, greetings: b"P" };
    serve_on(connections.open(listener), handle, admission, rooms, shutdown).await
}

/// Serves on connections that came in some other way, such as over a simulated network.
pub async fn serve_on<IO>(
    incoming: impl Stream<Item = io::Result<IO>>,
    handle: Handle,
    admission: Arc<Admission>,
    rooms: Rooms,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError>
where
    IO: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    let liveness = handle.liveness().clone();
    let looking_after = checkpoints::look_after(rooms.checkpoints.clone(), handle.clone());
    let shared = Arc::new(Shared::new(handle, admission.clone(), rooms));
    let seats = Seats::default();
    let workers = WorkersServer::new(WorkersService(shared.clone()))
        .max_decoding_message_size(LARGEST_MESSAGE)
        .max_encoding_message_size(LARGEST_MESSAGE);
    let moving = CheckpointsServer::new(CheckpointsService(shared.clone()))
        .max_decoding_message_size(CHUNK_MESSAGE)
        .max_encoding_message_size(CHUNK_MESSAGE);
    let sweeps = SweepsServer::new(SweepsService(shared))
        .max_decoding_message_size(LARGEST_MESSAGE)
        .max_encoding_message_size(LARGEST_MESSAGE);
    let (reporter, health) = tonic_health::server::health_reporter();
    let telling =
        health::tell::<SweepsServer<SweepsService>, WorkersServer<WorkersService>>(reporter, liveness);
    let serving = Server::builder()
        .http2_keepalive_interval(Some(Duration::from_secs(5)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        .http2_max_header_list_size(HEADERS)
        .max_concurrent_streams(STREAMS)
        .initial_connection_window_size(WINDOW)
        .initial_stream_window_size(WINDOW)
        .layer(tower_layer::layer_fn(move |inner| {
            Authorisation::new(inner, admission.clone(), seats.clone())
        }))
        .add_service(workers)
        .add_service(sweeps)
        .add_service(moving)
        .add_service(health)
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?) // what older tools ask for
        .serve_with_incoming_shutdown(incoming, shutdown);
    tokio::select! {
        served = serving => Ok(served?),
        () = telling => Ok(()),
        () = looking_after => Ok(()),
    }
}

/// Lets tools such as grpcurl ask which calls there are.
fn reflection() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}

/// The one place where our errors become gRPC codes.
fn status(error: CallError) -> Status {
    let text = error.to_string();
    match error {
        CallError::Rejected(rejection) => match rejection {
            Rejection::UnknownSweep { .. } => Status::not_found(text),
            Rejection::CancelledSweep { .. }
            | Rejection::OtherNumerics { .. }
            | Rejection::OtherData { .. }
            | Rejection::NoDispute { .. } => Status::failed_precondition(text),
            Rejection::PartsMissing { .. } => Status::unavailable(text),
            Rejection::EmptySweep { .. }
            | Rejection::TooManyFolds { .. }
            | Rejection::UnknownTrial { .. }
            | Rejection::UnknownDigest { .. }
            | Rejection::Unadoptable { .. }
            | Rejection::TooManySlots { .. } => Status::invalid_argument(text),
            // The worker connects again and says hello.
            Rejection::UnknownWorker { .. } => Status::aborted(text),
            Rejection::TooManyWorkers { .. } => Status::resource_exhausted(text),
        },
        CallError::Store(error) => match *error {
            StoreError::UnknownSweep { .. } | StoreError::Fold(_) => Status::not_found(text),
            _ => Status::unavailable(text),
        },
        CallError::TooManyReads => Status::resource_exhausted(text),
        CallError::Stopped => Status::unavailable(text),
    }
}

/// A reply that does not belong to its event: our fault.
fn confused() -> Status {
    Status::internal("the driver gave a reply of another kind")
}
