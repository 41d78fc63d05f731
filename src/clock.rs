//! The one file of `togl` that reads the clock of the wall: a report says when it was made.

use std::time::SystemTime;

/// The time now in words, such as `Mon, 16 Nov 2026 05:38:57 GMT`.
#[expect(clippy::disallowed_methods, reason = "the one place of the command that reads the clock")]
pub fn now_in_words() -> String {
    httpdate::fmt_http_date(SystemTime::now())
}
