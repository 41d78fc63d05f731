//! Two coordinators and one store: who has the lock of the store, as a server of PostgreSQL would say it. It goes with the
//! process that has it, or when that process can no longer reach the server, which it does not know before it asks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often whoever waits asks.
const EVERY: Duration = Duration::from_millis(250);

/// The lock of a store.
#[derive(Debug, Clone)]
pub struct Lock {
    inner: Arc<Mutex<Inner>>,
    /// The mistake of letting everybody store: two coordinators are at work.
    pub unguarded: bool,
}

#[derive(Debug, Default)]
struct Inner {
    /// Who has it.
    session: Option<u64>,
    /// Who opened the store last.
    holder: u64,
}

impl Lock {
    pub fn new(unguarded: bool) -> Self {
        Self { inner: Arc::default(), unguarded }
    }

    /// Waits until the lock is free.
    pub async fn take(&self) -> Hold {
        loop {
            if let Some(hold) = self.try_take() {
                return hold;
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    fn try_take(&self) -> Option<Hold> {
        let mut inner = self.inner.lock().unwrap();
        if inner.session.is_some() {
            return None;
        }
        inner.holder += 1;
        inner.session = Some(inner.holder);
        Some(Hold { lock: self.clone(), number: inner.holder })
    }

    /// The server believes whoever has the lock to be gone. Says whether somebody had it.
    pub fn lose(&self) -> bool {
        self.inner.lock().unwrap().session.take().is_some()
    }
}

/// The lock as a coordinator has it.
#[derive(Debug)]
pub struct Hold {
    lock: Lock,
    number: u64,
}

impl Hold {
    /// Whether this coordinator may still store.
    pub fn is_ours(&self) -> bool {
        self.lock.unguarded || self.lock.inner.lock().unwrap().session == Some(self.number)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut inner = self.lock.inner.lock().unwrap();
        if inner.session == Some(self.number) {
            inner.session = None;
        }
    }
}
