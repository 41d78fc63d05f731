//! Looks at the state: questions of people, which wait in a queue of their own. Deciding comes first: looks get a share of
//! the driver's time, and whoever asks for more waits, however many ask. Used by the driver only.

use std::sync::Arc;
use std::time::Duration;

use togl_scheduler::{Scheduler, Timestamp};
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::liveness::Liveness;

/// Something to do with the stored state.
pub(super) type Look = Box<dyn FnOnce(&Scheduler, Timestamp) + Send>;

/// One part in so many of the time is for looks.
const SHARE: u32 = 8;

/// How far ahead of their share looks may be: a person who asks now and then never waits.
const ADVANCE: Duration = Duration::from_millis(50);

/// What a look counts at the most, so that a clock that jumps does not keep people out.
const DEAREST: Duration = Duration::from_millis(100);

/// Looks in a row while mail waits.
const ROW: usize = 16;

/// The looks that wait, and the time that was spent on earlier ones.
pub(super) struct Looks {
    queue: mpsc::Receiver<Look>,
    /// When the share will have made up for what was spent.
    settled: Duration,
    liveness: Arc<Liveness>,
}

impl Looks {
    pub(super) fn new(queue: mpsc::Receiver<Look>, liveness: Arc<Liveness>) -> Self {
        Self { queue, settled: Duration::ZERO, liveness }
    }

    /// Waits for a look that may be had now.
    pub(super) async fn next(&mut self, clock: &dyn Clock) -> Look {
        if let Some(early) = self.settled.checked_sub(clock.elapsed() + ADVANCE) {
            let until = clock.now().plus(u64::try_from(early.as_millis()).unwrap_or(u64::MAX) + 1);
            clock.sleep_until(until).await;
        }
        match self.queue.recv().await {
            Some(look) => look,
            None => std::future::pending().await, // every handle is gone, which the driver hears elsewhere
        }
    }

    /// A few of those that wait, between two rounds of decisions.
    pub(super) fn some(&mut self, scheduler: &Scheduler, clock: &dyn Clock) {
        for _ in 0..ROW {
            if self.settled > clock.elapsed() + ADVANCE {
                return;
            }
            match self.queue.try_recv() {
                Ok(look) => self.take(look, scheduler, clock),
                Err(_) => return,
            }
        }
    }

    /// Lets somebody look, and counts what it took.
    pub(super) fn take(&mut self, look: Look, scheduler: &Scheduler, clock: &dyn Clock) {
        self.liveness.looked();
        let begin = clock.elapsed();
        look(scheduler, clock.now());
        let end = clock.elapsed();
        self.settled = self.settled.max(begin) + end.saturating_sub(begin).min(DEAREST) * SHARE;
    }
}
