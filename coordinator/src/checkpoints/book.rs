//! Which checkpoints are kept and which go: decided here, without files and without a clock. The furthest of a fold is kept,
//! of equals the first; what is over or has not been wanted for a day goes, and the oldest where there is no room.

use std::collections::HashMap;

use togl_proto::checkpoint::Held;
use togl_scheduler::{Timestamp, Use};
use togl_sweeps::FoldKey;

/// How long a checkpoint is kept that nobody wants, in milliseconds: a sweep may be submitted again.
const UNWANTED: u64 = 24 * 3_600 * 1_000;

/// Why a checkpoint is not kept. Nothing is wrong with any of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Declined {
    /// There is one that is as far.
    #[error("one of epoch {epochs} is held already")]
    NotFurther {
        /// How far it is.
        epochs: u32,
    },
    /// The fold has its result.
    #[error("the fold has its result")]
    Over,
    /// It is larger than all room together.
    #[error("it is larger than all the room that there is, {most_bytes} bytes")]
    NoRoom {
        /// The room.
        most_bytes: u64,
    },
    /// It came through the coordinator, which has none.
    #[error("this coordinator keeps checkpoints in storage; a worker of the same version brings them there")]
    Elsewhere,
}

struct Entry {
    held: Held,
    /// Lower came earlier.
    number: u64,
    unwanted_since: Option<Timestamp>,
}

/// What is held, of which fold.
pub(super) struct Book {
    entries: HashMap<FoldKey, Entry>,
    bytes: u64,
    most_bytes: u64,
    next: u64,
}

impl Book {
    /// An empty book with so much room.
    pub(super) fn with_room(most_bytes: u64) -> Self {
        Self { entries: HashMap::new(), bytes: 0, most_bytes, next: 0 }
    }

    /// The checkpoint of a fold.
    pub(super) fn held(&self, fold: &FoldKey) -> Option<Held> {
        self.entries.get(fold).map(|entry| entry.held)
    }

    /// All folds that have one.
    pub(super) fn folds(&self) -> Vec<FoldKey> {
        self.entries.keys().copied().collect()
    }

    /// Everything that is held.
    pub(super) fn all(&self) -> Vec<(FoldKey, Held)> {
        self.entries.iter().map(|(fold, entry)| (*fold, entry.held)).collect()
    }

    /// Checkpoints and their bytes.
    pub(super) fn size(&self) -> (usize, u64) {
        (self.entries.len(), self.bytes)
    }

    /// Whether it makes sense to take this one.
    pub(super) fn judge(&self, fold: &FoldKey, offered: Held, good_for: Use) -> Result<(), Declined> {
        let most_bytes = self.most_bytes;
        match (good_for, self.held(fold)) {
            (Use::Over, _) => Err(Declined::Over),
            (_, Some(Held { epochs, .. })) if offered.epochs <= epochs => {
                Err(Declined::NotFurther { epochs })
            }
            _ if offered.size > most_bytes => Err(Declined::NoRoom { most_bytes }),
            (Use::Needed | Use::Unwanted, _) => Ok(()),
        }
    }

    /// Keeps one that has come whole, and names those that go for it.
    pub(super) fn keep(&mut self, fold: FoldKey, came: Held) -> Result<Vec<(FoldKey, Held)>, Declined> {
        self.judge(&fold, came, Use::Needed)?;
        let mut gone: Vec<_> = self.take_out(&fold).into_iter().map(|held| (fold, held)).collect();
        self.entries.insert(fold, Entry { held: came, number: self.next, unwanted_since: None });
        (self.next, self.bytes) = (self.next + 1, self.bytes + came.size);
        while self.bytes > self.most_bytes {
            let others = self.entries.iter().filter(|(of, _)| **of != fold);
            let Some(oldest) = others.min_by_key(|(_, entry)| entry.number).map(|(of, _)| *of) else { break };
            gone.extend(self.take_out(&oldest).map(|held| (oldest, held)));
        }
        Ok(gone)
    }

    /// Takes the checkpoint of a fold out.
    pub(super) fn take_out(&mut self, fold: &FoldKey) -> Option<Held> {
        let Entry { held, .. } = self.entries.remove(fold)?;
        self.bytes -= held.size;
        Some(held)
    }

    /// Takes out what is of no use any more, `now` that its folds are good for this.
    pub(super) fn review(&mut self, now: Timestamp, uses: &[(FoldKey, Use)]) -> Vec<(FoldKey, Held)> {
        let mut gone = Vec::new();
        for (fold, good_for) in uses {
            let Some(entry) = self.entries.get_mut(fold) else { continue };
            let goes = match good_for {
                Use::Needed => {
                    entry.unwanted_since = None;
                    false
                }
                Use::Unwanted => now.since(*entry.unwanted_since.get_or_insert(now)) >= UNWANTED,
                Use::Over => true,
            };
            if goes {
                gone.extend(self.take_out(fold).map(|held| (*fold, held)));
            }
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use togl_sweeps::TrialId;

    use super::*;

    fn fold(split: u32) -> FoldKey {
        FoldKey { trial: TrialId::from_bytes([7; 16]), split, seed: 1 }
    }

    fn held(epochs: u32, bytes: &str) -> Held {
        Held::of(epochs, bytes.as_bytes())
    }

    #[test]
    fn the_furthest_is_kept_and_of_equals_the_first() {
        let mut book = Book::with_room(100);
        let (first, same, further) = (held(3, "first"), held(3, "same"), held(4, "x"));
        assert_eq!(book.keep(fold(0), first), Ok(vec![]));
        assert_eq!(book.keep(fold(0), same), Err(Declined::NotFurther { epochs: 3 }));
        assert_eq!(book.keep(fold(0), held(2, "less")), Err(Declined::NotFurther { epochs: 3 }));
        assert_eq!(book.held(&fold(0)), Some(first));
        assert_eq!(book.keep(fold(0), further), Ok(vec![(fold(0), first)]));
        assert_eq!((book.held(&fold(0)), book.size()), (Some(further), (1, 1)));
    }

    #[test]
    fn the_oldest_goes_where_there_is_no_room_and_never_the_one_that_came() {
        let mut book = Book::with_room(10);
        for split in 0..3 {
            assert_eq!(book.keep(fold(split), held(1, "abc")), Ok(vec![]));
        }
        let newer = held(2, "abcd"); // the first comes again, so the second is the oldest now
        assert_eq!(book.keep(fold(0), newer), Ok(vec![(fold(0), held(1, "abc"))]));
        let large = held(1, "abcdefgh");
        let gone = vec![(fold(1), held(1, "abc")), (fold(2), held(1, "abc")), (fold(0), newer)];
        assert_eq!(book.keep(fold(3), large), Ok(gone));
        assert_eq!((book.folds(), book.size()), (vec![fold(3)], (1, 8)));
        let too_large = held(9, "abcdefghijk");
        assert_eq!(book.keep(fold(4), too_large), Err(Declined::NoRoom { most_bytes: 10 }));
        assert_eq!(book.size(), (1, 8), "and nothing goes for it");
    }

    #[test]
    fn what_is_over_goes_at_once_and_what_nobody_wants_after_a_day() {
        let mut book = Book::with_room(100);
        book.keep(fold(0), held(1, "abc")).unwrap();
        book.keep(fold(1), held(1, "abc")).unwrap();
        let none: [u32; 0] = [];
        let mut review = |now, good_for| {
            let gone = book.review(Timestamp(now), &[(fold(0), good_for), (fold(9), Use::Over)]);
            gone.into_iter().map(|(fold, _)| fold.split).collect::<Vec<_>>()
        };
        assert_eq!(review(5, Use::Unwanted), none);
        assert_eq!(review(5 + UNWANTED - 1, Use::Unwanted), none);
        assert_eq!(review(5 + UNWANTED, Use::Needed), none, "somebody wants it after all");
        assert_eq!(review(6 + UNWANTED, Use::Unwanted), none, "and the day begins again");
        assert_eq!(review(6 + 2 * UNWANTED, Use::Unwanted), [0]);
        assert_eq!(book.review(Timestamp(0), &[(fold(1), Use::Over)]), [(fold(1), held(1, "abc"))]);
        assert_eq!(book.size(), (0, 0));
        assert_eq!(book.judge(&fold(0), held(5, "x"), Use::Over), Err(Declined::Over));
        assert_eq!(book.judge(&fold(0), held(5, "x"), Use::Unwanted), Ok(()), "it was made, so it is kept");
    }
}
