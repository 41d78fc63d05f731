//! What strangers do wrong, in words. It is in the log when a peer does a thing for the first time and then once a
//! minute, so nobody can fill a disk by knocking.

use std::net::{IpAddr, Ipv4Addr};

use togl_scheduler::Timestamp;

use crate::log_limit::LogLimit;

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
    Visitors,
    /// The system could not give us a connection.
    Exhausted,
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
            Self::Visitors => "closed a connection because there are too many",
            Self::Exhausted => "cannot accept a connection; closed those of silent strangers",
            Self::BadReport => "refused a report",
            Self::BadMessage => "ended a session over a bad message",
        }
    }
}

/// The book of complaints.
#[derive(Default)]
pub(crate) struct Complaints(LogLimit<(Offence, IpAddr)>);

impl Complaints {
    /// Notes an offence and writes a line if it is time for one. Peers that are too many to be told apart share one
    /// entry an offence.
    pub(crate) fn note(&self, offence: Offence, peer: IpAddr, detail: &str, now: Timestamp) {
        let anybody = || (offence, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        if let Some(more) = self.0.due((offence, peer), anybody, now) {
            let detail: String = detail.chars().take(200).collect();
            tracing::warn!(%peer, detail, more, "{}", offence.sentence());
        }
    }
}
