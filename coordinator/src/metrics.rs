//! Numbers for those who watch over a coordinator, in the form that Prometheus reads. Counts facts and times commits
//! by standing between driver and store; what is a state and not an event is asked of the driver when somebody looks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use togl_scheduler::{Change, Snapshot, SweepState, Timestamp};

use crate::clock::{Clock, Stopwatch};
use crate::driver::{CallError, Handle};
use crate::store::{LogPiece, Readers, Store, StoreError};
use crate::telling::{self, Counted};

type ByWord = Family<[(&'static str, &'static str); 1], Gauge>;

/// All numbers of one coordinator.
pub struct CoordinatorMetrics {
    registry: Registry,
    folds: ByWord,
    workers: ByWord,
    leases: Gauge,
    connections: Gauge,
    strangers: Gauge,
    slots_wanted: Gauge,
    slots_free: Gauge,
    queue_age: Gauge<f64, AtomicU64>,
    busy: Gauge<f64, AtomicU64>,
    looks: Gauge,
    checks: Gauge,
    damage: Gauge,
    given: Counter,
    expired: Counter,
    accepted: Counter,
    replicates: Counter,
    conflicts: Counter,
    failed: Counter,
    commit: Histogram,
    /// When a fold was last handed out or work was last submitted, in the clock's milliseconds.
    moved: AtomicU64,
    clock: Arc<dyn Clock>,
}

impl CoordinatorMetrics {
    /// All at zero.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let mut new = Self {
            registry: Registry::with_prefix("togl"),
            folds: Family::default(),
            workers: Family::default(),
            leases: Gauge::default(),
            connections: Gauge::default(),
            strangers: Gauge::default(),
            slots_wanted: Gauge::default(),
            slots_free: Gauge::default(),
            queue_age: Gauge::default(),
            busy: Gauge::default(),
            looks: Gauge::default(),
            checks: Gauge::default(),
            damage: Gauge::default(),
            given: Counter::default(),
            expired: Counter::default(),
            accepted: Counter::default(),
            replicates: Counter::default(),
            conflicts: Counter::default(),
            failed: Counter::default(),
            commit: Histogram::new(exponential_buckets(0.000_1, 2.0, 16)),
            moved: AtomicU64::new(clock.now().0),
            clock,
        };
        new.register_states();
        new.register_events();
        new
    }

    fn register_states(&mut self) {
        let to = &mut self.registry;
        to.register("folds", "Folds by state, each counted once", self.folds.clone());
        to.register("workers", "Workers that are here, by state", self.workers.clone());
        to.register("leases", "Folds that a worker has a lease on", self.leases.clone());
        to.register("connections", "Open connections", self.connections.clone());
        to.register("strangers", "Open connections that showed no good token yet", self.strangers.clone());
        let help = "Slots that folds could fill at once if somebody brought them";
        to.register("slots_wanted", help, self.slots_wanted.clone());
        to.register("slots_free", "Free slots of workers that take folds", self.slots_free.clone());
        let help = "Time since a fold was last handed out or submitted, while folds of active sweeps wait";
        to.register_with_unit("queue_age", help, Unit::Seconds, self.queue_age.clone());
        let help = "Time since the driver began what it is doing; 0 while it waits";
        to.register_with_unit("driver_busy", help, Unit::Seconds, self.busy.clone());
        to.register("looks", "Looks at the state since the start", self.looks.clone());
        to.register("store_checks", "Checks of the store that are done since the start", self.checks.clone());
        to.register(
            "store_damage",
            "Damaged places that the last check of the store found",
            self.damage.clone(),
        );
    }

    fn register_events(&mut self) {
        let to = &mut self.registry;
        to.register("leases_given", "Leases given since the start", self.given.clone());
        to.register(
            "leases_expired",
            "Leases that ended because their worker was lost",
            self.expired.clone(),
        );
        to.register("results_accepted", "Results that became a fold's result", self.accepted.clone());
        to.register(
            "results_replicate",
            "Results of further attempts of finished folds",
            self.replicates.clone(),
        );
        to.register("results_conflict", "Attempts that reported twice, differently", self.conflicts.clone());
        to.register("folds_failed", "Folds given up", self.failed.clone());
        let help = "Time that the store took to make decisions durable";
        to.register_with_unit("commit", help, Unit::Seconds, self.commit.clone());
    }

    fn count(&self, change: &Change) {
        let counter = match telling::counted(change) {
            Some(Counted::Submitted) => return self.move_on(),
            Some(Counted::Leased) => {
                self.move_on();
                &self.given
            }
            Some(Counted::Expired) => &self.expired,
            Some(Counted::Accepted) => &self.accepted,
            Some(Counted::Replicate) => &self.replicates,
            Some(Counted::Conflict) => &self.conflicts,
            Some(Counted::Failed) => &self.failed,
            None => return,
        };
        counter.inc();
    }

    fn move_on(&self) {
        self.moved.store(self.clock.now().0, Ordering::Relaxed);
    }

    /// The text for Prometheus, as things are now. `connections` is connections and strangers.
    pub(crate) async fn text(
        &self,
        handle: &Handle,
        connections: (usize, usize),
    ) -> Result<String, CallError> {
        let (totals, workers, sweeps) =
            (handle.totals().await?, handle.workers().await?, handle.sweeps().await?);
        let states = [
            ("pending", totals.pending),
            ("running", totals.running),
            ("finished", totals.finished),
            ("failed", totals.failed),
        ];
        for (state, count) in states {
            self.folds.get_or_create(&[("state", state)]).set(count.cast_signed());
        }
        self.leases.set(totals.running.cast_signed());
        self.workers.clear();
        for state in ["connected", "disconnected", "draining", "quarantined"] {
            let count = workers.iter().filter(|view| view.connection.as_str() == state).count();
            self.workers.get_or_create(&[("state", state)]).set(count as i64);
        }
        self.connections.set(connections.0 as i64);
        self.strangers.set(connections.1 as i64);
        let demand = handle.demand().await?;
        self.slots_wanted.set(demand.slots_wanted().cast_signed());
        self.slots_free.set(demand.free_slots.cast_signed());
        let waits = sweeps.iter().any(|view| view.state == SweepState::Active && view.counts.pending > 0);
        let age = self.clock.now().since(Timestamp(self.moved.load(Ordering::Relaxed)));
        self.queue_age.set(if waits { age as f64 / 1_000.0 } else { 0.0 });
        let liveness = handle.liveness();
        self.busy.set(liveness.busy() as f64 / 1_000.0);
        self.looks.set(liveness.looks().cast_signed());
        let (checks, damage) = liveness.store();
        self.checks.set(checks.cast_signed());
        self.damage.set(damage.cast_signed());
        let mut text = String::new();
        let _ = encode(&mut text, &self.registry); // writing to a string cannot fail
        Ok(text)
    }
}

/// A store whose commits are counted and timed.
pub(crate) struct Measured {
    pub(crate) inner: Box<dyn Store>,
    pub(crate) metrics: Arc<CoordinatorMetrics>,
}

impl Store for Measured {
    fn load(&self) -> Result<Snapshot, StoreError> {
        self.inner.load()
    }

    fn commit_with_log(&mut self, changes: &[Change], log: &[LogPiece]) -> Result<(), StoreError> {
        let watch = Stopwatch::start();
        self.inner.commit_with_log(changes, log)?;
        self.metrics.commit.observe(watch.seconds());
        changes.iter().for_each(|change| self.metrics.count(change));
        Ok(())
    }

    fn append_log(&mut self, pieces: &[LogPiece]) -> Result<(), StoreError> {
        self.inner.append_log(pieces)
    }

    fn still_ours(&mut self) -> Result<(), StoreError> {
        self.inner.still_ours()
    }

    fn incarnation(&self) -> u64 {
        self.inner.incarnation()
    }

    fn readers(&self) -> Arc<dyn Readers> {
        self.inner.readers()
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        self.inner.close()
    }
}
