//! Who is let in: what connections and authorisation share. Knows which tokens are good and notes what strangers do wrong. A peer is a
//! stranger until a connection has shown a good token; strangers get little room and little time (`visitors.rs`).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use togl_scheduler::Timestamp;
use tonic::Status;

use super::complaints::{Complaints, Offence};
use super::visitors::{Visitor, Visitors};
use crate::clock::{self, Clock, SystemClock};
use crate::tokens::{Caller, Registry, TokenError, TokenId, Tokens};

/// How much room peers get.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// A connection that has shown no good token after this time is closed.
    pub time_to_prove: Duration,
    /// Connections at once.
    pub connections: usize,
    /// Connections of strangers at once. If there are more, the one that has been silent for longest makes room.
    pub strangers: usize,
    /// Connections of strangers from one address of another machine; likewise.
    pub strangers_per_peer: usize,
    /// Bad tokens from one address within a minute before it is no longer answered politely.
    pub bad_tokens: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            time_to_prove: Duration::from_secs(10),
            connections: 8_192,
            strangers: 2_048,
            strangers_per_peer: 64,
            bad_tokens: 20,
        }
    }
}

/// Milliseconds after which bad tokens are forgotten.
const FORGET: u64 = 60_000;

/// Addresses whose bad tokens are counted.
const MOST_PEERS: usize = 1_024;

/// Admission. See the file's documentation.
pub struct Admission {
    pub(super) bounds: Bounds,
    registry: Registry,
    clock: Arc<dyn Clock>,
    complaints: Complaints,
    visitors: Mutex<Visitors>,
    bad_tokens: Mutex<HashMap<IpAddr, (Timestamp, u32)>>,
}

/// What came of showing a token.
pub(super) enum Shown {
    Good(Caller),
    Bad,
    /// Bad, and too often so.
    Tiresome,
}

impl Admission {
    /// Admission by these tokens.
    pub fn new(registry: Registry, clock: Arc<dyn Clock>, bounds: Bounds) -> Self {
        let (visitors, bad_tokens) = (Mutex::default(), Mutex::default());
        Self { bounds, registry, clock, complaints: Complaints::default(), visitors, bad_tokens }
    }

    /// Admission by two tokens that are in no file, with the usual bounds: for networks that are not real.
    pub fn of(tokens: &Tokens) -> Result<Arc<Self>, TokenError> {
        let (registry, clock) = (Registry::of(tokens)?, Arc::new(SystemClock::new()));
        Ok(Arc::new(Self::new(registry, clock, Bounds::default())))
    }

    /// Lets a connection in as a stranger, in the place of another one if need be.
    pub(super) fn enter(self: &Arc<Self>, peer: IpAddr) -> Option<Arc<Visitor>> {
        let (entered, gone) = self.visitors().enter(peer, &self.bounds);
        if let Some(peer) = gone.or(entered.is_none().then_some(peer)) {
            self.complain(Offence::Visitors, peer, "");
        }
        entered.map(|standing| Arc::new(Visitor { admission: self.clone(), peer, standing }))
    }

    pub(super) fn visitors(&self) -> MutexGuard<'_, Visitors> {
        self.visitors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who shows this token.
    pub(super) fn show(&self, presented: &str, peer: IpAddr) -> Shown {
        if let Some(caller) = self.registry.check(presented, clock::unix_seconds()) {
            return Shown::Good(caller);
        }
        let now = self.clock.now();
        let mut counted = self.bad_tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.len() >= MOST_PEERS && !counted.contains_key(&peer) {
            counted.retain(|_, (since, _)| now.since(*since) < FORGET);
            if counted.len() >= MOST_PEERS {
                return Shown::Tiresome;
            }
        }
        let (since, count) = counted.entry(peer).or_insert((now, 0));
        if now.since(*since) >= FORGET {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        if *count > self.bounds.bad_tokens { Shown::Tiresome } else { Shown::Bad }
    }

    /// Whether a token that was good when its caller came is still good.
    pub(super) fn still_good(&self, token: &TokenId) -> Result<(), Status> {
        let ended = || Status::unauthenticated("the token was revoked or has expired");
        self.registry.is_alive(token, clock::unix_seconds()).then_some(()).ok_or_else(ended)
    }

    /// What a token is called, for people.
    pub(super) fn name_of(&self, token: &TokenId) -> String {
        self.registry.name(token)
    }

    /// Writes it down, not too often.
    pub(super) fn complain(&self, offence: Offence, peer: IpAddr, detail: &str) {
        self.complaints.note(offence, peer, detail, self.clock.now());
    }

    /// Connections at this moment, and how many of them are strangers'.
    pub fn connections(&self) -> (usize, usize) {
        self.visitors().count()
    }
}

#[cfg(test)]
mod tests {
    use togl_proto::token::Pin;

    use super::*;
    use crate::clock::ManualClock;

    fn admission(bounds: Bounds) -> (Arc<Admission>, ManualClock, String) {
        let folder = tempfile::tempdir().unwrap();
        let opened =
            Registry::open(&folder.path().join("tokens.json"), &Pin::of(b"x"), clock::unix_seconds());
        let ((registry, tokens), clock) = (opened.unwrap(), ManualClock::default());
        (Arc::new(Admission::new(registry, Arc::new(clock.clone()), bounds)), clock, tokens.operator)
    }

    #[test]
    fn guessing_is_cut_short_and_forgotten_after_a_minute_and_a_good_token_always_works() {
        let (admission, clock, good) = admission(Bounds { bad_tokens: 2, ..Bounds::default() });
        let peer = IpAddr::from([10, 0, 0, 1]);
        assert!(matches!(admission.show("x", peer), Shown::Bad));
        assert!(matches!(admission.show("y", peer), Shown::Bad));
        assert!(matches!(admission.show("z", peer), Shown::Tiresome));
        assert!(matches!(admission.show(&good, peer), Shown::Good(_)));
        clock.advance(FORGET);
        assert!(matches!(admission.show("z", peer), Shown::Bad));
    }
}
