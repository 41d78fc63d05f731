//! The one file of `togl` that reads clocks: a report says when it was made, a measurement how long something took, a
//! watcher since when nobody answers, a notification when it was sent.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

/// The time now in words, such as `Mon, 16 Nov 2026 05:38:57 GMT`.
#[expect(clippy::disallowed_methods, reason = "the one place of the command that reads the clock")]
pub fn now_in_words() -> String {
    httpdate::fmt_http_date(SystemTime::now())
}

/// The time of day now, such as `05:38:57 UTC`.
pub fn time_of_day() -> String {
    format!("{} UTC", now_in_words().split_whitespace().nth(4).unwrap_or_default())
}

/// A moment from which time can be measured.
#[expect(clippy::disallowed_methods, reason = "the one place of the command that reads the clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// Time since this was asked first.
pub fn running() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    now().duration_since(*START.get_or_init(now))
}

/// The time now for programs: seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the one place of the command that reads the clock")]
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
