//! Objects of S3-compatible storage by URLs that somebody has signed: HTTP and nothing else. Whoever has such a URL needs no key.
//! Everything here blocks. What storage says when it refuses becomes one line, without the URL's signature, which is as good as
//! a key while it lasts.

use std::io::Read;
use std::sync::OnceLock;
use std::time::Duration;

use togl_sweeps::visible;
use ureq::Agent;
use ureq::http::{Response, StatusCode, Uri};

/// What somebody puts who only wants to know whether that works.
pub const TRIED: &[u8] = b"togl tries whether checkpoints could move";

/// Bytes of what storage says that are read: refusals are short, and one page of a list holds a thousand names.
const MOST_WORDS: u64 = 4 << 20;

/// How long a connection may take.
const CONNECTING: Duration = Duration::from_secs(10);

/// How long storage may take to answer once everything is sent.
const ANSWERING: Duration = Duration::from_secs(30);

/// How long an object may take either way.
const CARRYING: Duration = Duration::from_secs(600);

/// Why storage did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// No answer.
    #[error("no answer from the storage at {host}: {reason}")]
    Unreachable {
        /// Who was asked.
        host: String,
        /// What the network said.
        reason: String,
    },
    /// An answer that says no.
    #[error("the storage at {host} refuses: {reason}")]
    Refused {
        /// Who was asked.
        host: String,
        /// The HTTP status.
        status: u16,
        /// The word of S3 for it, such as `AccessDenied`; empty if there was none.
        code: String,
        /// What storage says.
        reason: String,
    },
    /// It is not there.
    #[error("the storage at {host} does not have it")]
    NotThere {
        /// Who was asked.
        host: String,
    },
    /// More came than there can be.
    #[error("the storage at {host} sends more than the {promised} bytes that were promised")]
    Longer {
        /// Who was asked.
        host: String,
        /// So many were.
        promised: u64,
    },
    /// What came cannot be read.
    #[error("the storage at {host} answers in a way that S3 does not: {reason}")]
    Strange {
        /// Who was asked.
        host: String,
        /// What is odd.
        reason: String,
    },
}

impl StorageError {
    /// Whether it may be otherwise in a moment.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => matches!(status, 429 | 500 | 502 | 503 | 504),
            Self::NotThere { .. } | Self::Longer { .. } | Self::Strange { .. } => false,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "check the address, and whether this machine may connect to it",
            Self::Refused { status, code, .. } => match (code.as_str(), status) {
                ("NoSuchBucket", _) => "make the bucket, or name one that is there",
                ("RequestTimeTooSkewed", _) => "set the clock of the coordinator's machine",
                ("InvalidAccessKeyId" | "SignatureDoesNotMatch" | "ExpiredToken" | "InvalidToken", _) => {
                    "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN) of the coordinator"
                }
                ("QuotaExceeded" | "XMinioStorageFull" | "InsufficientStorage", _) | (_, 507) => {
                    "make room in the storage, or give the bucket a larger quota"
                }
                ("PermanentRedirect" | "AuthorizationHeaderMalformed" | "TemporaryRedirect", _)
                | (_, 301 | 307) => "name the region of the bucket with --checkpoint-region",
                (_, 403) => "let the key read, write, list and remove objects under the prefix",
                _ => "see what the storage says of it; checkpoints cost time only, so training goes on",
            },
            Self::NotThere { .. } => {
                "check the bucket and the prefix; something else may remove what is in it"
            }
            Self::Longer { .. } => "give the coordinator a prefix that nobody else writes to",
            Self::Strange { .. } => "check that the address is that of S3-compatible storage",
        }
    }
}

/// Puts an object of these bytes where the URL says.
pub fn put(url: &str, bytes: &[u8]) -> Result<(), StorageError> {
    accept(url, agent().put(url).send(bytes))?;
    Ok(())
}

/// The object at this URL, which has at most so many bytes.
pub fn get(url: &str, most_bytes: u64) -> Result<Vec<u8>, StorageError> {
    let response = accept(url, agent().get(url).call())?;
    let (mut bytes, mut body) = (Vec::new(), response.into_body().into_reader().take(most_bytes + 1));
    body.read_to_end(&mut bytes).map_err(|error| unreachable(url, error))?;
    match bytes.len() as u64 > most_bytes {
        true => Err(StorageError::Longer { host: host(url), promised: most_bytes }),
        false => Ok(bytes),
    }
}

/// How many bytes the object at this URL, signed for HEAD, has.
pub fn size(url: &str) -> Result<u64, StorageError> {
    let response = accept(url, agent().head(url).call())?;
    let length = response.headers().get("content-length").and_then(|value| value.to_str().ok()?.parse().ok());
    let strange =
        || StorageError::Strange { host: host(url), reason: "an object without a length".to_owned() };
    length.ok_or_else(strange)
}

/// Removes the object at this URL, signed for DELETE. Gone already is as good.
pub fn remove(url: &str) -> Result<(), StorageError> {
    match accept(url, agent().delete(url).call()) {
        Ok(_) | Err(StorageError::NotThere { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// What storage says to a question about its bucket.
pub fn ask(url: &str) -> Result<Vec<u8>, StorageError> {
    get(url, MOST_WORDS)
}

/// One for the whole process, so that connections are used again.
fn agent() -> &'static Agent {
    static AGENT: OnceLock<Agent> = OnceLock::new();
    AGENT.get_or_init(|| {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0) // whoever has signed for one host has signed for no other
            .max_redirects_will_error(false)
            .timeout_connect(Some(CONNECTING))
            .timeout_recv_response(Some(ANSWERING))
            .timeout_global(Some(CARRYING))
            .build();
        config.into()
    })
}

type Answer = Result<Response<ureq::Body>, ureq::Error>;

fn accept(url: &str, answer: Answer) -> Result<Response<ureq::Body>, StorageError> {
    let response = answer.map_err(|error| unreachable(url, error))?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let mut said = Vec::new();
    let _ = response.into_body().into_reader().take(8 << 10).read_to_end(&mut said); // the status says enough
    let said = String::from_utf8_lossy(&said);
    let code = element(&said, "Code").unwrap_or_default().to_owned();
    if status == StatusCode::NOT_FOUND && code != "NoSuchBucket" {
        return Err(StorageError::NotThere { host: host(url) });
    }
    Err(StorageError::Refused {
        host: host(url),
        status: status.as_u16(),
        reason: refusal(status, &said),
        code,
    })
}

/// `403 Forbidden, AccessDenied: you may not`, as far as there is any of it.
fn refusal(status: StatusCode, said: &str) -> String {
    let mut reason = status.to_string();
    if let Some(code) = element(said, "Code") {
        reason += &format!(", {code}");
    }
    if let Some(message) = element(said, "Message").filter(|message| !message.is_empty()) {
        reason += &format!(": {}", message.trim_end_matches('.'));
    }
    let short: String = reason.chars().take(300).collect();
    visible::visible_in_line(&short).into_owned()
}

/// The text of an element in what S3 says of a refusal.
fn element<'a>(said: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = said.split_once(&format!("<{name}>"))?;
    rest.split_once('<').map(|(text, _)| text.trim())
}

fn unreachable(url: &str, error: impl ToString) -> StorageError {
    let said = error.to_string();
    let reason = said.split('?').next().unwrap_or_default(); // what follows could be a signature
    StorageError::Unreachable { host: host(url), reason: reason.to_owned() }
}

/// Who is asked; all of a URL that anybody may read.
fn host(url: &str) -> String {
    let authority = url.parse::<Uri>().ok().and_then(|uri| Some(uri.authority()?.as_str().to_owned()));
    let authority = authority.unwrap_or_else(|| "an address that is none".to_owned());
    authority.rsplit('@').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "<?xml version=\"1.0\"?><Error><Code>SignatureDoesNotMatch</Code><Message>It\u{1b} does\nnot.</Message></Error>";

    #[test]
    fn a_refusal_is_one_line_that_says_what_storage_says_and_what_to_do() {
        let reason = refusal(StatusCode::FORBIDDEN, SAID);
        assert_eq!(reason, "403 Forbidden, SignatureDoesNotMatch: It\\u{1b} does\\nnot");
        let code = element(SAID, "Code").unwrap_or_default().to_owned();
        let error = StorageError::Refused { host: "h".to_owned(), status: 403, code, reason };
        assert!(error.hint().contains("AWS_SECRET_ACCESS_KEY") && !error.may_pass());
        assert_eq!(refusal(StatusCode::INSUFFICIENT_STORAGE, "no XML"), "507 Insufficient Storage");
    }

    #[test]
    fn nobody_reads_a_signature_in_an_error() {
        let url = "http://127.0.0.1:1/bucket/name?X-Amz-Signature=secret";
        let error = get(url, 10).unwrap_err();
        assert!(error.may_pass(), "{error}");
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
        let error = put("no address?X-Amz-Signature=secret", b"x").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    }
}
