//! The state directory: where it is and what lies where in it. Makes it (private to the user) and finds the
//! coordinator that serves it; knows nothing of what the files hold.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::problem::Problem;

/// The directory that holds the store, the tokens and the tables.
#[derive(Debug, Clone)]
pub struct StateDir(PathBuf);

/// Who serves a state directory and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// HOST:PORT.
    pub address: String,
    /// Process id, for people.
    pub pid: u32,
}

impl StateDir {
    /// The given directory, or the user's own.
    pub fn resolve(given: Option<PathBuf>) -> Result<Self, Problem> {
        if let Some(folder) = given {
            return Ok(Self(folder));
        }
        let base = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
        let base = base.or_else(|| std::env::home_dir().map(|home| home.join(".local/state")));
        let missing =
            || Problem::usage("no home directory to keep state in").hint("name a folder with --state");
        Ok(Self(base.ok_or_else(missing)?.join("togl")))
    }

    /// Makes the directory and makes sure that it can be written.
    pub fn create(&self) -> Result<(), Problem> {
        let refuse = |error: std::io::Error| {
            Problem::usage(format!("cannot write the state directory {}: {error}", self.0.display()))
                .hint("choose a writable folder with --state DIR or TOGL_STATE")
        };
        let mut builder = fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(&self.0).map_err(refuse)?;
        let probe = self.0.join(format!(".writable-{}", std::process::id()));
        fs::write(&probe, b"").and_then(|()| fs::remove_file(&probe)).map_err(refuse)
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The embedded store.
    pub fn store(&self) -> PathBuf {
        self.0.join("store.sqlite")
    }

    /// The tokens.
    pub fn tokens(&self) -> PathBuf {
        self.0.join("tokens.json")
    }

    /// Where the tables of a sweep are written unless the user says otherwise.
    pub fn tables(&self, sweep: &str) -> PathBuf {
        self.0.join("tables").join(sweep)
    }

    fn served_file(&self) -> PathBuf {
        self.0.join("coordinator.json")
    }

    /// Tells other commands where the coordinator is; forgotten when the guard is dropped.
    pub fn announce(&self, address: &str) -> Result<Announcement, Problem> {
        let served = Served { address: address.to_owned(), pid: std::process::id() };
        let text = serde_json::to_vec(&served).map_err(Problem::ours)?;
        let partial = self.0.join("coordinator.json.partial");
        let mut file = fs::File::create(&partial)?;
        file.write_all(&text)?;
        fs::rename(&partial, self.served_file())?;
        Ok(Announcement(self.served_file()))
    }

    /// The coordinator that serves this directory, as last announced.
    pub fn served(&self) -> Option<Served> {
        let text = fs::read(self.served_file()).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// Takes the announcement back when dropped. After a crash it stays; whoever believes it finds nobody there.
#[derive(Debug)]
pub struct Announcement(PathBuf);

impl Drop for Announcement {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coordinator_is_found_while_it_serves_and_not_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::resolve(Some(folder.path().join("new/state"))).unwrap();
        state.create().unwrap();
        assert_eq!(state.served(), None);
        let announcement = state.announce("127.0.0.1:7447").unwrap();
        assert_eq!(state.served().unwrap().address, "127.0.0.1:7447");
        drop(announcement);
        assert_eq!(state.served(), None);
    }
}
