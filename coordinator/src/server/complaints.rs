//! What strangers do wrong, in the log once: the first time a peer does a thing, and after that one line a minute
//! with a count. So nobody can fill a disk by knocking, and memory for it is bounded.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, PoisonError};

use togl_scheduler::Timestamp;

/// Milliseconds between two lines about the same peer and thing.
const PAUSE: u64 = 60_000;

/// Peers and things that are told apart; what is more shares one entry a thing.
const MOST: usize = 1_024;

/// What a peer did wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Offence {
    /// The token is unknown, revoked or has expired.
    BadToken,
    /// Too many bad tokens.
    TooManyBadTokens,
    /// The token is good for other calls.
    WrongRole,
    /// Neither TLS nor HTTP/2.
    Garbage,
    /// TLS did not come about.
    Handshake,
    /// Not encrypted, from another machine.
    Unencrypted,
    /// No good token within the time.
    Silent,
    /// Too many connections.
    Crowd,
    /// A report of something that was never handed out, or that cannot be.
    BadReport,
    /// A message that breaks the protocol.
    BadMessage,
}

impl Offence {
    fn sentence(self) -> &'static str {
        match self {
            Self::BadToken => "refused a token that is unknown, revoked or expired",
            Self::TooManyBadTokens => "closed a connection after too many bad tokens",
            Self::WrongRole => "refused a call that its token does not allow",
            Self::Garbage => "closed a connection that spoke neither TLS nor HTTP/2",
            Self::Handshake => "closed a connection that did not manage TLS",
            Self::Unencrypted => "closed a connection from another machine that was not encrypted",
            Self::Silent => "closed a connection that showed no good token in time",
            Self::Crowd => "closed a connection because there are too many",
            Self::BadReport => "refused a report",
            Self::BadMessage => "ended a session over a bad message",
        }
    }
}

struct Noted {
    since: Timestamp,
    more: u64,
}

/// The book of complaints.
#[derive(Default)]
pub(crate) struct Complaints(Mutex<HashMap<(Offence, IpAddr), Noted>>);

impl Complaints {
    /// Notes an offence and writes a line if it is time for one. Says whether it did.
    pub(crate) fn note(&self, offence: Offence, peer: IpAddr, detail: &str, now: Timestamp) -> bool {
        let Some(more) = self.due(offence, peer, now) else { return false };
        let detail: String = detail.chars().take(200).collect();
        tracing::warn!(%peer, detail, more, "{}", offence.sentence());
        true
    }

    /// How many went unmentioned, if a line is due.
    fn due(&self, offence: Offence, peer: IpAddr, now: Timestamp) -> Option<u64> {
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if book.len() >= MOST {
            book.retain(|_, noted| now.since(noted.since) < PAUSE);
        }
        let full = book.len() >= MOST && !book.contains_key(&(offence, peer));
        let peer = if full { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { peer };
        match book.get_mut(&(offence, peer)) {
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
                book.insert((offence, peer), Noted { since: now, more: 0 });
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
        let complaints = Complaints::default();
        let peer = IpAddr::from([10, 0, 0, 1]);
        assert_eq!(complaints.due(Offence::Garbage, peer, Timestamp(0)), Some(0));
        assert_eq!(complaints.due(Offence::Garbage, peer, Timestamp(1)), None);
        assert_eq!(complaints.due(Offence::Silent, peer, Timestamp(1)), Some(0), "another thing");
        assert_eq!(complaints.due(Offence::Garbage, peer, Timestamp(59_999)), None);
        assert_eq!(complaints.due(Offence::Garbage, peer, Timestamp(60_000)), Some(2));
    }

    #[test]
    fn many_peers_do_not_make_it_grow() {
        let complaints = Complaints::default();
        let lines = (0..100_000u32).filter(|n| {
            complaints.due(Offence::Garbage, IpAddr::from(n.to_be_bytes()), Timestamp(5)).is_some()
        });
        assert!(lines.count() <= MOST + 1);
        assert!(complaints.0.lock().unwrap().len() <= MOST + 1);
    }
}
