//! The error of this crate: each variant is something a caller can act on, names the thing it is about,
//! and ends with a hint where there is one.

use std::path::PathBuf;

use thiserror::Error;

use crate::origins::how_to_get;
use crate::splits::SplitError;
use crate::structure::StructureError;

/// Why a data set could not be opened or split.
#[derive(Debug, Error)]
pub enum Error {
    /// No source has this name.
    #[error("unknown data set `{name}`{}", searched(.looked_at))]
    UnknownDataset {
        name: String,
        /// Every place where a set of one's own could lie.
        looked_at: Vec<PathBuf>,
        /// The nearest name and all names.
        hint: String,
    },
    /// An option has a value that no data set can be made with.
    #[error("{option} {value} cannot be used for {dataset}: {reason}")]
    BadOption {
        dataset: String,
        option: &'static str,
        value: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// The files of a data set are not there.
    #[error("the files of {dataset} are missing: looked at {}", list(.looked_at))]
    MissingFiles {
        dataset: String,
        /// Every place that was tried.
        looked_at: Vec<PathBuf>,
        /// How to get them.
        hint: String,
    },
    /// The operating system refused.
    #[error("cannot read {}", .path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// A file does not say what its format promises.
    #[error("{file}, line {line}: {problem}")]
    Malformed {
        /// The file, or archive and member.
        file: String,
        /// The line, from 1; one past the last where the file ends too early.
        line: usize,
        problem: String,
    },
    /// A file that has no lines does not say what its format promises.
    #[error("{file}: {problem}")]
    Damaged {
        /// The file, or archive and member.
        file: String,
        problem: String,
    },
    /// A file is larger than any benchmark's, most likely an archive made to fill the memory.
    #[error("{file} holds more than {limit} bytes after decompression; it is not read any further")]
    TooLarge {
        /// The file, or archive and member.
        file: String,
        /// The most that is read.
        limit: u64,
    },
    /// Parts that were read do not form a data set.
    #[error("{dataset} is not a sound data set")]
    Structure {
        dataset: String,
        #[source]
        source: StructureError,
    },
    /// A split cannot be made.
    #[error(transparent)]
    Split(#[from] SplitError),
}

impl Error {
    /// An option of a data set that cannot be as it is.
    pub(crate) fn bad_option(
        dataset: &str,
        option: &'static str,
        value: impl ToString,
        reason: impl ToString,
    ) -> Error {
        let (dataset, value, reason) = (dataset.to_string(), value.to_string(), reason.to_string());
        Error::BadOption { dataset, option, value, reason }
    }

    /// Files of a data set that are at none of these places, and where to get them.
    pub(crate) fn missing(dataset: &str, looked_at: Vec<PathBuf>) -> Error {
        Error::MissingFiles { dataset: dataset.to_string(), looked_at, hint: how_to_get(dataset) }
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::UnknownDataset { hint, .. } | Error::MissingFiles { hint, .. } => Some(hint.clone()),
            Error::Split(error) => error.hint(),
            _ => None,
        }
    }
}

fn searched(paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        return String::new();
    }
    format!(": it is not in the catalogue, and as your own it was looked for at {}", list(paths))
}

fn list(paths: &[PathBuf]) -> String {
    let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    if shown.is_empty() { "no folder (none was given)".to_string() } else { shown.join(", ") }
}
