//! What every client that speaks TLS here has in common: version 1.3 only, one provider of cryptography, and a verifier
//! of certificates. Owns all of that verifier but its judgement, which the caller brings.

use std::fmt::Debug;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WantsClientCert, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, RootCertStore, SignatureScheme, version,
};

/// Decides whether a server is believed.
pub trait Judge: Debug + Send + Sync + 'static {
    /// No error: the server may prove that the certificate is its own.
    fn judge(&self, shown: &Shown<'_>) -> Result<(), Error>;
}

/// What a server shows.
pub struct Shown<'a> {
    /// Its own certificate.
    pub certificate: &'a CertificateDer<'a>,
    /// Those that lead to an authority.
    pub intermediates: &'a [CertificateDer<'a>],
    /// What the client calls the server.
    pub name: &'a ServerName<'a>,
    now: UnixTime,
    provider: &'a CryptoProvider,
}

impl Shown<'_> {
    /// The server's certificate, read.
    pub fn parsed(&self) -> Result<ParsedCertificate<'_>, Error> {
        ParsedCertificate::try_from(self.certificate)
    }

    /// Whether a chain by way of `intermediates` ends in one of these authorities, now.
    pub fn signed_by(
        &self,
        roots: &RootCertStore,
        intermediates: &[CertificateDer<'_>],
    ) -> Result<(), Error> {
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&self.parsed()?, roots, intermediates, self.now, algorithms)
    }
}

/// Settings of a client that believes whom `judge` believes; its own certificate is still to be added.
pub fn client(judge: impl Judge) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Arc::new(Verifier { judge, provider: provider.clone() });
    Ok(ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS13])?
        .dangerous() // rustls calls every verifier of one's own so
        .with_custom_certificate_verifier(verifier))
}

#[derive(Debug)]
struct Verifier<J> {
    judge: J,
    provider: Arc<CryptoProvider>,
}

impl<J: Judge> ServerCertVerifier for Verifier<J> {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let provider = &self.provider;
        self.judge.judge(&Shown { certificate, intermediates, name, now, provider })?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3 is spoken".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
