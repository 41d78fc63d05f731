//! Faults: a store whose commits are slow or fail, a clock that jumps, and the plan of what goes wrong when.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng as SmallRng;
use togl_coordinator::clock::{Clock, Sleep};
use togl_coordinator::store::memory::MemoryStore;
use togl_coordinator::store::{LogPiece, Readers, Store, StoreError};
use togl_scheduler::{Change, Snapshot, Timestamp};
use tokio::time::Instant;

use crate::ledger::Ledger;
use crate::standby::Hold;

/// Milliseconds that the coordinator's clock is ahead of virtual time, and whether it stands.
#[derive(Debug, Clone, Default)]
pub struct Jumps {
    ahead: Arc<AtomicU64>,
    stands: Arc<AtomicBool>,
}

impl Jumps {
    pub fn jump(&self, milliseconds: u64) {
        self.ahead.fetch_add(milliseconds, Ordering::SeqCst);
    }

    /// Stops the clock, or lets it go on where it would be had it never stopped.
    pub fn set_standing(&self, stands: bool) {
        self.stands.store(stands, Ordering::SeqCst);
    }
}

/// Virtual time that now and then jumps ahead, as after a suspended machine, or stands still for its process.
#[derive(Debug)]
pub struct JumpingClock {
    start: Instant,
    jumps: Jumps,
    last: AtomicU64,
}

impl JumpingClock {
    pub fn new(jumps: Jumps) -> Self {
        Self { start: Instant::now(), jumps, last: AtomicU64::new(0) }
    }
}

impl Clock for JumpingClock {
    fn now(&self) -> Timestamp {
        if !self.jumps.stands.load(Ordering::SeqCst) {
            let elapsed = u64::try_from(self.start.elapsed().as_millis()).unwrap();
            self.last.store(elapsed + self.jumps.ahead.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        Timestamp(self.last.load(Ordering::SeqCst))
    }

    fn sleep_until(&self, deadline: Timestamp) -> Sleep<'_> {
        Box::pin(async move {
            while self.now() < deadline {
                let left = deadline.since(self.now()).clamp(1, 100); // look again: the clock may jump
                tokio::time::sleep(Duration::from_millis(left)).await;
            }
        })
    }
}

/// What commits do; the numbers are chances in a thousand.
#[derive(Debug, Clone, Default)]
pub struct Troubles {
    fail_before: Arc<AtomicU64>,
    fail_after: Arc<AtomicU64>,
    slow: Arc<AtomicU64>,
}

impl Troubles {
    pub fn set(&self, fail_before: u64, fail_after: u64, slow: u64) {
        self.fail_before.store(fail_before, Ordering::SeqCst);
        self.fail_after.store(fail_after, Ordering::SeqCst);
        self.slow.store(slow, Ordering::SeqCst);
    }
}

/// A store that outlives its host and fails now and then.
pub struct FaultyStore {
    pub inner: MemoryStore,
    pub troubles: Troubles,
    pub jumps: Jumps,
    pub ledger: Ledger,
    pub rng: SmallRng,
    /// Every commit names its holder, and is refused once another coordinator has opened the store.
    pub hold: Hold,
    /// The host of the coordinator.
    pub of: &'static str,
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyStore")
    }
}

impl FaultyStore {
    fn happens(&mut self, chance: &AtomicU64) -> bool {
        self.rng.random_range(0..1000) < chance.load(Ordering::SeqCst)
    }
}

impl Store for FaultyStore {
    fn load(&self) -> Result<Snapshot, StoreError> {
        self.inner.load()
    }

    fn commit_with_log(&mut self, changes: &[Change], log: &[LogPiece]) -> Result<(), StoreError> {
        self.still_ours()?;
        let Troubles { fail_before, fail_after, slow } = self.troubles.clone();
        let takes = if self.happens(&slow) { 50 + self.rng.random_range(0..1500) } else { 0 };
        if takes > 0 {
            self.ledger.count("slow commits");
            self.jumps.jump(takes); // time passes while the disk is busy
        }
        if self.happens(&fail_before) {
            self.ledger.count("commits failed before");
            return Err(StoreError::Injected("nothing was kept"));
        }
        self.inner.commit_with_log(changes, log)?;
        changes.iter().for_each(|change| self.ledger.committed(self.of, change));
        self.ledger.jumped(takes); // after what was decided before it
        if self.happens(&fail_after) {
            self.ledger.count("commits failed after");
            return Err(StoreError::Injected("it was kept, but nobody knows"));
        }
        Ok(())
    }

    fn append_log(&mut self, pieces: &[LogPiece]) -> Result<(), StoreError> {
        self.inner.append_log(pieces)
    }

    fn still_ours(&mut self) -> Result<(), StoreError> {
        if self.hold.is_ours() {
            return Ok(());
        }
        self.ledger.count("taken over");
        Err(StoreError::TakenOver { address: "memory:".to_owned() })
    }

    fn incarnation(&self) -> u64 {
        self.inner.incarnation()
    }

    fn readers(&self) -> Arc<dyn Readers> {
        self.inner.readers()
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Box::new(self.inner).close()
    }
}

/// Something that goes wrong. `usize` is the number of a worker's host.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    CrashCoordinator {
        down: Duration,
    },
    CrashWorker(usize, Duration),
    StopWorker(usize),
    JumpWorker(usize, u64),
    Partition(usize, Duration),
    OneWay(usize, Duration),
    Hold(usize, Duration),
    Jump(u64),
    /// The process stands still, and nobody is heard.
    PauseCoordinator(Duration),
    PauseWorker(usize, Duration),
    /// Its process dies again and again, soon after it was started.
    CrashLoop(usize, Duration),
    /// Workers are newer than the coordinator, which cannot read their reports until it is upgraded.
    Outdate,
    /// Some results contradict themselves.
    Spoil,
    /// The coordinator loses its store without knowing it, and the one that waits takes over.
    LoseStore,
    /// The coordinator's disk changes a byte in every checkpoint.
    Damage,
}

/// When what goes wrong, in order.
pub fn plan(rng: &mut SmallRng, workers: usize, until: Duration) -> Vec<(Duration, Fault)> {
    let mut plan = Vec::new();
    for _ in 0..rng.random_range(1..9) {
        let at = Duration::from_millis(rng.random_range(0..until.as_millis() as u64));
        let lasts = Duration::from_millis(*pick(rng, &[50, 300, 1_000, 3_000, 8_000]));
        let worker = rng.random_range(0..workers);
        let long = Duration::from_millis(*pick(rng, &[1_000, 4_000, 8_000]));
        let fault = match rng.random_range(0..17) {
            0 | 1 => Fault::CrashCoordinator { down: lasts },
            2 | 3 => Fault::CrashWorker(worker, lasts),
            4 => Fault::Partition(worker, lasts),
            5 => Fault::OneWay(worker, lasts),
            6 => Fault::Hold(worker, lasts),
            7 => Fault::StopWorker(worker),
            8 => Fault::JumpWorker(worker, *pick(rng, &[100, 2_000, 20_000])),
            9 => Fault::Jump(*pick(rng, &[100, 2_000, 10_000])),
            10 | 11 => Fault::PauseCoordinator(long),
            12 => Fault::PauseWorker(worker, long),
            13 => Fault::CrashLoop(worker, Duration::from_secs(12)),
            14 => Fault::Outdate,
            15 => Fault::Damage,
            _ => Fault::Spoil,
        };
        plan.push((at, fault));
    }
    plan.sort_by_key(|(at, _)| *at);
    plan
}

/// When the store is lost, in a world with a coordinator that waits.
pub fn losses(rng: &mut SmallRng, until: Duration) -> Vec<(Duration, Fault)> {
    let times = (0..rng.random_range(1..4)).map(|_| rng.random_range(0..until.as_millis() as u64));
    times.map(|at| (Duration::from_millis(at), Fault::LoseStore)).collect()
}

pub fn pick<'a, T>(rng: &mut impl Rng, all: &'a [T]) -> &'a T {
    &all[rng.random_range(0..all.len())]
}
