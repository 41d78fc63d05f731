//! One attempt to deliver a letter over HTTP: signed, bounded in time, no redirect followed, nothing of the answer read but its
//! status. Whatever goes wrong is put into words of ours, since those of a library may hold the address, which is a secret. The only file
//! of the command that uses an HTTP client.

use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use togl_sweeps::bounded;
use ureq::Agent;
use ureq::http::StatusCode;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use super::file::{Hook, is_this_machine};
use super::letter::Letter;
use crate::problem::Problem;

/// An attempt takes no longer.
const PATIENCE: Duration = Duration::from_secs(15);

/// What is sent with every letter: who says it and when is signed, so that nobody can say it again later.
const ID: &str = "webhook-id";
const TIMESTAMP: &str = "webhook-timestamp";
const SIGNATURE: &str = "webhook-signature";

/// How letters are delivered.
#[derive(Clone)]
pub struct Sender {
    /// Whom to believe to be the holder of an address, if not the authorities that are built in.
    authorities: Option<RootCerts>,
    /// How long an attempt may take.
    patience: Duration,
}

impl Sender {
    /// One that believes the authorities that are built in, or those of a file.
    pub fn new(ca_file: Option<&Path>) -> Result<Self, Problem> {
        let Some(path) = ca_file else { return Ok(Self { authorities: None, patience: PATIENCE }) };
        let refuse = |why: &dyn std::fmt::Display| {
            Problem::usage(format!("ca_file: {} holds no certificates: {why}", path.display()))
        };
        let file = std::fs::File::open(path).map_err(|error| refuse(&error))?;
        let text = bounded::bytes(file, bounded::SECRET).map_err(|error| refuse(&error))?;
        let certificates = parse_pem(&text).filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(Ok(certificate)),
            Ok(_) => None,
            Err(error) => Some(Err(refuse(&error))),
        });
        let certificates: Vec<_> = certificates.collect::<Result<_, _>>()?;
        match certificates.is_empty() {
            true => Err(refuse(&"nothing in it is one")),
            false => Ok(Self { authorities: Some(RootCerts::from(certificates)), patience: PATIENCE }),
        }
    }

    /// Delivers, or says why not.
    pub fn deliver(&self, hook: &Hook, letter: &Letter, now: u64) -> Result<(), Returned> {
        let body = letter.body(hook.form);
        let timestamp = now.to_string();
        let mut request = self.agent(hook).post(hook.url()).content_type("application/json; charset=utf-8");
        request = request.header(ID, &letter.id).header(TIMESTAMP, &timestamp);
        if let Some(key) = hook.key() {
            request = request.header(SIGNATURE, signature(key, &letter.id, &timestamp, &body));
        }
        let answer = request.send(body.as_bytes()).map_err(|error| self.explained(&error))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status if status.is_redirection() => {
                Err(format!("it answers {} and points elsewhere, which is not followed", status.as_u16()))
            }
            StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => {
                Err(format!(
                    "it answers {}: the address is not known there (any more)",
                    answer.status().as_u16()
                ))
            }
            status => Err(format!("it answers {}", status.as_u16())),
        }
    }

    fn agent(&self, hook: &Hook) -> Agent {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_response_header_size(16 << 10)
            .timeout_global(Some(self.patience))
            .user_agent(concat!("togl/", env!("CARGO_PKG_VERSION")));
        let url = hook.url().parse::<ureq::http::Uri>().ok();
        // A proxy of the environment is for the world outside.
        if url.is_some_and(|url| url.host().is_some_and(is_this_machine)) {
            config = config.proxy(None);
        }
        if let Some(authorities) = &self.authorities {
            config = config.tls_config(TlsConfig::builder().root_certs(authorities.clone()).build());
        }
        config.build().into()
    }

    /// Without the address, which some of these errors repeat.
    fn explained(&self, error: &ureq::Error) -> Returned {
        let too_late = || format!("no answer within {} seconds", self.patience.as_secs());
        match error {
            ureq::Error::Timeout(_) => too_late(),
            ureq::Error::HostNotFound => {
                "its host has no address; check the name, and the network".to_owned()
            }
            ureq::Error::ConnectionFailed => "nobody listens there".to_owned(),
            ureq::Error::Io(error) => match error.kind() {
                std::io::ErrorKind::ConnectionRefused => "nobody listens there".to_owned(),
                std::io::ErrorKind::TimedOut => too_late(),
                kind => format!("the connection broke: {kind}"),
            },
            ureq::Error::Tls(_) | ureq::Error::Rustls(_) | ureq::Error::Pem(_) => {
                "its certificate is not believed; name the authority of a network of its own with `ca_file`"
                    .to_owned()
            }
            ureq::Error::Protocol(_) | ureq::Error::LargeResponseHeader(..) => {
                "what it answers is not HTTP".to_owned()
            }
            ureq::Error::ConnectProxyFailed(_) | ureq::Error::InvalidProxyUrl => {
                "the proxy refuses".to_owned()
            }
            _ => "it cannot be sent".to_owned(),
        }
    }
}

/// Why a letter did not arrive.
pub type Returned = String;

/// As the Standard Webhooks specification wants it, so that receivers need not write the check themselves.
fn signature(key: &[u8], id: &str, timestamp: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let tag = hmac::sign(&key, format!("{id}.{timestamp}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(tag))
}

#[cfg(test)]
#[path = "send_tests.rs"]
mod tests;
