//! How much one token may have under way at once, so that nobody can keep others out by asking for everything. Every call
//! takes a seat before it is heard and keeps it until nothing works for it any more and its answer has left, also if the
//! caller is gone by then. Sessions of workers are as many as there are workers. Knows no messages.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use togl_sweeps::hint;
use tonic::Status;

use crate::driver::LOOKS;
use crate::reads;
use crate::tokens::TokenId;

/// What a call asks of the coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// The session of a worker.
    Session,
    /// A stream that goes on while a sweep does.
    Watch,
    /// A read of the store, long or short.
    Read,
    /// A checkpoint that comes or goes.
    Checkpoint,
    /// Anything else: one question, one answer.
    Single,
}

/// Reads of one token: some places are always left for others.
const MOST_READS: usize = reads::AT_ONCE - 2;

/// Single calls of one token: a quarter of the looks that may wait.
const MOST_SINGLE: usize = LOOKS / 4;

/// Checkpoints of one token that come or go; workers wait for their turn.
const MOST_CHECKPOINTS: usize = 24;

/// Streams of one token.
const MOST_WATCHES: usize = 128;

impl CallKind {
    fn most(self) -> usize {
        match self {
            Self::Session => usize::MAX,
            Self::Watch => MOST_WATCHES,
            Self::Read => MOST_READS,
            Self::Checkpoint => MOST_CHECKPOINTS,
            Self::Single => MOST_SINGLE,
        }
    }

    fn refusal(self) -> Status {
        let what = match self {
            Self::Session => "sessions",
            Self::Watch => "streams of `togl watch` and the like",
            Self::Read => "reads of the store",
            Self::Checkpoint => "checkpoints",
            Self::Single => "calls",
        };
        Status::resource_exhausted(hint::below(
            format!("this token has {} {what} under way already", self.most()),
            "wait until some of them have ended, or use another token; `togl token create` makes one",
        ))
    }
}

/// The seats that are taken, by token and kind.
#[derive(Clone, Default)]
pub(super) struct Seats(Arc<Mutex<HashMap<(TokenId, CallKind), usize>>>);

impl Seats {
    /// A seat for one more call.
    pub(super) fn take(&self, token: TokenId, kind: CallKind) -> Result<Seat, Status> {
        let of = (token, kind);
        self.change(&of, |taken| {
            let free = *taken < kind.most();
            *taken += usize::from(free);
            free.then_some(()).ok_or_else(|| kind.refusal())
        })?;
        Ok(Seat(Arc::new(Taken { seats: self.clone(), of })))
    }

    fn change<T>(&self, of: &(TokenId, CallKind), change: impl FnOnce(&mut usize) -> T) -> T {
        // Every change is one step, so a panic elsewhere leaves nothing half done.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = all.entry(of.clone()).or_default();
        let changed = change(taken);
        if *taken == 0 {
            all.remove(of);
        }
        changed
    }
}

/// The seat of one call, free again once the last copy is dropped. Goes with the request, and on with whatever works for it.
#[derive(Clone)]
pub(super) struct Seat(Arc<Taken>);

struct Taken {
    seats: Seats,
    of: (TokenId, CallKind),
}

impl Seat {
    /// The seat that a call came with.
    pub(super) fn of<T>(request: &tonic::Request<T>) -> Result<Self, Status> {
        let seat = request.extensions().get::<Self>();
        seat.cloned().ok_or_else(|| Status::unauthenticated("the call carries no token"))
    }

    /// By which token the call was made.
    pub(super) fn token(&self) -> &TokenId {
        &self.0.of.0
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.seats.change(&self.of, |taken| *taken -= 1);
    }
}
