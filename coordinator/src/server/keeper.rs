//! The gatekeeper: what gate and door share. Counts who is here, knows which tokens are good, notes what strangers do
//! wrong. A peer is a stranger until a connection has shown a good token; strangers get little room and little time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use togl_scheduler::Timestamp;

use super::complaints::{Complaints, Offence};
use crate::clock::{self, Clock, SystemClock};
use crate::tokens::{Caller, Registry, TokenError, TokenId, Tokens};

/// How much room peers get.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// A connection that has shown no good token after this time is closed.
    pub time_to_prove: Duration,
    /// Connections at once.
    pub connections: usize,
    /// Connections of strangers at once.
    pub strangers: usize,
    /// Connections of strangers from one address of another machine.
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

/// The keeper. See the file's documentation.
pub struct Keeper {
    pub(super) bounds: Bounds,
    registry: Registry,
    clock: Arc<dyn Clock>,
    complaints: Complaints,
    crowd: Mutex<Crowd>,
    bad_tokens: Mutex<HashMap<IpAddr, (Timestamp, u32)>>,
}

#[derive(Debug, Default)]
struct Crowd {
    all: usize,
    strangers: usize,
    by_peer: HashMap<IpAddr, usize>,
}

/// What came of showing a token.
pub(super) enum Shown {
    Good(Caller),
    Bad,
    /// Bad, and too often so.
    Tiresome,
}

impl Keeper {
    /// A keeper of these tokens.
    pub fn new(registry: Registry, clock: Arc<dyn Clock>, bounds: Bounds) -> Self {
        let (crowd, bad_tokens) = (Mutex::default(), Mutex::default());
        Self { bounds, registry, clock, complaints: Complaints::default(), crowd, bad_tokens }
    }

    /// A keeper of two tokens that are in no file, with the usual bounds: for networks that are not real.
    pub fn of(tokens: &Tokens) -> Result<Arc<Self>, TokenError> {
        let (registry, clock) = (Registry::of(tokens)?, Arc::new(SystemClock::new()));
        Ok(Arc::new(Self::new(registry, clock, Bounds::default())))
    }

    /// Lets a connection in as a stranger, if there is room.
    pub(super) fn enter(self: &Arc<Self>, peer: IpAddr) -> Option<Arc<Visitor>> {
        let mut crowd = self.crowd.lock().unwrap_or_else(PoisonError::into_inner);
        let of_peer = crowd.by_peer.get(&peer).copied().unwrap_or(0);
        let pushes = !peer.is_loopback() && of_peer >= self.bounds.strangers_per_peer;
        if pushes || crowd.all >= self.bounds.connections || crowd.strangers >= self.bounds.strangers {
            return None;
        }
        crowd.all += 1;
        crowd.strangers += 1;
        *crowd.by_peer.entry(peer).or_default() += 1;
        Some(Arc::new(Visitor { keeper: self.clone(), peer, standing: AtomicU8::new(STRANGER) }))
    }

    fn known(&self, peer: IpAddr) {
        let mut crowd = self.crowd.lock().unwrap_or_else(PoisonError::into_inner);
        crowd.strangers -= 1;
        if let Some(count) = crowd.by_peer.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                crowd.by_peer.remove(&peer);
            }
        }
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
    pub(super) fn is_alive(&self, token: &TokenId) -> bool {
        self.registry.is_alive(token, clock::unix_seconds())
    }

    /// Writes it down, not too often.
    pub(super) fn complain(&self, offence: Offence, peer: IpAddr, detail: &str) {
        self.complaints.note(offence, peer, detail, self.clock.now());
    }

    /// Connections at this moment, and how many of them are strangers'.
    pub fn connections(&self) -> (usize, usize) {
        let crowd = self.crowd.lock().unwrap_or_else(PoisonError::into_inner);
        (crowd.all, crowd.strangers)
    }
}

const STRANGER: u8 = 0;
const KNOWN: u8 = 1;
const UNWELCOME: u8 = 2;

/// One connection, as the keeper sees it.
pub(super) struct Visitor {
    pub(super) keeper: Arc<Keeper>,
    pub(super) peer: IpAddr,
    standing: AtomicU8,
}

impl Visitor {
    /// A good token was shown.
    pub(super) fn prove(&self) {
        if self.standing.compare_exchange(STRANGER, KNOWN, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.keeper.known(self.peer);
        }
    }

    /// The connection is to be closed, unless a good token was shown on it.
    pub(super) fn send_away(&self) {
        if self.standing.compare_exchange(STRANGER, UNWELCOME, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.keeper.known(self.peer);
        }
    }

    pub(super) fn is_stranger(&self) -> bool {
        self.standing.load(Ordering::Relaxed) == STRANGER
    }

    pub(super) fn is_unwelcome(&self) -> bool {
        self.standing.load(Ordering::Relaxed) == UNWELCOME
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        if *self.standing.get_mut() == STRANGER {
            self.keeper.known(self.peer);
        }
        self.keeper.crowd.lock().unwrap_or_else(PoisonError::into_inner).all -= 1;
    }
}

#[cfg(test)]
mod tests {
    use togl_proto::token::Pin;

    use super::*;
    use crate::clock::ManualClock;

    fn keeper(bounds: Bounds) -> (Arc<Keeper>, ManualClock, String) {
        let folder = tempfile::tempdir().unwrap();
        let opened =
            Registry::open(&folder.path().join("tokens.json"), &Pin::of(b"x"), clock::unix_seconds());
        let ((registry, tokens), clock) = (opened.unwrap(), ManualClock::default());
        (Arc::new(Keeper::new(registry, Arc::new(clock.clone()), bounds)), clock, tokens.operator)
    }

    #[test]
    fn one_address_cannot_take_the_room_of_all() {
        let bounds = Bounds { strangers: 4, strangers_per_peer: 2, ..Bounds::default() };
        let (keeper, ..) = keeper(bounds);
        let (greedy, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let first = keeper.enter(greedy).unwrap();
        let second = keeper.enter(greedy).unwrap();
        assert!(keeper.enter(greedy).is_none());
        let third = keeper.enter(other).unwrap();
        first.prove();
        first.prove();
        assert_eq!(keeper.connections(), (3, 2));
        let again = keeper.enter(greedy).expect("who proved itself is no stranger any more");
        drop((first, second, third, again));
        assert_eq!(keeper.connections(), (0, 0));
        assert!(keeper.crowd.lock().unwrap().by_peer.is_empty());
    }

    #[test]
    fn guessing_is_cut_short_and_forgotten_after_a_minute_and_a_good_token_always_works() {
        let (keeper, clock, good) = keeper(Bounds { bad_tokens: 2, ..Bounds::default() });
        let peer = IpAddr::from([10, 0, 0, 1]);
        assert!(matches!(keeper.show("x", peer), Shown::Bad));
        assert!(matches!(keeper.show("y", peer), Shown::Bad));
        assert!(matches!(keeper.show("z", peer), Shown::Tiresome));
        assert!(matches!(keeper.show(&good, peer), Shown::Good(_)));
        clock.advance(FORGET);
        assert!(matches!(keeper.show("z", peer), Shown::Bad));
    }
}
