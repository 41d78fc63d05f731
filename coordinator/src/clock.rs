//! The one file of the coordinator that reads a clock. Everybody else is given the time, or a [`Clock`] to
//! ask. Times are monotonic and mean nothing after a restart; leases are never stored as instants.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use togl_scheduler::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;

/// Milliseconds since 1970, for what people date: histories, tokens, certificates. Nothing that is scheduled depends
/// on it.
#[expect(clippy::disallowed_methods, reason = "the one place of the coordinator that reads the clock")]
pub fn unix_milliseconds() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The same in seconds.
pub fn unix_seconds() -> u64 {
    unix_milliseconds().unsigned_abs() / 1_000
}

/// Measures how long something takes.
#[derive(Debug)]
pub(crate) struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "the one place of the coordinator that reads the clock")]
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// A future without a result that may be sent to another thread.
pub type Sleep<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Where the driver's time comes from.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time now. Never less than before.
    fn now(&self) -> Timestamp;

    /// Waits until `deadline`.
    fn sleep_until(&self, deadline: Timestamp) -> Sleep<'_>;

    /// The same time as exactly as it is known, for measuring what something took.
    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.now().0)
    }
}

/// The real clock: milliseconds since it was made. Follows Tokio's time, so a paused runtime stops it too.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock that starts at zero.
    #[expect(clippy::disallowed_methods, reason = "the one place of the coordinator that reads the clock")]
    #[expect(clippy::new_without_default, reason = "a default that reads the clock would surprise")]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn sleep_until(&self, deadline: Timestamp) -> Sleep<'_> {
        // Half a millisecond more, so that whole milliseconds have passed for sure.
        let wait = Duration::from_millis(deadline.0) + Duration::from_micros(500);
        let instant = self.start.checked_add(wait);
        Box::pin(async move {
            match instant {
                Some(instant) => tokio::time::sleep_until(instant).await,
                None => std::future::pending().await,
            }
        })
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A clock for tests: it moves when it is told to, and wakes who waits. Clones share their time.
#[derive(Debug, Clone)]
pub struct ManualClock {
    time: watch::Sender<Timestamp>,
}

impl Default for ManualClock {
    fn default() -> Self {
        Self { time: watch::Sender::new(Timestamp(0)) }
    }
}

impl ManualClock {
    /// Lets time pass.
    pub fn advance(&self, milliseconds: u64) {
        self.time.send_modify(|time| *time = time.plus(milliseconds));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.time.borrow()
    }

    fn sleep_until(&self, deadline: Timestamp) -> Sleep<'_> {
        let mut time = self.time.subscribe();
        Box::pin(async move {
            // The sender lives as long as `self`, so waiting cannot fail.
            _ = time.wait_for(|now| *now >= deadline).await;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_manual_clock_wakes_who_waits_for_the_time_it_reaches() {
        let clock = ManualClock::default();
        let elsewhere = clock.clone();
        let sleep = clock.sleep_until(Timestamp(10));
        elsewhere.advance(10);
        sleep.await;
        assert_eq!(clock.now(), Timestamp(10));
    }

    #[tokio::test]
    async fn the_real_clock_has_reached_what_it_slept_until() {
        let clock = SystemClock::new();
        let soon = clock.now().plus(1);
        clock.sleep_until(soon).await;
        assert!(clock.now() >= soon);
    }
}
