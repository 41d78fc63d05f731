//! Places where a test ends the process, to see what the next one finds. Outside tests a point is nothing at all.
//!
//! A test starts its own program again with `TOGL_CRASH=NAME:N`; the process aborts when it comes to the point `NAME`
//! for the N-th time.

/// Comes by the point `name`.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn point(_name: &'static str) {}

/// Comes by the point `name`; ends the process if a test asked for that.
#[cfg(test)]
pub(crate) fn point(name: &'static str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    static ASKED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static SEEN: AtomicU64 = AtomicU64::new(0);
    let asked = ASKED.get_or_init(|| {
        let asked = std::env::var("TOGL_CRASH").ok()?;
        let (name, count) = asked.rsplit_once(':')?;
        Some((name.to_owned(), count.parse().ok()?))
    });
    if let Some((wanted, count)) = asked
        && wanted == name
        && SEEN.fetch_add(1, Ordering::SeqCst) + 1 == *count
    {
        std::process::abort();
    }
}

#[cfg(test)]
#[path = "crash_tests.rs"]
mod tests;
