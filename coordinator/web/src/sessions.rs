//! Who may look: codes that are good once and for ten minutes, and the sessions that they open. Keeps a bounded number of
//! each, in memory only. Time and secrets are arguments; compares secrets in a time that does not tell where they differ.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// How long a link is good.
pub const CODE_LIFE: Duration = Duration::from_secs(10 * 60);

/// How long a session is.
pub(crate) const SESSION_LIFE: Duration = Duration::from_secs(12 * 3600);

/// Links that are open at once, and sessions; the oldest make room.
const MOST: usize = 32;

/// Wrong codes in [`BAD_WITHIN`] before nobody is let in for a while.
const MOST_BAD: usize = 10;
const BAD_WITHIN: Duration = Duration::from_secs(60);

/// Streams of events that a session has at once: browsers open six connections to a place, and the page needs some.
const MOST_STREAMS: u32 = 4;

/// Why nobody is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotLetIn {
    /// The code is not good, or not any more.
    Unknown,
    /// Too many wrong ones came lately.
    TooMany,
}

#[derive(Debug)]
struct Session {
    secret: String,
    until: Duration,
    streams: u32,
}

/// Codes and sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    codes: VecDeque<(String, Duration)>,
    /// By number, in the order in which they began.
    sessions: BTreeMap<u64, Session>,
    next: u64,
    bad: VecDeque<Duration>,
}

impl Sessions {
    /// A code that opens one session.
    pub(crate) fn issue(&mut self, code: String, now: Duration) {
        if self.codes.len() == MOST {
            self.codes.pop_front();
        }
        self.codes.push_back((code, now + CODE_LIFE));
    }

    /// Opens a session with this secret for a code, which is used up.
    pub(crate) fn sign_in(&mut self, code: &str, secret: String, now: Duration) -> Result<(), NotLetIn> {
        self.bad.retain(|at| now < *at + BAD_WITHIN);
        if self.bad.len() >= MOST_BAD {
            return Err(NotLetIn::TooMany);
        }
        self.codes.retain(|(_, until)| now < *until);
        let Some(found) = self.codes.iter().position(|(known, _)| same(known, code)) else {
            self.bad.push_back(now);
            return Err(NotLetIn::Unknown);
        };
        self.codes.remove(found);
        self.sessions.retain(|_, session| now < session.until);
        if self.sessions.len() == MOST {
            self.sessions.pop_first();
        }
        self.sessions.insert(self.next, Session { secret, until: now + SESSION_LIFE, streams: 0 });
        self.next += 1;
        Ok(())
    }

    /// The session of a secret.
    pub(crate) fn find(&self, secret: &str, now: Duration) -> Option<u64> {
        let good = |session: &Session| now < session.until && same(&session.secret, secret);
        self.sessions.iter().find(|(_, session)| good(session)).map(|(number, _)| *number)
    }

    /// Takes a place for a stream; says whether there was one.
    pub(crate) fn begin_stream(&mut self, session: u64) -> bool {
        match self.sessions.get_mut(&session) {
            Some(session) if session.streams < MOST_STREAMS => {
                session.streams += 1;
                true
            }
            _ => false,
        }
    }

    /// Gives the place back.
    pub(crate) fn end_stream(&mut self, session: u64) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.streams = session.streams.saturating_sub(1);
        }
    }

    /// Whether a session is still good.
    pub(crate) fn is_good(&self, session: u64, now: Duration) -> bool {
        self.sessions.get(&session).is_some_and(|session| now < session.until)
    }
}

/// Whether two texts are the same, in a time that depends on their lengths only.
fn same(known: &str, given: &str) -> bool {
    let differ = known.bytes().zip(given.bytes()).fold(0, |differ, (one, other)| differ | (one ^ other));
    known.len() == given.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(1_000);

    #[test]
    fn a_code_opens_one_session_and_only_in_time() {
        let mut sessions = Sessions::default();
        sessions.issue("first".into(), START);
        sessions.issue("late".into(), START);
        assert_eq!(sessions.sign_in("first", "a".into(), START), Ok(()));
        assert_eq!(sessions.sign_in("first", "b".into(), START), Err(NotLetIn::Unknown));
        assert_eq!(sessions.sign_in("late", "c".into(), START + CODE_LIFE), Err(NotLetIn::Unknown));
        assert_eq!(sessions.find("a", START), Some(0));
        assert_eq!(sessions.find("b", START), None);
        assert_eq!(sessions.find("", START), None);
        assert_eq!(sessions.find("a", START + SESSION_LIFE), None);
    }

    #[test]
    fn after_ten_bad_codes_in_a_minute_even_a_good_one_waits() {
        let mut sessions = Sessions::default();
        sessions.issue("good".into(), START);
        for _ in 0..MOST_BAD {
            assert_eq!(sessions.sign_in("bad", "s".into(), START), Err(NotLetIn::Unknown));
        }
        assert_eq!(sessions.sign_in("good", "s".into(), START), Err(NotLetIn::TooMany));
        assert_eq!(sessions.sign_in("good", "s".into(), START + BAD_WITHIN), Ok(()));
    }

    #[test]
    fn sessions_and_codes_and_streams_are_bounded_and_the_oldest_makes_room() {
        let mut sessions = Sessions::default();
        for number in 0..100 {
            sessions.issue(format!("c{number}"), START);
            sessions.sign_in(&format!("c{number}"), format!("s{number}"), START).unwrap();
            assert!(sessions.sessions.len() <= MOST);
        }
        assert_eq!(sessions.find("s0", START), None);
        let last = sessions.find("s99", START).unwrap();
        assert!((0..MOST_STREAMS).all(|_| sessions.begin_stream(last)));
        assert!(!sessions.begin_stream(last));
        sessions.end_stream(last);
        assert!(sessions.begin_stream(last));
        (0..100).for_each(|number| sessions.issue(format!("d{number}"), START));
        assert!(sessions.codes.len() <= MOST);
    }
}
