//! The gRPC server: services behind the door, health and reflection beside them. Authenticates, converts and
//! sends to the driver; touches neither the store nor the scheduler's decisions.

mod auth;
mod board;
mod sweeps;
mod workers;

use std::future::Future;
use std::io;
use std::sync::Arc;

use togl_proto::wire::sweeps_server::SweepsServer;
use togl_proto::wire::workers_server::WorkersServer;
use togl_proto::{DESCRIPTORS, LARGEST_MESSAGE};
use togl_scheduler::Rejection;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_stream::Stream;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::transport::server::Connected;

use self::auth::Door;
use self::board::Board;
use self::sweeps::SweepsService;
use self::workers::WorkersService;
use crate::driver::{CallError, Handle};
use crate::tokens::{Role, Tokens};

/// What all services share.
struct Shared {
    handle: Handle,
    board: Board,
    incarnation: String,
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

/// Serves until `shutdown` is done. The listener is given, so that whoever asks for a port knows it.
pub async fn serve(
    listener: TcpListener,
    handle: Handle,
    tokens: Tokens,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    serve_on(TcpListenerStream::new(listener), handle, tokens, shutdown).await
}

/// Serves on connections that came in some other way, such as over a simulated network.
pub async fn serve_on<IO>(
    incoming: impl Stream<Item = io::Result<IO>>,
    handle: Handle,
    tokens: Tokens,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError>
where
    IO: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    let tokens = Arc::new(tokens);
    let incarnation = format!("{:016x}", handle.incarnation());
    let shared = Arc::new(Shared { handle, board: Board::default(), incarnation });
    let workers = WorkersServer::new(WorkersService(shared.clone()))
        .max_decoding_message_size(LARGEST_MESSAGE)
        .max_encoding_message_size(LARGEST_MESSAGE);
    let sweeps = SweepsServer::new(SweepsService(shared))
        .max_decoding_message_size(LARGEST_MESSAGE)
        .max_encoding_message_size(LARGEST_MESSAGE);
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_serving::<SweepsServer<SweepsService>>().await;
    reporter.set_serving::<WorkersServer<WorkersService>>().await;
    Server::builder()
        .http2_keepalive_interval(Some(std::time::Duration::from_secs(5)))
        .http2_keepalive_timeout(Some(std::time::Duration::from_secs(10)))
        .add_service(InterceptedService::new(workers, Door::new(tokens.clone(), Role::Worker)))
        .add_service(InterceptedService::new(sweeps, Door::new(tokens, Role::Operator)))
        .add_service(health)
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?) // what older tools ask for
        .serve_with_incoming_shutdown(incoming, shutdown)
        .await?;
    Ok(())
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
            Rejection::EmptySweep { .. }
            | Rejection::TooManyFolds { .. }
            | Rejection::UnknownTrial { .. }
            | Rejection::UnknownDigest { .. }
            | Rejection::TooManySlots { .. } => Status::invalid_argument(text),
            // The worker connects again and says hello.
            Rejection::UnknownWorker { .. } => Status::aborted(text),
            Rejection::TooManyWorkers { .. } => Status::resource_exhausted(text),
        },
        CallError::Store(_) | CallError::Stopped => Status::unavailable(text),
    }
}

/// A reply that does not belong to its event: our fault.
fn confused() -> Status {
    Status::internal("the driver gave a reply of another kind")
}
