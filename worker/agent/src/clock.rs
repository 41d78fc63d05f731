//! The one file of the worker program that reads the clock. Everything else is given the time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Seconds since this clock was made; monotonic.
#[derive(Debug, Clone, Copy)]
pub struct AgentClock(Instant);

impl AgentClock {
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

/// Milliseconds since 1970; unknown where the machine's clock stands before that.
#[expect(clippy::disallowed_methods, reason = "this is the clock file")]
pub fn milliseconds_since_1970() -> Option<u64> {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(passed.as_millis()).ok().filter(|time| *time > 0)
}

/// A moment of the runtime's own clock, for a timer that is restarted; very long pauses end some day too.
#[expect(clippy::disallowed_methods, reason = "this is the clock file")]
pub fn later(pause: Duration) -> tokio::time::Instant {
    const LONGEST: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
    tokio::time::Instant::now() + pause.min(LONGEST)
}

/// How long it is until a moment of the runtime's own clock.
#[expect(clippy::disallowed_methods, reason = "this is the clock file")]
pub fn left(until: tokio::time::Instant) -> Duration {
    until.saturating_duration_since(tokio::time::Instant::now())
}
