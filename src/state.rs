//! The state directory: where it is and what lies where in it. Makes it (private to the user) and finds the
//! coordinator that serves it; knows nothing of what the files hold.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use togl_coordinator::private;
use togl_coordinator::store::address::StoreAddress;
use togl_coordinator::tokens::TokenPlace;
use togl_proto::own_machine::{self, Served};

use crate::problem::Problem;

/// The directory that holds the store, unless that is elsewhere, the tokens and the tables.
#[derive(Debug, Clone)]
pub struct StateDir {
    folder: PathBuf,
    store: StoreAddress,
}

impl StateDir {
    /// The given directory, or the user's own.
    pub fn resolve(given: Option<PathBuf>) -> Result<Self, Problem> {
        let missing =
            || Problem::usage("no home directory to keep state in").hint("name a folder with --state");
        Self::at(given.or_else(own_machine::state_folder).ok_or_else(missing)?)
    }

    /// A directory whose store is in it, unless `TOGL_STORE` names another.
    fn at(folder: PathBuf) -> Result<Self, Problem> {
        let store = StoreAddress::Sqlite(folder.join("store.sqlite"));
        Self { folder, store }.with_store(std::env::var("TOGL_STORE").ok().as_deref())
    }

    /// The same directory with the store that was named, if one was.
    pub fn with_store(self, named: Option<&str>) -> Result<Self, Problem> {
        match named {
            Some(named) => Ok(Self { store: named.parse().map_err(Problem::usage)?, ..self }),
            None => Ok(self),
        }
    }

    /// Makes the directory and makes sure that it can be written.
    pub fn create(&self) -> Result<(), Problem> {
        let refuse = |error: std::io::Error| {
            Problem::usage(format!("cannot write the state directory {}: {error}", self.folder.display()))
                .hint("choose a writable folder with --state DIR or TOGL_STATE")
        };
        make_private(&self.folder).map_err(refuse)?;
        let probe = self.folder.join(format!(".writable-{}", std::process::id()));
        let made = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&probe);
        made.and_then(|_| fs::remove_file(&probe)).map_err(refuse)
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The store.
    pub fn store(&self) -> &StoreAddress {
        &self.store
    }

    /// Whether there may be something in the store: a file that is not there holds nothing.
    pub fn has_store(&self) -> bool {
        match &self.store {
            StoreAddress::Sqlite(path) => path.exists(),
            _ => true,
        }
    }

    /// The file of its tokens.
    pub fn tokens(&self) -> PathBuf {
        self.folder.join("tokens.json")
    }

    /// Where its list of tokens is: that file, or the store that several coordinators share.
    pub fn token_place(&self) -> TokenPlace {
        TokenPlace::of(&self.tokens(), &self.store)
    }

    /// Where the tables of a sweep are written unless the user says otherwise; made if it is not there.
    pub fn tables(&self, sweep: &str) -> std::io::Result<PathBuf> {
        let folder = self.folder.join("tables").join(sweep);
        make_private(&folder)?;
        Ok(folder)
    }

    fn served_file(&self) -> PathBuf {
        self.folder.join(own_machine::ANNOUNCED)
    }

    /// Tells other commands where the coordinator is; forgotten when the guard is dropped.
    pub fn announce(&self, address: &str) -> Result<Announcement, Problem> {
        Self::announce_in(self.served_file(), address)
    }

    /// Tells probes of this machine that a coordinator waits to take over; forgotten when the guard is dropped.
    pub fn announce_waiting(&self, address: &str) -> Result<Announcement, Problem> {
        Self::announce_in(self.folder.join(own_machine::WAITING), address)
    }

    fn announce_in(file: PathBuf, address: &str) -> Result<Announcement, Problem> {
        let served = Served { address: address.to_owned(), pid: std::process::id() };
        let text = serde_json::to_vec(&served).map_err(Problem::ours)?;
        private::write(&file, &text)?;
        Ok(Announcement(file))
    }

    /// The coordinator that serves this directory, as last announced.
    pub fn served(&self) -> Option<Served> {
        Served::find(&self.folder)
    }
}

/// Makes a folder, and those that it is in, for this user alone; one that is there stays as it is.
fn make_private(folder: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
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
