//! The library: fetches the files of programs from the coordinator, by digest, over a connection of its own, so that no
//! heartbeat waits behind bytes. Tries a few times. Keeps nothing and looks into nothing: whoever unpacks the files compares
//! them with their digest.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use togl_proto::client::{AuthorisedChannel, ConnectError};
use togl_proto::wire::ProgramRequest;
use togl_proto::wire::workers_client::WorkersClient;
use tonic::{Code, Status};

/// How long one try may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Pauses between tries.
const PAUSES: [Duration; 3] = [Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];

/// What a connection gives: somebody to ask.
pub type LibraryConnection = Result<WorkersClient<AuthorisedChannel>, ConnectError>;

type Connect = dyn Fn() -> Pin<Box<dyn Future<Output = LibraryConnection> + Send>> + Send + Sync;

/// Why files were not fetched.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// No connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The coordinator said no, or the connection broke.
    #[error("{}", .0.message())]
    Refused(Box<Status>),
    /// It took too long.
    #[error("it took longer than {} s", PATIENCE.as_secs())]
    TooSlow,
}

/// Fetches files of programs. Cheap to clone.
#[derive(Clone)]
pub struct Library(Arc<Connect>);

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Library")
    }
}

impl Library {
    /// A library that makes each connection by `connect`.
    pub fn new<C>(connect: impl Fn() -> C + Send + Sync + 'static) -> Self
    where
        C: Future<Output = LibraryConnection> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(connect())))
    }

    /// The files of this digest, in one piece.
    pub async fn fetch(&self, digest: &str) -> Result<Vec<u8>, LibraryError> {
        let mut pauses = PAUSES.into_iter();
        loop {
            let once = tokio::time::timeout(PATIENCE, self.try_once(digest)).await;
            let error = match once.unwrap_or(Err(LibraryError::TooSlow)) {
                Ok(bytes) => return Ok(bytes),
                Err(error) => error,
            };
            let lasts = matches!(&error, LibraryError::Refused(status)
                if matches!(status.code(), Code::NotFound | Code::InvalidArgument | Code::PermissionDenied | Code::Unimplemented));
            match pauses.next().filter(|_| !lasts) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(error),
            }
        }
    }

    async fn try_once(&self, digest: &str) -> Result<Vec<u8>, LibraryError> {
        let mut client = (self.0)().await?;
        let reply = client.program(ProgramRequest { digest: digest.to_owned() }).await;
        Ok(reply.map_err(|status| LibraryError::Refused(Box::new(status)))?.into_inner().bundle)
    }
}
