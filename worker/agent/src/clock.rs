//! The one file of the worker program that reads the clock. Everything else is given the time.

use std::time::{Duration, Instant};

/// Seconds since this clock was made; monotonic.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    /// A clock that starts at zero.
    #[expect(clippy::disallowed_methods, reason = "this is the clock file")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// A moment of the runtime's own clock, for a timer that is restarted; very long pauses end some day too.
#[expect(clippy::disallowed_methods, reason = "this is the clock file")]
pub fn later(pause: Duration) -> tokio::time::Instant {
    const LONGEST: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
    tokio::time::Instant::now() + pause.min(LONGEST)
}
