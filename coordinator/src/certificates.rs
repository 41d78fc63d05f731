//! The private CA of a state directory and the certificate of its server. The CA is made once and kept in `ca.pem`
//! and `ca.key`; clients know it by its fingerprint, which travels with their tokens. The server's key and certificate
//! are made at every start and live in memory only, so there is nothing to renew and nothing to steal from a disk.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig, version};
use togl_proto::token::Pin;
use togl_sweeps::bounded;

use crate::private;
use crate::tokens::UnixSeconds;

/// Years that a server may run before it must be started again.
const SERVER_YEARS: i32 = 10;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// A file does not hold what it should.
    #[error("{} is damaged or not ours: {reason}; {advice}", path.display())]
    Malformed { path: PathBuf, reason: String, advice: &'static str },
    /// A certificate cannot be made.
    #[error("cannot make a certificate: {0}")]
    Making(#[from] rcgen::Error),
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

const MOVE_AWAY: &str =
    "move ca.pem and ca.key away to have a new CA made; workers then need the new join line";

/// The private CA.
pub struct Authority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authority({})", self.pin())
    }
}

impl Authority {
    /// The CA of a state directory, made now if there is none.
    pub fn load_or_create(state: &Path) -> Result<Self, CertificateError> {
        let (certificate, key) = (state.join("ca.pem"), state.join("ca.key"));
        let read = |path: &Path| private::read(path).map_err(|source| failed(path, source));
        match (read(&certificate)?, read(&key)?) {
            (None, None) => Self::create(&certificate, &key),
            (Some(certificate_pem), Some(key_pem)) => Self::load(&certificate_pem, &key_pem)
                .map_err(|reason| malformed(&certificate, reason, MOVE_AWAY)),
            (Some(_), None) => Err(malformed(&key, "it is missing", MOVE_AWAY)),
            // The key is written first: a crash in between leaves a key that nobody knows yet.
            (None, Some(_)) => Self::create(&certificate, &key),
        }
    }

    /// Whether a state directory has one.
    pub fn is_in(state: &Path) -> bool {
        state.join("ca.pem").exists() && state.join("ca.key").exists()
    }

    fn create(certificate_file: &Path, key_file: &Path) -> Result<Self, CertificateError> {
        let key = KeyPair::generate()?;
        let certificate = authority_params().self_signed(&key)?;
        private::write(key_file, key.serialize_pem().as_bytes())
            .map_err(|source| failed(key_file, source))?;
        private::write(certificate_file, certificate.pem().as_bytes())
            .map_err(|source| failed(certificate_file, source))?;
        Ok(Self { certificate: certificate.der().clone(), issuer: Issuer::new(authority_params(), key) })
    }

    fn load(certificate: &[u8], key: &[u8]) -> Result<Self, String> {
        let certificate = CertificateDer::from_pem_slice(certificate).map_err(|error| error.to_string())?;
        let key = std::str::from_utf8(key).map_err(|error| error.to_string())?;
        let key = KeyPair::from_pem(key).map_err(|error| error.to_string())?;
        let public = key.public_key_raw();
        if !certificate.windows(public.len()).any(|bytes| bytes == public) {
            return Err("certificate and key do not belong together".to_owned());
        }
        Ok(Self { certificate, issuer: Issuer::new(authority_params(), key) })
    }

    /// How clients recognise it.
    pub fn pin(&self) -> Pin {
        Pin::of(&self.certificate)
    }

    /// How the server speaks TLS: a fresh certificate for these names and, if a file of CAs is given, only with
    /// clients that show a certificate of one of them.
    pub fn server_config(
        &self,
        hosts: &[String],
        client_ca: Option<&Path>,
        now: UnixSeconds,
    ) -> Result<Arc<ServerConfig>, CertificateError> {
        let (key, params) = (KeyPair::generate()?, server_params(hosts, now)?);
        let certificate = params.signed_by(&key, &self.issuer)?;
        let chain = vec![certificate.der().clone(), self.certificate.clone()];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&version::TLS13])?;
        let builder = match client_ca {
            Some(file) => builder.with_client_cert_verifier(client_verifier(file, provider)?),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// Fixed, because it must come out the same at every start.
fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "togl private CA");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = date_time_ymd(2024, 1, 1);
    params.not_after = date_time_ymd(2124, 1, 1);
    params
}

/// Valid from long ago, because clocks of cluster nodes are wrong more often than one thinks.
fn server_params(hosts: &[String], now: UnixSeconds) -> Result<CertificateParams, rcgen::Error> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    names.extend(hosts.iter().filter(|host| !host.is_empty()).cloned());
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "togl coordinator");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params.not_before = date_time_ymd(2024, 1, 1);
    let year = i32::try_from(1970 + now / 31_556_952).unwrap_or(2100).clamp(2024, 2100);
    params.not_after = date_time_ymd(year + SERVER_YEARS, 1, 1);
    Ok(params)
}

fn client_verifier(
    file: &Path,
    provider: Arc<rustls::crypto::CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, CertificateError> {
    let refuse = |reason: String| malformed(file, reason, "name a PEM file of CA certificates");
    let text = std::fs::File::open(file).and_then(|opened| bounded::bytes(opened, bounded::SECRET));
    let text = text.map_err(|source| failed(file, source))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
        roots.add(certificate).map_err(|error| refuse(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(refuse("it holds no certificate".to_owned()));
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    verifier.build().map_err(|error| refuse(error.to_string()))
}

fn failed(path: &Path, source: io::Error) -> CertificateError {
    CertificateError::Io { path: path.to_owned(), source }
}

fn malformed(path: &Path, reason: impl Into<String>, advice: &'static str) -> CertificateError {
    CertificateError::Malformed { path: path.to_owned(), reason: reason.into(), advice }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_ca_is_made_once_and_kept_private() {
        let folder = tempfile::tempdir().unwrap();
        let first = Authority::load_or_create(folder.path()).unwrap().pin();
        assert_eq!(Authority::load_or_create(folder.path()).unwrap().pin(), first);
        for name in ["ca.pem", "ca.key"] {
            let mode = fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn halves_that_do_not_belong_together_are_refused_and_left_alone() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for folder in [&one, &other] {
            Authority::load_or_create(folder.path()).unwrap();
        }
        fs::copy(other.path().join("ca.key"), one.path().join("ca.key")).unwrap();
        let refused = Authority::load_or_create(one.path()).unwrap_err().to_string();
        assert!(refused.contains("do not belong together") && refused.contains("move ca.pem"), "{refused}");
        fs::remove_file(one.path().join("ca.key")).unwrap();
        let refused = Authority::load_or_create(one.path()).unwrap_err().to_string();
        assert!(refused.contains("ca.key is damaged or not ours: it is missing"), "{refused}");
    }

    #[test]
    fn a_file_without_certificates_is_no_list_of_client_cas() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::load_or_create(folder.path()).unwrap();
        let file = folder.path().join("clients.pem");
        fs::write(&file, "nothing").unwrap();
        let refused = authority.server_config(&[], Some(&file), 1_800_000_000).unwrap_err().to_string();
        assert!(refused.contains("it holds no certificate; name a PEM file"), "{refused}");
        let own = folder.path().join("ca.pem");
        authority.server_config(&["node-1".to_owned()], Some(&own), 1_800_000_000).unwrap();
    }
}
