//! Places where a test ends the process, to see what the next one finds. Outside tests a point is nothing at all.
//!
//! A test starts its own program again with `TOGL_CRASH=NAME:N`; the process aborts when it comes to the point `NAME`
//! for the N-th time.

/// Comes by the point `name`.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn point(_name: &'static str) {}

#[cfg(test)]
pub(crate) use togl_agent::crash::point;

#[cfg(test)]
#[path = "crash_tests.rs"]
mod tests;
