//! The back ends that the contract runs on: how each is made, and opened again.

use tempfile::TempDir;

use super::super::address::StoreAddress;
use super::super::memory::MemoryStore;
use super::super::{Store, StoreError};

/// A place for a store that can be opened again and again.
pub(super) trait Backend {
    fn open(&self) -> Box<dyn Store>;

    /// Why a second coordinator is not let in; none where nothing can be shared.
    fn second(&self) -> Option<StoreError>;

    /// What it is called; none for what has no name.
    fn address(&self) -> Option<StoreAddress> {
        None
    }
}

/// Makes places, each of its own.
pub(super) type Make<'a> = &'a dyn Fn() -> Box<dyn Backend>;

struct Memory(MemoryStore);

impl Backend for Memory {
    fn open(&self) -> Box<dyn Store> {
        Box::new(self.0.clone())
    }

    fn second(&self) -> Option<StoreError> {
        None
    }
}

pub(super) fn memory() -> Box<dyn Backend> {
    Box::new(Memory(MemoryStore::default()))
}

/// A place that an address names.
pub(super) struct Place {
    address: StoreAddress,
    _folder: Option<TempDir>,
}

impl Place {
    /// A place that somebody else looks after.
    pub(super) fn at(address: StoreAddress) -> Self {
        Self { address, _folder: None }
    }
}

impl Backend for Place {
    fn open(&self) -> Box<dyn Store> {
        self.address.open().unwrap()
    }

    fn second(&self) -> Option<StoreError> {
        Some(self.address.open().map(|_| ()).unwrap_err())
    }

    fn address(&self) -> Option<StoreAddress> {
        Some(self.address.clone())
    }
}

pub(super) fn sqlite() -> Box<dyn Backend> {
    let folder = TempDir::new().unwrap();
    let address = StoreAddress::Sqlite(folder.path().join("store.sqlite"));
    Box::new(Place { address, _folder: Some(folder) })
}
