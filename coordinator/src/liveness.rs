//! Whether a coordinator can be relied on: how long its driver has been at one round, and whether its store was found
//! damaged. Driver and check write it down; health and metrics read it. Decides nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use togl_scheduler::Timestamp;

use crate::clock::Clock;

/// A round of the driver that takes so many milliseconds is stuck: a commit takes a few, and leases are lost after 14 s.
const STUCK: u64 = 5_000;

/// Instead of a time: the driver waits for something to do.
const IDLE: u64 = u64::MAX;

/// See the file's documentation.
#[derive(Debug)]
pub struct Liveness {
    clock: Arc<dyn Clock>,
    since: AtomicU64,
    looks: AtomicU64,
    checks: AtomicU64,
    damage: AtomicU64,
}

impl Liveness {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let (since, looks) = (AtomicU64::new(IDLE), AtomicU64::new(0));
        Self { clock, since, looks, checks: AtomicU64::new(0), damage: AtomicU64::new(0) }
    }

    /// The driver begins a round.
    pub(crate) fn begin(&self, now: Timestamp) {
        self.since.store(now.0, Ordering::Relaxed);
    }

    /// It has come to its end.
    pub(crate) fn end(&self) {
        self.since.store(IDLE, Ordering::Relaxed);
    }

    /// The driver let somebody look.
    pub(crate) fn looked(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
    }

    /// A check of the store is done and found so many damaged places.
    pub(crate) fn checked(&self, damage: u64) {
        self.damage.store(damage, Ordering::Relaxed);
        self.checks.fetch_add(1, Ordering::Relaxed);
    }

    /// Milliseconds since the driver began what it is doing; 0 if it waits.
    pub fn busy(&self) -> u64 {
        match self.since.load(Ordering::Relaxed) {
            IDLE => 0,
            since => self.clock.now().since(Timestamp(since)),
        }
    }

    /// Looks at the state so far.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Checks of the store that are done, and damaged places that the last one found.
    pub fn store(&self) -> (u64, u64) {
        (self.checks.load(Ordering::Relaxed), self.damage.load(Ordering::Relaxed))
    }

    /// Whether decisions are made, and in a store that is whole as far as is known.
    pub fn is_well(&self) -> bool {
        self.busy() < STUCK && self.store().1 == 0
    }
}
