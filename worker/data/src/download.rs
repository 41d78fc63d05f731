//! One file over HTTP, into an unfinished file beside its place: continued where an earlier attempt stopped,
//! tried again while every attempt gets further. It moves bytes; checking them and giving the file its name
//! is the caller's part.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ureq::Agent;
use ureq::http::{HeaderMap, StatusCode};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use crate::fetch::FetchError;
use crate::progress::{DataObserver, DataProgress, DataWork};

const READ_AT_ONCE: usize = 1 << 16;
/// Bytes between two reports.
const REPORT_EVERY: u64 = 1 << 18;
/// Attempts in a row that may bring nothing new.
const FRUITLESS_ATTEMPTS: usize = 3;
/// No file of a benchmark is larger; a server that sends more is not believed.
const MOST_BYTES: u64 = 8 << 30;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// A line that is silent this long is closed and the download continued on another.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);

/// An unfinished file, and the mark by which the server tells whether it still has the same content.
pub(crate) struct Unfinished {
    /// The bytes that came so far.
    pub(crate) path: PathBuf,
    mark: PathBuf,
}

impl Unfinished {
    /// The unfinished form of a file.
    pub(crate) fn of(target: &Path) -> Unfinished {
        let beside = |ending: &str| {
            let mut name = target.file_name().unwrap_or_default().to_os_string();
            name.push(ending);
            target.with_file_name(name)
        };
        Unfinished { path: beside(".part"), mark: beside(".part-etag") }
    }

    /// What is there already; nothing without a mark, because then the rest could be of another file.
    fn begun(&self) -> Option<(u64, String)> {
        let mark = fs::read_to_string(&self.mark).ok().filter(|mark| is_strong(mark))?;
        let length = fs::metadata(&self.path).ok()?.len();
        (length > 0).then_some((length, mark))
    }

    /// Forgets everything.
    pub(crate) fn discard(&self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(&self.mark);
    }

    /// Gives the complete file its name.
    pub(crate) fn finish(&self, target: &Path) -> io::Result<()> {
        File::open(&self.path)?.sync_all()?;
        fs::rename(&self.path, target)?;
        let _ = fs::remove_file(&self.mark);
        Ok(())
    }
}

/// Downloads until the file is complete. Returns how many bytes an earlier call had left behind.
pub(crate) fn download(
    agent: &Agent,
    url: &str,
    file: &Unfinished,
    observer: DataObserver<'_>,
) -> Result<u64, FetchError> {
    let earlier = file.begun().map_or(0, |(length, _)| length);
    let mut furthest = 0;
    let mut fruitless = 0;
    loop {
        let error = match attempt(agent, url, file, observer) {
            Ok(()) => return Ok(earlier),
            Err(error @ (FetchError::Transport { .. } | FetchError::Interrupted { .. })) => error,
            Err(error) => return Err(error),
        };
        let reached = file.begun().map_or(0, |(length, _)| length);
        fruitless = if reached > furthest { 0 } else { fruitless + 1 };
        furthest = furthest.max(reached);
        if fruitless >= FRUITLESS_ATTEMPTS {
            return Err(error);
        }
    }
}

/// The client for one address; its authorities are those of the PEM file where there is one.
pub(crate) fn agent(url: &str, ca_file: Option<&Path>) -> Result<Agent, FetchError> {
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(SILENCE_TIMEOUT))
        .timeout_per_read(Some(SILENCE_TIMEOUT));
    // A proxy of the environment is for the world outside.
    if url.starts_with("http://127.0.0.1:") {
        config = config.proxy(None);
    }
    if let Some(path) = ca_file {
        config = config.tls_config(TlsConfig::builder().root_certs(authorities(path)?).build());
    }
    Ok(config.build().into())
}

/// Bytes of a file of certificates that are read; what comes after them is no certificate.
const MOST_AUTHORITIES: u64 = 16 << 20;

fn authorities(path: &Path) -> Result<RootCerts, FetchError> {
    let unusable =
        |reason: String| FetchError::Refused(format!("{} holds no certificates: {reason}", path.display()));
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST_AUTHORITIES).read_to_end(&mut text));
    read.map_err(|error| unusable(error.to_string()))?;
    let certificates = parse_pem(&text).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(Ok(certificate)),
        Ok(_) => None,
        Err(error) => Some(Err(unusable(error.to_string()))),
    });
    let certificates: Vec<_> = certificates.collect::<Result<_, _>>()?;
    if certificates.is_empty() {
        return Err(unusable("nothing in it is one".to_string()));
    }
    Ok(RootCerts::from(certificates))
}

fn attempt(
    agent: &Agent,
    url: &str,
    file: &Unfinished,
    observer: DataObserver<'_>,
) -> Result<(), FetchError> {
    let begun = file.begun();
    let mut request = agent.get(url);
    if let Some((length, mark)) = &begun {
        request = request.header("Range", format!("bytes={length}-")).header("If-Range", mark);
    }
    let response = request.call().map_err(|error| transport(url, error))?;
    let done = match (response.status(), &begun) {
        (StatusCode::OK, _) => 0,
        (StatusCode::PARTIAL_CONTENT, Some((length, _)))
            if range_start(response.headers()) == Some(*length) =>
        {
            *length
        }
        (StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE, Some(_)) => {
            file.discard();
            let reason = "the server would not continue; the next attempt starts again".to_string();
            return Err(FetchError::Interrupted { url: url.to_string(), done: 0, total: None, reason });
        }
        (status, _) => {
            return Err(FetchError::NotThere {
                problem: format!("{url}: the server answered {}", status.as_u16()),
                hint: "check the name, or download the file by other means and fetch from its folder"
                    .to_string(),
            });
        }
    };
    let total = header(response.headers(), "content-length").and_then(|length| length.parse::<u64>().ok());
    let total = total.map(|length| length.saturating_add(done));
    if done == 0 {
        file.discard();
        let mark = header(response.headers(), "etag").unwrap_or_default();
        fs::write(&file.mark, mark).map_err(|source| write_error(&file.mark, source))?;
    }
    let mut body = response.into_body().into_reader();
    receive(&mut body, url, file, DataProgress { work: DataWork::Download, done, total }, observer)
}

/// Appends what comes; an error where the connection breaks or less comes than was promised.
fn receive(
    body: &mut impl Read,
    url: &str,
    file: &Unfinished,
    mut progress: DataProgress,
    observer: DataObserver<'_>,
) -> Result<(), FetchError> {
    let refused = |source| write_error(&file.path, source);
    let mut out = File::options().create(true).append(true).open(&file.path).map_err(refused)?;
    let mut buffer = vec![0; READ_AT_ONCE];
    let mut reported = 0;
    observer(progress);
    let end = loop {
        match body.read(&mut buffer) {
            Ok(0) => break None,
            Ok(count) => {
                out.write_all(&buffer[..count]).map_err(refused)?;
                progress.done += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Some(error.to_string()),
        }
        if progress.done > MOST_BYTES {
            file.discard();
            let problem = format!("{url}: more than {MOST_BYTES} bytes; the file was not kept");
            return Err(FetchError::Refused(problem));
        }
        if progress.done >= reported + REPORT_EVERY {
            reported = progress.done;
            observer(progress);
        }
    };
    observer(progress);
    let DataProgress { done, total, .. } = progress;
    let reason = match (end, total) {
        (Some(reason), _) => reason,
        (None, Some(total)) if done != total => "the connection was closed".to_string(),
        (None, _) => return Ok(()),
    };
    Err(FetchError::Interrupted { url: url.to_string(), done, total, reason })
}

/// A weak mark does not promise equal bytes.
fn is_strong(mark: &str) -> bool {
    mark.starts_with('"')
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The first byte of `bytes 5-9/10`.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    let range = header(headers, "content-range")?.strip_prefix("bytes ")?;
    range.split_once('-')?.0.parse().ok()
}

fn transport(url: &str, error: ureq::Error) -> FetchError {
    FetchError::Transport { url: url.to_string(), reason: error.to_string() }
}

fn write_error(path: &Path, source: io::Error) -> FetchError {
    FetchError::Write { path: path.to_path_buf(), source }
}
