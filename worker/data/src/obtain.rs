//! Opens a data set, and before that fetches its files where they are missing: the one call of those who train.
//! However many processes of a machine ask at once, one fetches and the others wait for it. It decides what is
//! fetched; `fetch` moves the bytes, the catalogue reads them.

use std::path::PathBuf;

use thiserror::Error as ThisError;

use crate::catalogue::{OpenOptions, Opened, is_available, open_observed};
use crate::error::Error;
use crate::fetch::{FetchError, FetchOptions, fetch_missing};
use crate::origins::how_to_get;
use crate::progress::DataObserver;

/// Where missing files may come from: the public sites, unless something else is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Supply {
    /// Fetch nothing: what is missing is an error at once.
    pub offline: bool,
    /// Download from here instead: the address of a folder laid out like a data folder.
    pub mirror: Option<String>,
    /// Copy from this folder instead of the network.
    pub from: Option<PathBuf>,
    /// Believe the authorities in this PEM file instead of the built-in ones.
    pub ca_file: Option<PathBuf>,
}

/// Why a data set is not there to train on.
#[derive(Debug, ThisError)]
pub enum ObtainError {
    /// It is unknown, its files are missing and nothing may be fetched, or they cannot be read.
    #[error(transparent)]
    Open(#[from] Error),
    /// Its files are missing and could not be fetched.
    #[error("the files of {dataset} are missing and cannot be fetched: {reason}")]
    Fetch {
        /// The data set.
        dataset: String,
        /// What went wrong, with the address or file.
        reason: String,
        /// How to get them by hand.
        hint: String,
        /// Whether the network was at fault, so that it may work another time or on another machine.
        network: bool,
    },
}

impl ObtainError {
    /// Whether the same call may succeed later.
    pub fn is_passing(&self) -> bool {
        matches!(self, ObtainError::Fetch { network: true, .. })
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            ObtainError::Open(error) => error.hint(),
            ObtainError::Fetch { hint, .. } => Some(hint.clone()),
        }
    }
}

/// Opens the data set of this name; files that are missing are fetched into the data folder of the options first,
/// once for all processes of the machine. A name that the catalogue does not know is never looked for in the
/// network: it is most likely a slip.
///
/// ```
/// use togl_data::{OpenOptions, Supply, obtain};
///
/// let opened = obtain("necklaces", &OpenOptions::default(), &Supply::default(), &|_| ())?;
/// assert_eq!(opened.dataset.graph_count(), 1000);
/// # Ok::<(), togl_data::ObtainError>(())
/// ```
pub fn obtain(
    name: &str,
    options: &OpenOptions,
    supply: &Supply,
    observer: DataObserver<'_>,
) -> Result<Opened, ObtainError> {
    let data_dir = options.data_dir.clone().filter(|_| !supply.offline);
    if let (false, Some(data_dir)) = (is_available(name, options)?, data_dir) {
        let Supply { mirror, from, ca_file, .. } = supply.clone();
        let fetching = FetchOptions { data_dir, from, mirror, again: false, ca_file };
        fetch_missing(name, &fetching, observer).map_err(|error| failed(name, &error))?;
    }
    Ok(open_observed(name, options, observer)?)
}

fn failed(name: &str, error: &FetchError) -> ObtainError {
    let mut reason = error.to_string();
    if let Some(cause) = std::error::Error::source(error) {
        reason = format!("{reason}: {cause}");
    }
    let network = matches!(error, FetchError::Transport { .. } | FetchError::Interrupted { .. });
    ObtainError::Fetch { dataset: name.to_string(), reason, hint: how_to_get(name), network }
}
