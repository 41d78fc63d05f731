//! Brings the files of a data set into a data folder, from the public sites, from a mirror, or from another
//! folder. A file appears under its name only when it is complete and its content was checked; what was
//! downloaded first is written down, and a later change is reported. One process of a machine fetches, others
//! wait. The only part of this crate that uses the network.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;
use thiserror::Error as ThisError;

use crate::catalogue::find;
use crate::download::{Unfinished, agent, download};
use crate::error::Error;
use crate::origins::{Origin, origins};
use crate::progress::{DataObserver, DataProgress, DataWork};
use crate::tu;

const LOCK: &str = ".fetch.lock";
const READ_AT_ONCE: usize = 1 << 16;

/// Where files come from and where they go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchOptions {
    /// The data folder, which is written to.
    pub data_dir: PathBuf,
    /// Copy from this folder instead of the network: laid out like a data folder, or all files in one.
    pub from: Option<PathBuf>,
    /// Download from here instead of the public sites: the address of a folder laid out like a data folder.
    pub mirror: Option<String>,
    /// Fetch also what is there already.
    pub again: bool,
    /// Believe the authorities in this PEM file instead of the built-in ones: for networks that have their
    /// own.
    pub ca_file: Option<PathBuf>,
}

/// How one file came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FetchOutcome {
    /// It was there already.
    Present,
    /// All of it was downloaded.
    Downloaded,
    /// The rest of an earlier attempt was downloaded.
    Resumed,
    /// It was copied from another folder.
    Copied,
}

/// One file of a data set, complete in the data folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fetched {
    /// Where it is.
    pub path: PathBuf,
    /// Where it is published.
    pub url: String,
    /// Its length.
    pub bytes: u64,
    /// Its content.
    pub sha256: String,
    /// How it came.
    pub outcome: FetchOutcome,
    /// The content is not what it was when it was first fetched, or not what it should be.
    pub warning: Option<String>,
}

/// Why a file could not be fetched. What was downloaded so far is kept unless it is known to be wrong.
#[derive(Debug, ThisError)]
pub enum FetchError {
    /// The data set is not known.
    #[error(transparent)]
    Dataset(#[from] Error),
    /// The server cannot be reached.
    #[error("{url}: {reason}")]
    Transport { url: String, reason: String },
    /// The connection broke again and again.
    #[error("{url}: broken off after {done} bytes: {reason}")]
    Interrupted {
        url: String,
        /// Bytes that are there.
        done: u64,
        /// Bytes there should be.
        total: Option<u64>,
        reason: String,
    },
    /// The operating system refused.
    #[error("cannot write {}", .path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// It cannot be had like this, and the words say why.
    #[error("{0}")]
    Refused(String),
    /// It is not where it was looked for, but may be elsewhere.
    #[error("{problem}")]
    NotThere {
        /// Where it was looked for, and what was there instead.
        problem: String,
        /// Where else it may be.
        hint: String,
    },
}

impl FetchError {
    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            FetchError::Dataset(error) => error.hint(),
            FetchError::Transport { .. } => {
                Some("without a connection, fetch from a folder that holds the file".to_string())
            }
            FetchError::Interrupted { .. } => Some("fetch again to continue where it stopped".to_string()),
            FetchError::NotThere { hint, .. } => Some(hint.clone()),
            FetchError::Write { .. } | FetchError::Refused(_) => None,
        }
    }
}

/// Fetches all files of a data set; none where it is generated. Stops at the first that cannot be fetched.
pub fn fetch(
    name: &str,
    options: &FetchOptions,
    observer: DataObserver<'_>,
) -> Result<Vec<Fetched>, FetchError> {
    let files = origins(name)?;
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let _lock = lock(&options.data_dir)?;
    files.iter().map(|origin| fetch_file(origin, options, observer)).collect()
}

/// The same for what a data set still lacks: an archive is not fetched where it lies unpacked or elsewhere in the
/// data folder. Whoever waited for another process finds its files and fetches nothing.
pub(crate) fn fetch_missing(
    name: &str,
    options: &FetchOptions,
    observer: DataObserver<'_>,
) -> Result<Vec<Fetched>, FetchError> {
    let name = find(name)?.name;
    let mut files = origins(name)?;
    let _lock = lock(&options.data_dir)?;
    files.retain(|origin| !is_there(name, origin, &options.data_dir));
    files.iter().map(|origin| fetch_file(origin, options, observer)).collect()
}

fn is_there(name: &str, origin: &Origin, data_dir: &Path) -> bool {
    let unpacked = || origin.path.starts_with("tu") && tu::found(name, Some(data_dir)).is_some();
    data_dir.join(&origin.path).is_file() || unpacked()
}

/// Freed when it is dropped, also by a process that dies.
fn lock(data_dir: &Path) -> Result<File, FetchError> {
    let path = data_dir.join(LOCK);
    let refused = |source| FetchError::Write { path: path.clone(), source };
    fs::create_dir_all(data_dir).map_err(refused)?;
    let lock = File::options().create(true).append(true).open(&path).map_err(refused)?;
    lock.lock().map_err(refused)?;
    Ok(lock)
}

fn fetch_file(
    origin: &Origin,
    options: &FetchOptions,
    observer: DataObserver<'_>,
) -> Result<Fetched, FetchError> {
    let target = options.data_dir.join(&origin.path);
    if target.is_file() && !options.again {
        let (sha256, bytes) = digest(&target)?;
        let expected = origin.sha256.map(str::to_string).or_else(|| recorded(&target));
        let warning = expected
            .filter(|expected| *expected != sha256)
            .map(|expected| format!("the file has changed: sha256 was {expected}, now {sha256}"));
        let url = origin.url.clone();
        return Ok(Fetched { path: target, url, bytes, sha256, outcome: FetchOutcome::Present, warning });
    }
    let folder = target.parent().unwrap_or(&options.data_dir);
    fs::create_dir_all(folder).map_err(|source| FetchError::Write { path: folder.to_path_buf(), source })?;
    let unfinished = Unfinished::of(&target);
    let (came_from, outcome) = match &options.from {
        Some(from) => (copy(origin, from, &unfinished, observer)?, FetchOutcome::Copied),
        None => {
            let url = address(origin, options);
            let agent = agent(&url, options.ca_file.as_deref())?;
            let resumed = download(&agent, &url, &unfinished, observer)? > 0;
            (url, if resumed { FetchOutcome::Resumed } else { FetchOutcome::Downloaded })
        }
    };
    accept(origin, &came_from, &target, &unfinished, outcome)
}

/// Checks the content, then gives the file its name.
fn accept(
    origin: &Origin,
    came_from: &str,
    target: &Path,
    unfinished: &Unfinished,
    outcome: FetchOutcome,
) -> Result<Fetched, FetchError> {
    let (sha256, bytes) = digest(&unfinished.path)?;
    if let Some(expected) = origin.sha256.filter(|expected| *expected != sha256) {
        unfinished.discard();
        return Err(FetchError::Refused(format!(
            "{came_from}: sha256 is {sha256}, but {expected} was published; the file was not kept"
        )));
    }
    let earlier = recorded(target).filter(|earlier| *earlier != sha256);
    let warning = earlier.map(|earlier| {
        format!(
            "the published file has changed since it was first fetched: sha256 was {earlier}, now {sha256}"
        )
    });
    let refused = |source| FetchError::Write { path: target.to_path_buf(), source };
    unfinished.finish(target).map_err(refused)?;
    if recorded(target).is_none() {
        record(target, &sha256).map_err(refused)?;
    }
    Ok(Fetched { path: target.to_path_buf(), url: origin.url.clone(), bytes, sha256, outcome, warning })
}

fn address(origin: &Origin, options: &FetchOptions) -> String {
    match &options.mirror {
        None => origin.url.clone(),
        Some(mirror) => format!("{}/{}", mirror.trim_end_matches('/'), origin.path.to_string_lossy()),
    }
}

/// Copies under the unfinished name; says from where.
fn copy(
    origin: &Origin,
    from: &Path,
    unfinished: &Unfinished,
    observer: DataObserver<'_>,
) -> Result<String, FetchError> {
    let file = origin.path.file_name().unwrap_or_default();
    let places = [from.join(&origin.path), from.join(file)];
    let found = places.iter().find(|place| place.is_file()).ok_or_else(|| {
        let problem = format!("no {} in {}", file.display(), from.display());
        FetchError::NotThere { problem, hint: format!("it is published at {}", origin.url) }
    })?;
    unfinished.discard();
    let copied = fs::copy(found, &unfinished.path).map_err(|source| {
        unfinished.discard();
        FetchError::Write { path: unfinished.path.clone(), source }
    })?;
    observer(DataProgress { work: DataWork::Download, done: copied, total: Some(copied) });
    Ok(found.display().to_string())
}

fn record_path(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_os_string();
    name.push(".sha256");
    target.with_file_name(name)
}

/// The digest of the file as it was first fetched.
fn recorded(target: &Path) -> Option<String> {
    let text = fs::read_to_string(record_path(target)).ok()?;
    text.split_whitespace().next().map(str::to_string)
}

/// In the form that `sha256sum --check` understands.
fn record(target: &Path, sha256: &str) -> io::Result<()> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    fs::write(record_path(target), format!("{sha256}  {name}\n"))
}

fn digest(path: &Path) -> Result<(String, u64), FetchError> {
    let refused = |source| FetchError::Write { path: path.to_path_buf(), source };
    let mut file = File::open(path).map_err(refused)?;
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    let mut buffer = vec![0; READ_AT_ONCE];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer).map_err(refused)? {
            0 => break,
            count => {
                context.update(&buffer[..count]);
                bytes += count as u64;
            }
        }
    }
    let digest = context.finish();
    Ok((digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect(), bytes))
}
