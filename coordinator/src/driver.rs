//! The driver: owns scheduler, store and clock, takes mail, decides, stores, and only then replies. Whatever
//! mail has arrived while the last transaction was written shares the next one, so the more there is to do
//! the less each costs. Whoever only looks waits in a queue of his own and gets a share of the time. Knows no wire types;
//! its channels stay behind the [`Handle`].
//!
//! If a transaction fails, the state in memory is ahead of the store: the driver tells everybody who waits,
//! stops, and the process must end and start again from the store.

mod batch;
mod handle;
mod looks;

use std::sync::Arc;

use togl_scheduler::{Event, Limits, Scheduler, Timestamp};
use tokio::sync::{mpsc, oneshot, watch};

use self::batch::Batch;
use self::handle::Mail;
pub use self::handle::{CallError, Handle};
use self::looks::{Look, Looks};
use crate::clock::Clock;
use crate::liveness::Liveness;
use crate::store::{Store, StoreError};

/// Mail that may wait before senders have to.
const MAILBOX: usize = 4_096;

/// Looks that may wait before those who ask have to.
pub(crate) const LOOKS: usize = 256;

/// Mail that shares a transaction at the most.
const BATCH: usize = 1_024;

/// How often a round looks again for mail that the last one lets it expect.
const PATIENCE: u32 = 4;

/// Milliseconds after which the mail of the last round says nothing about this one.
const FRESH: u64 = 1;

/// Milliseconds after which a store that was not written to is asked whether it is still ours.
const PROOF: u64 = 1_000;

/// Why the driver ended, or did not start.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The store could not be used; what is not acknowledged is not stored.
    #[error(transparent)]
    Store(#[from] Arc<StoreError>),
    /// The operating system refused a thread or its timer.
    #[error("cannot start the driver: {0}")]
    Start(#[from] std::io::Error),
    /// A bug.
    #[error("the driver panicked; this is a bug, and its log says where")]
    Panicked,
}

impl From<StoreError> for DriverError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

/// The driver itself, to be run once. Most callers want [`start`].
pub struct Driver {
    scheduler: Scheduler,
    store: Box<dyn Store>,
    clock: Arc<dyn Clock>,
    mail: mpsc::Receiver<Mail>,
    looks: Looks,
    changes: watch::Sender<u64>,
    supply: watch::Sender<u64>,
    liveness: Arc<Liveness>,
    /// When the store was last known to be ours.
    ours: Timestamp,
    /// When the last round ended, and how much mail it was about.
    last: (Timestamp, usize),
}

/// A driver that runs on its own thread.
#[derive(Debug)]
pub struct Running {
    ended: oneshot::Receiver<Result<(), DriverError>>,
    thread: std::thread::JoinHandle<()>,
}

/// Starts a driver on a thread of its own, from what the store holds.
pub fn start(
    store: Box<dyn Store>,
    clock: Arc<dyn Clock>,
    limits: Limits,
) -> Result<(Handle, Running), DriverError> {
    let (handle, driver) = Driver::new(store, clock, limits)?;
    // A runtime of its own: it waits for mail and time, and writing to the store may block it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let (report, ended) = oneshot::channel();
    let thread = std::thread::Builder::new().name("togl-driver".to_owned()).spawn(move || {
        let result = runtime.block_on(driver.run());
        _ = report.send(result); // whoever does not wait for the end does not want to know
    })?;
    Ok((handle, Running { ended, thread }))
}

impl Running {
    /// Waits until the driver has ended: well after a stop, with an error if the store failed.
    pub async fn ended(self) -> Result<(), DriverError> {
        let result = self.ended.await;
        // It has sent its last word, or panicked: joining takes no time worth mentioning.
        match (result, self.thread.join()) {
            (Ok(result), Ok(())) => result,
            _ => Err(DriverError::Panicked),
        }
    }
}

/// Why the driver woke up.
enum Wake {
    Mail,
    Look(Look),
    Time,
    /// Every handle is gone.
    Alone,
}

impl Driver {
    /// A driver that starts from what the store holds, and a handle to it. Nothing happens before
    /// [`Driver::run`].
    pub fn new(
        store: Box<dyn Store>,
        clock: Arc<dyn Clock>,
        limits: Limits,
    ) -> Result<(Handle, Self), DriverError> {
        let snapshot = store.load()?;
        let (sweeps, folds) = (snapshot.sweeps.len(), snapshot.folds.len());
        let ours = clock.now();
        let scheduler = Scheduler::restore(limits, snapshot, ours);
        tracing::info!(sweeps, folds, "loaded the store");
        let (sender, mail) = mpsc::channel(MAILBOX);
        let (asker, looks) = mpsc::channel(LOOKS);
        let (changes, supply) =
            (watch::Sender::new(scheduler.revision()), watch::Sender::new(scheduler.supply()));
        let liveness = Arc::new(Liveness::new(clock.clone()));
        let handle = Handle::new(
            (sender, asker),
            changes.subscribe(),
            supply.subscribe(),
            store.readers(),
            store.incarnation(),
            liveness.clone(),
        );
        let looks = Looks::new(looks, liveness.clone());
        let last = (ours, 0);
        Ok((handle, Self { scheduler, store, clock, mail, looks, changes, supply, liveness, ours, last }))
    }

    /// Works until it is stopped, all handles are gone, or the store fails. Blocks while it writes.
    pub async fn run(mut self) -> Result<(), DriverError> {
        let mut mail = Vec::with_capacity(BATCH);
        let mut stopping = false;
        while !stopping {
            match self.wait(&mut mail).await {
                Wake::Mail | Wake::Time => {
                    self.gather(&mut mail).await;
                    self.liveness.begin(self.clock.now());
                    let pieces = mail.len();
                    stopping = self.work(&mut mail)?;
                    self.last = (self.clock.now(), pieces);
                    self.liveness.end();
                    self.looks.some(&self.scheduler, self.clock.as_ref());
                }
                Wake::Look(look) => self.looks.take(look, &self.scheduler, self.clock.as_ref()),
                Wake::Alone => stopping = true,
            }
        }
        self.mail.close();
        tracing::info!("the driver stops");
        self.store.close()?;
        Ok(())
    }

    async fn wait(&mut self, mail: &mut Vec<Mail>) -> Wake {
        let proof = self.ours.plus(PROOF);
        let deadline = self.scheduler.next_deadline().map_or(proof, |deadline| deadline.min(proof));
        let clock = &self.clock;
        let time = clock.sleep_until(deadline);
        tokio::select! {
            biased;
            received = self.mail.recv_many(mail, BATCH) => match received {
                0 => Wake::Alone,
                _ => Wake::Mail,
            },
            () = time => Wake::Time,
            look = self.looks.next(clock.as_ref()) => Wake::Look(look),
        }
    }

    /// Waits a moment for mail that is likely on its way. Workers of one slot have one thing to say at a time, and hear at the
    /// same moment that they may go on: whoever is served first would otherwise get a transaction for himself, and the others
    /// wait for it. Whoever is alone is not held up.
    async fn gather(&mut self, mail: &mut Vec<Mail>) {
        let (ended, expected) = self.last;
        for _ in 0..PATIENCE {
            if mail.is_empty() || mail.len() >= expected.min(BATCH) || self.clock.now().since(ended) > FRESH {
                return;
            }
            tokio::task::yield_now().await;
            std::thread::yield_now(); // to those who are about to write
            while mail.len() < BATCH
                && let Ok(piece) = self.mail.try_recv()
            {
                mail.push(piece);
            }
        }
    }

    /// One round: decide about all mail, store, reply. Says whether a stop was asked for.
    fn work(&mut self, mail: &mut Vec<Mail>) -> Result<bool, DriverError> {
        let now = self.clock.now();
        let mut batch = Batch::default();
        for piece in mail.drain(..) {
            batch.take(piece, &mut self.scheduler, now);
        }
        // Mail first: a renewal that waited while we were busy is in time.
        if self.scheduler.next_deadline().is_some_and(|deadline| deadline <= now) {
            _ = batch.decide(&mut self.scheduler, now, Event::Tick); // a tick cannot be rejected
        }
        if let Err(error) = batch.store(self.store.as_mut()).and_then(|stored| self.prove(stored, now)) {
            tracing::error!(%error, "the store failed; the coordinator stops, nothing acknowledged is lost");
            let error = Arc::new(error);
            batch.fail(&error);
            return Err(DriverError::Store(error));
        }
        self.publish();
        Ok(batch.finish(self.store.as_mut()))
    }

    /// Nothing is answered by whoever has lost the store: a commit shows that it is still ours, else it is asked now and then.
    fn prove(&mut self, stored: bool, now: Timestamp) -> Result<(), StoreError> {
        if !stored && now.since(self.ours) < PROOF {
            return Ok(());
        }
        if !stored {
            self.store.still_ours()?;
        }
        self.ours = now;
        Ok(())
    }

    fn publish(&self) {
        for (channel, value) in
            [(&self.changes, self.scheduler.revision()), (&self.supply, self.scheduler.supply())]
        {
            channel.send_if_modified(|old| std::mem::replace(old, value) != value);
        }
    }
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
