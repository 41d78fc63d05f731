//! What the two programs find of each other on one machine: the user's folders, and where the coordinator of a state directory
//! is announced. Reads environment and that one file; makes nothing.

use std::env;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use togl_sweeps::bounded;

/// The file in which a coordinator announces itself in its state directory.
pub const ANNOUNCED: &str = "coordinator.json";

/// The file in which a coordinator that waits to take over does.
pub const WAITING: &str = "standby.json";

/// The user's state directory for this project; none where there is no home.
pub fn state_folder() -> Option<PathBuf> {
    folder("XDG_STATE_HOME", ".local/state")
}

/// The user's cache directory for this project; none where there is no home.
pub fn cache_folder() -> Option<PathBuf> {
    folder("XDG_CACHE_HOME", ".cache")
}

/// The user's configuration directory for this project; none where there is no home.
pub fn config_folder() -> Option<PathBuf> {
    folder("XDG_CONFIG_HOME", ".config")
}

fn folder(variable: &str, usual: &str) -> Option<PathBuf> {
    let named = env::var_os(variable).map(PathBuf::from);
    Some(named.or_else(|| env::home_dir().map(|home| home.join(usual)))?.join("togl"))
}

/// Who serves a state directory and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// HOST:PORT.
    pub address: String,
    /// Process id, for people.
    pub pid: u32,
}

impl Served {
    /// As last announced in this state directory.
    pub fn find(state: &Path) -> Option<Self> {
        Self::read(&state.join(ANNOUNCED))
    }

    /// Who waits here to take over from a coordinator elsewhere, if that process is still there.
    pub fn waiting(state: &Path) -> Option<Self> {
        Self::read(&state.join(WAITING))
            .filter(|waiting| Path::new("/proc").join(waiting.pid.to_string()).exists())
    }

    fn read(file: &Path) -> Option<Self> {
        let text = File::open(file).and_then(|file| bounded::text(file, bounded::SECRET));
        serde_json::from_str(&text.ok()?).ok()
    }

    /// Whether it is announced at the port of this address.
    pub fn is_at(&self, address: SocketAddr) -> bool {
        self.address.parse::<SocketAddr>().is_ok_and(|own| own.port() == address.port())
    }
}
