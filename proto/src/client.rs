//! Client connections: addresses and token in, channels that carry the token out. A token that names a CA is only
//! ever sent to the holder of that CA; one that names none goes over a connection that is not encrypted. Knows
//! nothing of what is said over them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use crate::addresses::{Tried, are_local, each};
use crate::tls::{self, Connector, Identity};
use crate::token::{NotAToken, Pin, Token};
use crate::wire::checkpoints_client::CheckpointsClient;
use crate::wire::sweeps_client::SweepsClient;
use crate::wire::workers_client::WorkersClient;
use crate::{LARGEST_MESSAGE, checkpoint};

/// A channel that sends the token with every call.
pub type AuthorisedChannel = InterceptedService<Channel, Bearer>;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is not `HOST:PORT`.
    #[error("`{address}` is not an address; use HOST:PORT, such as 127.0.0.1:7447, or several with commas")]
    Address {
        /// What was given.
        address: String,
    },
    /// The token cannot be one.
    #[error(transparent)]
    Token(#[from] NotAToken),
    /// The file of the client's own certificate cannot be used.
    #[error("cannot use {} as certificate and key: {reason}", path.display())]
    Identity {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Somebody answers who is not the coordinator that the token is for.
    #[error(
        "{address} is not the coordinator that this token was made by; \
         copy the line that it prints again, or check the address"
    )]
    Impostor {
        /// Where it was looked for.
        address: String,
    },
    /// Somebody answers who does not speak as a coordinator does.
    #[error("something answers at {address}, but it is no togl coordinator: {reason}")]
    Stranger {
        /// Where it was looked for.
        address: String,
        /// What is odd about it.
        reason: String,
    },
    /// Nobody answers.
    #[error("no coordinator answers at {address}: {reason}")]
    Unreachable {
        /// Where it was looked for.
        address: String,
        /// What the network said.
        reason: String,
    },
}

/// Adds the token to every request.
#[derive(Clone)]
pub struct Bearer(MetadataValue<Ascii>);

impl Bearer {
    /// The interceptor for a token. Only its secret part travels.
    pub fn new(token: &str) -> Result<Self, ConnectError> {
        Self::of(&Token::parse(token)?)
    }

    fn of(token: &Token) -> Result<Self, ConnectError> {
        let mut value: MetadataValue<Ascii> =
            format!("Bearer {}", token.secret()).parse().map_err(|_| NotAToken)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert("authorization", self.0.clone());
        Ok(request)
    }
}

/// The right to call a coordinator, ready for any number of connections.
#[derive(Clone)]
pub struct ClientAccess {
    bearer: Bearer,
    road: Road,
}

impl ClientAccess {
    /// With a token and, where the coordinator asks for it, a PEM file with a certificate and its key.
    pub fn new(token: &str, identity: Option<&Path>) -> Result<Self, ConnectError> {
        let token = Token::parse(token)?;
        let road = Road::new(token.pin(), identity)?;
        Ok(Self { bearer: Bearer::of(&token)?, road })
    }

    /// Whether connections are encrypted: the token names the CA of its coordinator.
    pub fn is_encrypted(&self) -> bool {
        self.road.tls.is_some()
    }

    /// Connects as a person, to the first of these addresses at which a coordinator answers.
    pub async fn sweeps(&self, addresses: &str) -> Result<SweepsClient<AuthorisedChannel>, ConnectError> {
        Ok(sweeps_on(self.road.open_any(addresses).await?, self.bearer.clone()))
    }

    /// Connects as a worker, likewise.
    pub async fn workers(&self, addresses: &str) -> Result<WorkersClient<AuthorisedChannel>, ConnectError> {
        Ok(workers_on(self.road.open_any(addresses).await?, self.bearer.clone()))
    }

    /// Connects as a worker that brings or fetches a checkpoint, likewise.
    pub async fn checkpoints(
        &self,
        addresses: &str,
    ) -> Result<CheckpointsClient<AuthorisedChannel>, ConnectError> {
        Ok(checkpoints_on(self.road.open_any(addresses).await?, self.bearer.clone()))
    }
}

/// How connections are made: encrypted to the holder of a CA, or not.
#[derive(Clone)]
pub(crate) struct Road {
    tls: Option<Arc<ClientConfig>>,
}

impl Road {
    pub(crate) fn new(pin: Option<&Pin>, identity: Option<&Path>) -> Result<Self, ConnectError> {
        let refuse = |path: &Path, reason: String| ConnectError::Identity { path: path.to_owned(), reason };
        let own =
            identity.map(|path| Identity::read(path).map_err(|reason| refuse(path, reason))).transpose()?;
        let refuse = |error: rustls::Error| {
            refuse(identity.unwrap_or_else(|| Path::new("nothing")), error.to_string())
        };
        let config = pin.map(|pin| tls::client_config(pin.clone(), own)).transpose().map_err(refuse)?;
        Ok(Self { tls: config.map(Arc::new) })
    }

    /// Tries one address after the other, and says which ones did not answer.
    async fn open_any(&self, addresses: &str) -> Result<Channel, ConnectError> {
        let mut tried = Tried::new(addresses);
        for address in each(addresses) {
            match self.open(address).await {
                Ok(channel) => {
                    tried.answered(address);
                    return Ok(channel);
                }
                Err(error) => tried.note(address, error)?,
            }
        }
        Err(tried.in_vain())
    }

    pub(crate) async fn open(&self, address: &str) -> Result<Channel, ConnectError> {
        let endpoint = endpoint(address)?;
        let connector = Connector { address: address.into(), tls: self.tls.clone() };
        let endpoint = endpoint
            .http2_keep_alive_interval(Duration::from_secs(5))
            .keep_alive_timeout(Duration::from_secs(10))
            .keep_alive_while_idle(true);
        endpoint.connect_with_connector(connector).await.map_err(|error| explain(address, &error))
    }
}

/// Refuses what cannot be an address, or a list of addresses with commas, without asking anybody.
pub fn check_address(addresses: &str) -> Result<(), ConnectError> {
    each(addresses).try_for_each(|address| endpoint(address).map(drop))
}

fn endpoint(address: &str) -> Result<Endpoint, ConnectError> {
    let refuse = || ConnectError::Address { address: address.to_owned() };
    let (host, port) = address.rsplit_once(':').ok_or_else(refuse)?;
    port.parse::<u16>().ok().filter(|_| !host.is_empty() && !host.contains('/')).ok_or_else(refuse)?;
    Endpoint::from_shared(format!("http://{address}")).map_err(|_| refuse())
}

/// Whether an address, or all of a list, are of this machine for sure.
pub fn is_local(addresses: &str) -> bool {
    are_local(addresses)
}

/// A client for people over a channel that is there already.
pub fn sweeps_on(channel: Channel, bearer: Bearer) -> SweepsClient<AuthorisedChannel> {
    let client = SweepsClient::with_interceptor(channel, bearer);
    client.max_decoding_message_size(LARGEST_MESSAGE).max_encoding_message_size(LARGEST_MESSAGE)
}

/// A client for workers over a channel that is there already.
pub fn workers_on(channel: Channel, bearer: Bearer) -> WorkersClient<AuthorisedChannel> {
    let client = WorkersClient::with_interceptor(channel, bearer);
    client.max_decoding_message_size(LARGEST_MESSAGE).max_encoding_message_size(LARGEST_MESSAGE)
}

/// A client for checkpoints over a channel that is there already.
pub fn checkpoints_on(channel: Channel, bearer: Bearer) -> CheckpointsClient<AuthorisedChannel> {
    let client = CheckpointsClient::with_interceptor(channel, bearer);
    client.max_decoding_message_size(checkpoint::CHUNK_MESSAGE)
}

/// Connects as a person with nothing but a token.
pub async fn sweeps(address: &str, token: &str) -> Result<SweepsClient<AuthorisedChannel>, ConnectError> {
    ClientAccess::new(token, None)?.sweeps(address).await
}

/// Connects as a worker with nothing but a token.
pub async fn workers(address: &str, token: &str) -> Result<WorkersClient<AuthorisedChannel>, ConnectError> {
    ClientAccess::new(token, None)?.workers(address).await
}

/// Why a call broke together with its connection; nothing where the coordinator itself has answered.
///
/// A coordinator that refuses a connection does so by closing it. In TLS 1.3, and without TLS, the client has then sent its
/// first call already, so it is the call that fails.
pub fn broken(status: &Status) -> Option<String> {
    if !["transport error", "operation was canceled"].contains(&status.message()) {
        return None;
    }
    let reason = innermost(std::error::Error::source(status)?).to_string();
    // On its way here the error of TLS has become a text.
    Some(match reason.contains("CertificateRequired") {
        true => "it asks for a certificate of this client; name a file with one with --identity".to_owned(),
        false => reason,
    })
}

fn innermost<'a>(error: &'a (dyn std::error::Error + 'static)) -> &'a (dyn std::error::Error + 'static) {
    let mut innermost = error;
    while let Some(inner) = inner_of(innermost) {
        innermost = inner;
    }
    innermost
}

/// What a failed connection means: the innermost reason, because the outer ones only say "transport error".
fn explain(address: &str, error: &(dyn std::error::Error + 'static)) -> ConnectError {
    let (address, innermost) = (address.to_owned(), innermost(error));
    match innermost.downcast_ref::<rustls::Error>() {
        Some(rustls::Error::InvalidCertificate(_)) => ConnectError::Impostor { address },
        Some(rustls::Error::InvalidMessage(_)) => {
            ConnectError::Stranger { address, reason: "it does not speak TLS".to_owned() }
        }
        Some(other) => ConnectError::Stranger { address, reason: other.to_string() },
        None => ConnectError::Unreachable { address, reason: innermost.to_string() },
    }
}

/// The cause of an error. One inside an IO error is not its source, so it is looked for too.
fn inner_of<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a (dyn std::error::Error + 'static)> {
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    wrapped.map(|inner| inner as _).or_else(|| error.source())
}
