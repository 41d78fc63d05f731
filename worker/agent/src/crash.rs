//! Places where a test ends the process, to see what the next one finds. They are part of the program, so that it is
//! the program itself that tests end; to everybody else a point is one look at a setting that is not there.
//!
//! A test starts the program with `TOGL_CRASH=NAME:N`; the process aborts, without tidying up, when it comes to the
//! point `NAME` for the N-th time.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The setting that names a point; trainers are started without it.
pub const SETTING: &str = "TOGL_CRASH";

/// Comes by the point `name`; ends the process if a test asked for that.
pub fn point(name: &str) {
    static ASKED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static SEEN: AtomicU64 = AtomicU64::new(0);
    let asked = ASKED.get_or_init(|| {
        let asked = std::env::var(SETTING).ok()?;
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
