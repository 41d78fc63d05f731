//! The client's side of TLS: trusts exactly the CA whose fingerprint came with the token, whatever the coordinator
//! is called. Owns the rustls configuration of clients and the connector; who listens is not its business.

use std::io;
use std::path::Path;
use std::pin::Pin as Pinned;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{CertificateError, ClientConfig, Error, RootCertStore};
use togl_sweeps::bounded;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower_service::Service;

use crate::token::Pin;
use crate::trust::{self, Judge, Shown};

/// A connection is there within this time, or is given up.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// A client's own certificate and key, for coordinators that ask for one.
#[derive(Debug)]
pub struct Identity {
    certificates: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// From one PEM file that holds both.
    pub fn read(file: &Path) -> Result<Self, String> {
        let text = std::fs::File::open(file).and_then(|file| bounded::bytes(file, bounded::SECRET));
        let text = text.map_err(|error| error.to_string())?;
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        let certificates = certificates.map_err(|error| error.to_string())?;
        if certificates.is_empty() {
            return Err("it holds no certificate".to_owned());
        }
        let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| format!("no private key: {error}"))?;
        Ok(Self { certificates, key })
    }
}

/// How a client speaks TLS to the holder of a CA.
pub(crate) fn client_config(pin: Pin, identity: Option<Identity>) -> Result<ClientConfig, Error> {
    let builder = trust::client(PinnedAuthority(pin))?;
    let mut config = match identity {
        Some(Identity { certificates, key }) => builder.with_client_auth_cert(certificates, key)?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

/// Accepts a chain that ends in the CA with this fingerprint. Names do not matter: the fingerprint came from the
/// coordinator itself, together with the token.
#[derive(Debug)]
struct PinnedAuthority(Pin);

impl Judge for PinnedAuthority {
    fn judge(&self, shown: &Shown<'_>) -> Result<(), Error> {
        let authority = shown.intermediates.iter().find(|certificate| Pin::of(certificate) == self.0);
        let authority = authority.ok_or(Error::InvalidCertificate(CertificateError::UnknownIssuer))?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        shown.signed_by(&roots, &[])
    }
}

/// Bytes to and from a coordinator, encrypted or not.
pub(crate) trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// Opens connections to one address.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) address: Arc<str>,
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

impl Connector {
    async fn open(self) -> io::Result<TokioIo<Box<dyn Bytes>>> {
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no answer");
        let opened: Box<dyn Bytes> =
            tokio::time::timeout(CONNECT_TIME, self.handshake()).await.map_err(late)??;
        Ok(TokioIo::new(opened))
    }

    async fn handshake(self) -> io::Result<Box<dyn Bytes>> {
        let stream = TcpStream::connect(&*self.address).await?;
        stream.set_nodelay(true)?;
        let Some(config) = self.tls else { return Ok(Box::new(stream)) };
        let host = self.address.rsplit_once(':').map_or(&*self.address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned())
            .or_else(|_| ServerName::try_from("coordinator"))
            .map_err(io::Error::other)?;
        Ok(Box::new(TlsConnector::from(config).connect(name, stream).await?))
    }
}

impl Service<http::Uri> for Connector {
    type Response = TokioIo<Box<dyn Bytes>>;
    type Error = io::Error;
    type Future = Pinned<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Uri) -> Self::Future {
        Box::pin(self.clone().open())
    }
}
