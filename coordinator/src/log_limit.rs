//! Saying the same thing rarely: the first time, and after that once a minute with a count of what was left out. So
//! nobody can fill a log by doing a thing again and again, and memory for it is bounded. Writes nothing itself.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use togl_scheduler::Timestamp;

/// Milliseconds between two mentions of the same thing.
const PAUSE: u64 = 60_000;

/// Things that are told apart.
const MOST: usize = 1_024;

#[derive(Debug)]
struct Noted {
    since: Timestamp,
    more: u64,
}

/// What was said when.
#[derive(Debug)]
pub struct LogLimit<K>(Mutex<HashMap<K, Noted>>);

impl<K> Default for LogLimit<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash> LogLimit<K> {
    /// How many went unmentioned, if it is time to mention `what` again. Where too many things are told apart already,
    /// a new one counts as `other`.
    pub fn due(&self, what: K, other: impl FnOnce() -> K, now: Timestamp) -> Option<u64> {
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if book.len() >= MOST {
            book.retain(|_, noted| now.since(noted.since) < PAUSE);
        }
        let full = book.len() >= MOST && !book.contains_key(&what);
        let what = if full { other() } else { what };
        match book.get_mut(&what) {
            Some(noted) if now.since(noted.since) < PAUSE => {
                noted.more += 1;
                None
            }
            Some(noted) => {
                let more = noted.more;
                *noted = Noted { since: now, more: 0 };
                Some(more)
            }
            None => {
                book.insert(what, Noted { since: now, more: 0 });
                Some(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_thing_is_said_once_a_minute_with_a_count() {
        let said = LogLimit::default();
        let due = |what, now| said.due(what, || "other", Timestamp(now));
        assert_eq!(due("garbage", 0), Some(0));
        assert_eq!(due("garbage", 1), None);
        assert_eq!(due("silence", 1), Some(0), "another thing");
        assert_eq!(due("garbage", 59_999), None);
        assert_eq!(due("garbage", 60_000), Some(2));
    }

    #[test]
    fn many_things_do_not_make_it_grow() {
        let said = LogLimit::default();
        let lines = (1..100_000u32).filter(|n| said.due(*n, || 0, Timestamp(5)).is_some());
        assert!(lines.count() <= MOST + 1);
        assert!(said.0.lock().unwrap().len() <= MOST + 1);
    }
}
