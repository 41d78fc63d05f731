//! Client connections: address and token in, channels that carry the token out. Knows nothing of what is
//! said over them.

use std::time::Duration;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use crate::LARGEST_MESSAGE;
use crate::wire::sweeps_client::SweepsClient;
use crate::wire::workers_client::WorkersClient;

/// A channel that sends the token with every call.
pub type AuthorisedChannel = InterceptedService<Channel, Bearer>;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is not `HOST:PORT`.
    #[error("`{address}` is not an address; use HOST:PORT, such as 127.0.0.1:7447")]
    Address {
        /// What was given.
        address: String,
    },
    /// The token has characters that cannot be sent.
    #[error("the token is not made of letters, digits and dashes; copy it again from `togl serve`")]
    Token,
    /// Nobody answers.
    #[error("no coordinator answers at {address}: {reason}")]
    Unreachable {
        /// Where.
        address: String,
        /// What the network said.
        reason: String,
    },
}

/// Adds the token to every request.
#[derive(Clone)]
pub struct Bearer(MetadataValue<Ascii>);

impl Bearer {
    /// The interceptor for a token.
    pub fn new(token: &str) -> Result<Self, ConnectError> {
        let mut value: MetadataValue<Ascii> =
            format!("Bearer {}", token.trim()).parse().map_err(|_| ConnectError::Token)?;
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

async fn channel(address: &str) -> Result<Channel, ConnectError> {
    let refuse = || ConnectError::Address { address: address.to_owned() };
    let port = address.rsplit_once(':').and_then(|(host, port)| (!host.is_empty()).then_some(port));
    port.and_then(|p| p.parse::<u16>().ok()).ok_or_else(refuse)?;
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|_| refuse())?;
    endpoint
        .connect_timeout(Duration::from_secs(5))
        .http2_keep_alive_interval(Duration::from_secs(5))
        .keep_alive_timeout(Duration::from_secs(10))
        .keep_alive_while_idle(true)
        .connect()
        .await
        .map_err(|error| ConnectError::Unreachable {
            address: address.to_owned(),
            reason: root_cause(&error),
        })
}

/// The innermost reason: the outer ones only say "transport error".
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Connects as a person.
pub async fn sweeps(address: &str, token: &str) -> Result<SweepsClient<AuthorisedChannel>, ConnectError> {
    let channel = channel(address).await?;
    let client = SweepsClient::with_interceptor(channel, Bearer::new(token)?);
    Ok(client.max_decoding_message_size(LARGEST_MESSAGE).max_encoding_message_size(LARGEST_MESSAGE))
}

/// Connects as a worker.
pub async fn workers(address: &str, token: &str) -> Result<WorkersClient<AuthorisedChannel>, ConnectError> {
    let channel = channel(address).await?;
    let client = WorkersClient::with_interceptor(channel, Bearer::new(token)?);
    Ok(client.max_decoding_message_size(LARGEST_MESSAGE).max_encoding_message_size(LARGEST_MESSAGE))
}
