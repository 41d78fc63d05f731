//! TLS to PostgreSQL: a thin adapter between the client library and rustls, and the check of the certificate that the
//! server shows. Owns nothing of what is said over the connection.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::postgres::Socket;
use ::postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, Error, RootCertStore};
use togl_proto::trust::{self, Judge, Shown};
use togl_sweeps::bounded;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;
use tokio_rustls::client;

use super::access::Trust;

/// Why a server is not believed, and what to do; follows the address of the store.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Distrust(pub(super) String);

/// Opens encrypted connections.
pub(super) struct Connector {
    config: Arc<ClientConfig>,
    authorities: Option<PathBuf>,
}

impl Connector {
    /// For a server that has to show this much. Reads the file of CAs.
    pub(super) fn new(asked: &Trust) -> Result<Self, Distrust> {
        let authorities = asked.authorities().map(Authorities::read).transpose()?;
        let names = matches!(asked, Trust::AuthorityAndName(_));
        let config = trust::client(Check { authorities, names })
            .map_err(|error| Distrust(format!("cannot be reached by TLS: {error}")))?
            .with_no_client_auth();
        Ok(Self { config: Arc::new(config), authorities: asked.authorities().map(Path::to_owned) })
    }
}

/// The CAs that are trusted.
#[derive(Debug)]
struct Authorities {
    certificates: Vec<CertificateDer<'static>>,
    roots: RootCertStore,
}

impl Authorities {
    fn read(file: &Path) -> Result<Self, Distrust> {
        let wrong = |reason: String| Distrust(format!("needs the CAs in {}: {reason}", file.display()));
        let text = std::fs::File::open(file).and_then(|file| bounded::bytes(file, bounded::SECRET));
        let text = text.map_err(|error| wrong(error.to_string()))?;
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        let certificates = certificates.map_err(|error| wrong(error.to_string()))?;
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).map_err(|error| wrong(error.to_string()))?;
        }
        match roots.is_empty() {
            true => Err(wrong("it holds no certificate".to_owned())),
            false => Ok(Self { certificates, roots }),
        }
    }
}

/// Checks as much of a certificate as was asked for.
#[derive(Debug)]
struct Check {
    /// None: any certificate will do.
    authorities: Option<Authorities>,
    names: bool,
}

impl Judge for Check {
    fn judge(&self, shown: &Shown<'_>) -> Result<(), Error> {
        // A certificate that signed itself is its own CA; such a one is often all there is.
        if let Some(Authorities { certificates, roots }) = &self.authorities
            && !certificates.contains(shown.certificate)
        {
            shown.signed_by(roots, shown.intermediates)?;
        }
        let parsed = shown.parsed()?;
        if self.names { verify_server_name(&parsed, shown.name) } else { Ok(()) }
    }
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = Distrust;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Distrust> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Distrust(format!("cannot be reached by TLS: `{host}` is no name of a host")))?;
        let (config, authorities) = (self.config.clone(), self.authorities.clone());
        Ok(Handshake { config, authorities, name })
    }
}

/// One connection that is about to be encrypted.
pub(super) struct Handshake {
    config: Arc<ClientConfig>,
    authorities: Option<PathBuf>,
    name: ServerName<'static>,
}

type Shaken = Result<Encrypted, Box<dyn std::error::Error + Send + Sync>>;

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Shaken> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let Self { config, authorities, name } = self;
            match TlsConnector::from(config).connect(name.clone(), stream).await {
                Ok(stream) => Ok(Encrypted(stream)),
                Err(error) => Err(match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
                    Some(refused) => distrust(refused, &name, authorities.as_deref()).into(),
                    None => error.into(), // the network, not the certificate
                }),
            }
        })
    }
}

/// What is wrong with a server, in words for its users.
fn distrust(error: &Error, name: &ServerName<'_>, authorities: Option<&Path>) -> Distrust {
    let file = authorities.map(|file| file.display().to_string()).unwrap_or_default();
    Distrust(match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            format!(
                "shows a certificate that no CA in {file} has signed; ask who runs the server for its CA, \
             and check that nobody is in between"
            )
        }
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => format!(
            "shows a certificate that does not name `{}`; use a name that is in it, or sslmode=verify-ca",
            name.to_str()
        ),
        other => format!("cannot be reached by TLS 1.3: {other}"),
    })
}

/// An encrypted connection.
pub(super) struct Encrypted(client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
#[path = "../postgres_tls_tests.rs"]
mod tests;
