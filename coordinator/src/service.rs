//! A whole coordinator in one value: store, driver and server put together and taken apart in the right order.
//! `togl serve` and `togl run` hold one; this file only arranges, the parts decide.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use togl_scheduler::Limits;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

use crate::clock::SystemClock;
use crate::driver::{self, DriverError, Handle, Running};
use crate::server::{self, ServeError};
use crate::store::StoreError;
use crate::store::address::StoreAddress;
use crate::tasks;
use crate::tokens::{TokenError, Tokens};

/// Why a coordinator does not start or does not go on.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The tokens cannot be used.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// The address is taken or not ours.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The driver ended, or did not start.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The server ended.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

/// A running coordinator.
pub struct Coordinator {
    address: SocketAddr,
    tokens: Tokens,
    handle: Handle,
    driver: Running,
    shutdown: watch::Sender<bool>,
    served: oneshot::Receiver<Result<(), ServeError>>,
}

impl Coordinator {
    /// Starts on a store, a token file and an address; port 0 takes any free port. Everything that can fail
    /// because of what the user chose fails here.
    pub async fn start(
        store: impl Into<StoreAddress>,
        tokens: &Path,
        address: SocketAddr,
    ) -> Result<Self, ServiceError> {
        // The port first: if it is taken, nothing has been made yet.
        let refuse = |source| ServiceError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(refuse)?;
        let address = listener.local_addr().map_err(refuse)?;
        let store = store.into().open()?;
        let tokens = Tokens::load_or_create(tokens)?;
        let (handle, driver) = driver::start(store, Arc::new(SystemClock::new()), Limits::default())?;
        let (shutdown, mut told) = watch::channel(false);
        let (report, served) = oneshot::channel();
        let serve = server::serve(listener, handle.clone(), tokens.clone(), async move {
            let _ = told.wait_for(|stop| *stop).await; // an error means that nobody is left to tell
        });
        tasks::spawn("server", async move {
            let _ = report.send(serve.await); // whoever stopped listening does not want to know
        });
        Ok(Self { address, tokens, handle, driver, shutdown, served })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Who may call it.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Runs until `until` is done, then stops; ends early only with the reason.
    pub async fn run(self, until: impl Future<Output = ()>) -> Result<(), ServiceError> {
        let Self { handle, driver, shutdown, mut served, .. } = self;
        let driver = driver.ended();
        tokio::pin!(driver);
        let early = tokio::select! {
            () = until => None,
            ended = &mut driver => Some(ended),
            ended = &mut served => return Ok(ended.unwrap_or(Ok(()))?),
        };
        // Streams of watchers and workers would keep a gentle shutdown waiting for ever: they end with the driver.
        handle.stop().await;
        let _ = shutdown.send(true);
        match early {
            Some(ended) => ended?,
            None => driver.await?,
        }
        Ok(())
    }
}
