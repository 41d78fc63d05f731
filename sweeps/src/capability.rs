//! What a trial may need that not every worker offers, in words that workers, coordinator and people share. What a worker
//! offers is its own business, who gets what the scheduler's.

use crate::words::words;

words!(
    /// Something that a trial needs and that a worker must have been told to offer.
    Capability {
        /// It runs programs of users.
        Programs = "programs",
    }
);

impl Capability {
    /// What a worker does that offers it, after "no connected worker".
    pub fn does(self) -> &'static str {
        match self {
            Self::Programs => "runs programs",
        }
    }

    /// How a worker comes to offer it.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Programs => "start one with `togl-worker join --programs`",
        }
    }
}
