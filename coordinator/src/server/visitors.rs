//! Who is here: connections by whether they have shown a good token. When strangers want more room than there is, the
//! one that has been silent for longest goes, so that no number of silent connections keeps an honest caller out.
//! Counts and chooses; closes nothing itself.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::admission::{Admission, Bounds};

/// Strangers that go at once when the system has no room for another connection.
const HANDFUL: usize = 64;

/// A stranger's turn to be sent away: before those who have said something those who have not, and of equals whoever
/// came first.
type Turn = (bool, u64);

/// All connections.
#[derive(Debug, Default)]
pub(super) struct Visitors {
    all: usize,
    entered: u64,
    strangers: BTreeMap<Turn, (IpAddr, Arc<Standing>)>,
    by_peer: HashMap<IpAddr, usize>,
}

impl Visitors {
    /// Connections, and how many of them are strangers'.
    pub(super) fn count(&self) -> (usize, usize) {
        (self.all, self.strangers.len())
    }

    /// Lets a stranger in, and says where the one came from that had to go for it. Nobody gets in where members have
    /// taken all the room.
    pub(super) fn enter(&mut self, peer: IpAddr, bounds: &Bounds) -> (Option<Arc<Standing>>, Option<IpAddr>) {
        let of_peer = self.by_peer.get(&peer).copied().unwrap_or(0);
        let pushes = !peer.is_loopback() && of_peer >= bounds.strangers_per_peer;
        let full = self.all >= bounds.connections;
        let gone = match pushes || full || self.strangers.len() >= bounds.strangers {
            true => self.send_away(|other| !pushes || other == peer),
            false => None,
        };
        // Whoever was sent away takes a moment to close.
        let closing = bounds.strangers;
        if (full && gone.is_none()) || self.all >= bounds.connections + closing {
            return (None, gone);
        }
        self.all += 1;
        self.entered += 1;
        let standing = Arc::new(Standing::new(self.entered));
        self.strangers.insert((false, self.entered), (peer, standing.clone()));
        *self.by_peer.entry(peer).or_default() += 1;
        (Some(standing), gone)
    }

    /// Sends the stranger away whose turn it is of those from such addresses. Says from which.
    fn send_away(&mut self, from: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
        let turn = *self.strangers.iter().find(|(_, (peer, _))| from(*peer))?.0;
        let (peer, standing) = self.take(turn)?;
        standing.state.store(UNWELCOME, Ordering::Relaxed);
        standing.away.notify_one();
        Some(peer)
    }

    /// The system has no room for another connection: some strangers go.
    pub(super) fn thin_out(&mut self) {
        (0..HANDFUL).for_each(|_| _ = self.send_away(|_| true));
    }

    /// A stranger is one no more.
    fn take(&mut self, turn: Turn) -> Option<(IpAddr, Arc<Standing>)> {
        let (peer, standing) = self.strangers.remove(&turn)?;
        if let Some(count) = self.by_peer.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.by_peer.remove(&peer);
            }
        }
        Some((peer, standing))
    }
}

const SILENT: u8 = 0;
const SPEAKING: u8 = 1;
const KNOWN: u8 = 2;
const UNWELCOME: u8 = 3;

/// How a connection stands. Changed only while the visitors are locked, and read without.
#[derive(Debug)]
pub(super) struct Standing {
    number: u64,
    state: AtomicU8,
    /// Told when it is sent away.
    away: Notify,
}

impl Standing {
    fn new(number: u64) -> Self {
        Self { number, state: AtomicU8::new(SILENT), away: Notify::new() }
    }

    fn state(&self) -> u8 {
        self.state.load(Ordering::Relaxed)
    }

    fn turn(&self) -> Turn {
        (self.state() != SILENT, self.number)
    }

    /// Done when a stranger has to go: after this time, or before if it is sent away.
    pub(super) async fn patience(self: Arc<Self>, time: Duration) {
        let _ = tokio::time::timeout(time, self.away.notified()).await;
    }
}

/// One connection, as the admission sees it.
pub(super) struct Visitor {
    pub(super) admission: Arc<Admission>,
    pub(super) peer: IpAddr,
    pub(super) standing: Arc<Standing>,
}

impl Visitor {
    /// The first byte has come.
    pub(super) fn speak(&self) {
        let mut visitors = self.admission.visitors();
        if let Some(entry) = visitors.strangers.remove(&(false, self.standing.number)) {
            self.standing.state.store(SPEAKING, Ordering::Relaxed);
            visitors.strangers.insert(self.standing.turn(), entry);
        }
    }

    /// A good token was shown.
    pub(super) fn prove(&self) {
        self.settle(KNOWN);
    }

    /// The connection is to be closed, unless a good token was shown on it.
    pub(super) fn send_away(&self) {
        self.settle(UNWELCOME);
    }

    fn settle(&self, state: u8) {
        if !self.is_stranger() {
            return; // said with every call; only the first one has to wait for the lock
        }
        let mut visitors = self.admission.visitors();
        if visitors.take(self.standing.turn()).is_some() {
            self.standing.state.store(state, Ordering::Relaxed);
        }
    }

    pub(super) fn is_stranger(&self) -> bool {
        matches!(self.standing.state(), SILENT | SPEAKING)
    }

    pub(super) fn is_unwelcome(&self) -> bool {
        self.standing.state() == UNWELCOME
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        let mut visitors = self.admission.visitors();
        visitors.take(self.standing.turn());
        visitors.all -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::tokens::{Registry, Tokens};

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn admission(bounds: Bounds) -> Arc<Admission> {
        let registry = Registry::of(&Tokens::random().unwrap()).unwrap();
        Arc::new(Admission::new(registry, Arc::new(ManualClock::default()), bounds))
    }

    #[test]
    fn one_address_cannot_take_the_room_of_all() {
        let admission = admission(Bounds { strangers: 4, strangers_per_peer: 2, ..Bounds::default() });
        let (greedy, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let third = admission.enter(other).unwrap();
        let first = admission.enter(greedy).unwrap();
        let second = admission.enter(greedy).unwrap();
        first.prove();
        first.prove();
        assert_eq!(admission.connections(), (3, 2));
        let again = admission.enter(greedy).expect("who proved itself is no stranger any more");
        let more = admission.enter(greedy).unwrap();
        assert!(second.is_unwelcome() && third.is_stranger(), "it takes the room of its own kind");
        drop((first, second, third, again, more));
        assert_eq!(admission.connections(), (0, 0));
        assert!(admission.visitors().by_peer.is_empty());
    }

    #[test]
    fn of_strangers_the_one_that_was_silent_for_longest_makes_room() {
        let admission = admission(Bounds { strangers: 3, ..Bounds::default() });
        let enter = || admission.enter(HERE).unwrap();
        let (speaking, silent, member) = (enter(), enter(), enter());
        speaking.speak();
        member.prove();
        let (second, third) = (enter(), enter());
        assert!(silent.is_unwelcome() && speaking.is_stranger());
        second.speak();
        let fourth = enter();
        assert!(third.is_unwelcome() && second.is_stranger() && fourth.is_stranger());
        fourth.speak();
        let fifth = enter();
        assert!(speaking.is_unwelcome(), "where nobody is silent, whoever came first");
        assert!(fifth.is_stranger() && !member.is_unwelcome());
    }

    #[test]
    fn members_keep_their_places_and_the_last_one_goes_to_a_stranger() {
        let admission = admission(Bounds { connections: 3, ..Bounds::default() });
        let enter = || admission.enter(HERE);
        let members: Vec<_> = (0..2).map(|_| enter().unwrap()).collect();
        members.iter().for_each(|member| member.prove());
        let stranger = enter().unwrap();
        let newcomer = enter().unwrap();
        assert!(stranger.is_unwelcome() && newcomer.is_stranger());
        drop(stranger);
        newcomer.prove();
        assert!(enter().is_none(), "there are members only");
    }

    #[test]
    fn connections_that_are_being_closed_do_not_pile_up() {
        let admission = admission(Bounds { connections: 10, strangers: 5, ..Bounds::default() });
        let slow: Vec<_> = (0..100).filter_map(|_| admission.enter(HERE)).collect();
        assert_eq!(slow.len(), 15);
    }
}
