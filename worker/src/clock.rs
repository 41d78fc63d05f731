//! The one file of this program that reads the clock. Everything else is given the time.

use std::time::Instant;

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
