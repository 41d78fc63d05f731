//! A whole coordinator in one value: store, driver and server put together and taken apart in the right order.
//! `togl serve` and `togl run` hold one; this file only arranges, the parts decide.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use togl_proto::token::Pin;
use togl_scheduler::Limits;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{oneshot, watch};

use crate::certificates::{Authority, CertificateError};
use crate::checkpoints::{self, HeldCheckpoints, Storage};
use crate::clock::{self, SystemClock};
use crate::driver::{self, DriverError, Handle, Running};
use crate::metrics::{CoordinatorMetrics, Measured};
use crate::private;
use crate::programs::Programs;
use crate::server::{self, Admission, Bounds, Protection, Rooms, ServeError};
use crate::standby;
use crate::store::address::StoreAddress;
use crate::store::{Store, StoreError};
use crate::store_check::{self, Checking};
use crate::tasks;
use crate::tokens::{Registry, TokenError, TokenPlace, Tokens};

/// Why a coordinator does not start or does not go on.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The tokens cannot be used.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// There is nobody to wait for.
    #[error(
        "only a PostgreSQL store can be taken over, and {store} is not one; a coordinator alone needs no `--standby`"
    )]
    NothingToTakeOver {
        /// Which store.
        store: String,
    },
    /// Nobody could tell the coordinator that takes over from an impostor.
    #[error("{} has no CA, and whoever takes over must have that of the other coordinator", folder.display())]
    NoAuthority {
        /// Which directory.
        folder: PathBuf,
    },
    /// Everybody can write to the state directory.
    #[error("everybody can write to {}, and so could put tokens and keys of their own there", folder.display())]
    Exposed {
        /// Which directory.
        folder: PathBuf,
    },
    /// The CA or a certificate cannot be used.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// The address is taken or not ours.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The files of programs cannot be kept.
    #[error("cannot keep the files of programs in {}: {source}", folder.display())]
    Programs {
        /// Where.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The driver ended, or did not start.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The server ended.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

/// What to serve, where, and for whom.
#[derive(Debug, Clone)]
pub struct ServiceSettings {
    /// The store.
    pub store: StoreAddress,
    /// The list of tokens; the directory's own tokens and its CA lie beside it.
    pub tokens: PathBuf,
    /// Where to listen; port 0 takes any free port.
    pub address: SocketAddr,
    /// Whether other machines may come without TLS.
    pub plaintext: bool,
    /// Names and addresses of this machine, for the server's certificate.
    pub hosts: Vec<String>,
    /// CAs of which clients must show a certificate when they come over TLS.
    pub client_ca: Option<PathBuf>,
    /// Where to serve the page for Prometheus, if anywhere.
    pub metrics: Option<SocketAddr>,
    /// How much room peers get.
    pub bounds: Bounds,
    /// Whether to wait for the store while another coordinator serves it, and take over then.
    pub standby: bool,
    /// Bytes of all checkpoints that are held so that folds can move; 0 for none.
    pub checkpoint_room: u64,
    /// Whether sweeps may bring programs that workers run.
    pub programs: bool,
    /// Where they are held; none for the folder of the state.
    pub checkpoint_storage: Option<Storage>,
}

impl ServiceSettings {
    /// The usual settings.
    pub fn new(store: impl Into<StoreAddress>, tokens: &Path, address: SocketAddr) -> Self {
        let (store, tokens) = (store.into(), tokens.to_owned());
        let (hosts, bounds) = (Vec::new(), Bounds::default());
        let (checkpoint_room, plaintext, standby) = (checkpoints::USUAL_ROOM, false, false);
        Self {
            store,
            tokens,
            address,
            plaintext,
            hosts,
            client_ca: None,
            metrics: None,
            bounds,
            standby,
            checkpoint_room,
            programs: false,
            checkpoint_storage: None,
        }
    }

    /// Where tokens and keys are.
    fn folder(&self) -> &Path {
        let folder = self.tokens.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.unwrap_or_else(|| Path::new("."))
    }

    /// Opens the store, waiting for it if that was asked for.
    async fn open_store(&self) -> Result<Box<dyn Store>, ServiceError> {
        match &self.store {
            store if !self.standby => Ok(store.open()?),
            StoreAddress::Postgres(_) if !Authority::is_in(self.folder()) => {
                Err(ServiceError::NoAuthority { folder: self.folder().to_owned() })
            }
            StoreAddress::Postgres(access) => Ok(standby::wait((**access).clone()).await?),
            store => Err(ServiceError::NothingToTakeOver { store: store.to_string() }),
        }
    }

    /// Where checkpoints are held; a folder or storage that cannot be had costs time and never a result.
    async fn checkpoints(&self) -> Option<HeldCheckpoints> {
        if let Some(storage) = self.checkpoint_storage.clone().filter(|_| self.checkpoint_room > 0) {
            let room = HeldCheckpoints::in_storage(storage, self.checkpoint_room);
            let trying = room.clone();
            let tried = tokio::task::spawn_blocking(move || trying.try_storage());
            let _ = tokio::time::timeout(STORAGE_ANSWERS, tried).await; // whatever comes of it, it says itself
            return Some(room);
        }
        let (folder, room) = (self.folder().join("held-checkpoints"), self.checkpoint_room);
        let opened = (room > 0).then(|| HeldCheckpoints::open(&folder, room))?;
        let trouble = |error: &io::Error| {
            tracing::warn!(folder = %folder.display(), %error, "no checkpoints are held, so folds do not move with theirs");
        };
        opened.inspect_err(trouble).ok()
    }

    /// What lies beside the store. The lock on the store keeps others out of these folders.
    async fn rooms(&self) -> Result<Rooms, ServiceError> {
        let folder = self.folder().join("programs");
        let programs = self.programs.then(|| Programs::open(&folder)).transpose();
        let programs = programs.map_err(|source| ServiceError::Programs { folder, source })?;
        Ok(Rooms { checkpoints: self.checkpoints().await, programs })
    }

    /// Makes or finds CA and tokens.
    fn protect(&self, clock: Arc<SystemClock>) -> Result<(Protection, Tokens, Pin), ServiceError> {
        let now = clock::unix_seconds();
        let authority = Authority::load_or_create(self.folder())?;
        let tls = authority.server_config(&self.hosts, self.client_ca.as_deref(), now)?;
        let place = TokenPlace::of(&self.tokens, &self.store);
        let (registry, tokens) = Registry::open(place, &authority.pin(), now)?;
        let admission = Arc::new(Admission::new(registry, clock, self.bounds.clone()));
        Ok((Protection { admission, tls, plaintext: self.plaintext }, tokens, authority.pin()))
    }
}

/// A task that ends with whoever holds this.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServiceError> {
    let refuse = |source| ServiceError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(refuse)?;
    let address = listener.local_addr().map_err(refuse)?;
    Ok((listener, address))
}

/// A port of ours. Whoever only waits to take over does not listen: who calls there is refused at once and tries another
/// address, instead of waiting for an answer.
enum Port {
    Claimed(TcpSocket),
    Open(TcpListener),
}

impl Port {
    fn claim(address: SocketAddr) -> io::Result<(Self, SocketAddr)> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let address = socket.local_addr()?;
        Ok((Self::Claimed(socket), address))
    }

    fn open(self) -> io::Result<TcpListener> {
        match self {
            Self::Claimed(socket) => socket.listen(BACKLOG),
            Self::Open(listener) => Ok(listener),
        }
    }
}

/// Where a coordinator listens, and perhaps its page for Prometheus.
struct Ports {
    port: Port,
    address: SocketAddr,
    page: Option<(TcpListener, SocketAddr)>,
}

impl Ports {
    async fn take(settings: &ServiceSettings) -> Result<Self, ServiceError> {
        let address = settings.address;
        let (port, address) = match settings.standby {
            true => Port::claim(address).map_err(|source| ServiceError::Listen { address, source })?,
            false => listen(address).await.map(|(listener, address)| (Port::Open(listener), address))?,
        };
        let page = match settings.metrics {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        Ok(Self { port, address, page })
    }
}

/// Connections that may wait to be accepted; what the standard library takes.
const BACKLOG: u32 = 1_024;

/// How long storage may take to say what it holds before folds are handed out without knowing it.
const STORAGE_ANSWERS: Duration = Duration::from_secs(3);

/// How long the last calls may take to end once there is nothing left to decide.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A running coordinator.
pub struct Coordinator {
    address: SocketAddr,
    metrics_address: Option<SocketAddr>,
    page: Option<AbortOnDrop>,
    checking: Checking,
    tokens: Tokens,
    pin: Pin,
    handle: Handle,
    driver: Running,
    shutdown: watch::Sender<bool>,
    served: oneshot::Receiver<Result<(), ServeError>>,
}

impl Coordinator {
    /// Starts with the usual settings.
    pub async fn start(
        store: impl Into<StoreAddress>,
        tokens: &Path,
        address: SocketAddr,
    ) -> Result<Self, ServiceError> {
        Self::start_with(ServiceSettings::new(store, tokens, address)).await
    }

    /// Starts. Everything that can fail because of what the user chose fails here.
    pub async fn start_with(settings: ServiceSettings) -> Result<Self, ServiceError> {
        // Whoever cannot look at the folder is told by the store or the CA what is wrong.
        if private::is_open_to_all(settings.folder()).unwrap_or(false) {
            return Err(ServiceError::Exposed { folder: settings.folder().to_owned() });
        }
        // The ports first: if one is taken, nothing has been made yet.
        let Ports { port, address, page } = Ports::take(&settings).await?;
        let store = settings.open_store().await?;
        let rooms = settings.rooms().await?;
        let listener = port.open().map_err(|source| ServiceError::Listen { address, source })?;
        let clock = Arc::new(SystemClock::new());
        let (protection, tokens, pin) = settings.protect(clock.clone())?;
        let metrics = Arc::new(CoordinatorMetrics::new(clock.clone()));
        let store = Box::new(Measured { inner: store, metrics: metrics.clone() });
        let (handle, driver) = driver::start(store, clock, Limits::default())?;
        let checking =
            store_check::start(settings.store, handle.liveness().clone()).map_err(DriverError::Start)?;
        let metrics_address = page.as_ref().map(|(_, address)| *address);
        let page = page.map(|(listener, _)| {
            let page = server::metrics_page::serve(listener, handle.clone(), protection.clone(), metrics);
            AbortOnDrop(tasks::spawn("metrics", page))
        });
        let (shutdown, mut told) = watch::channel(false);
        let (report, served) = oneshot::channel();
        let serve = server::serve(listener, handle.clone(), protection, rooms, async move {
            let _ = told.wait_for(|stop| *stop).await; // an error means that nobody is left to tell
        });
        tasks::spawn("server", async move {
            let _ = report.send(serve.await); // whoever stopped listening does not want to know
        });
        Ok(Self { address, metrics_address, page, checking, tokens, pin, handle, driver, shutdown, served })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the page for Prometheus is, if there is one.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// The tokens of its state directory, for connections of this machine.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// The fingerprint of its CA.
    pub fn pin(&self) -> &Pin {
        &self.pin
    }

    /// Runs until `until` is done, then stops; ends early only with the reason.
    pub async fn run(self, until: impl Future<Output = ()>) -> Result<(), ServiceError> {
        let Self { handle, driver, shutdown, mut served, page: _page, checking: _checking, .. } = self;
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
        // What was decided is stored; give the answers time to leave.
        let _ = tokio::time::timeout(LAST_WORDS, served).await;
        Ok(())
    }
}
