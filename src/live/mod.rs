//! What a page and a terminal look at, kept in step over one connection: the way to the coordinator, which comes back by
//! itself, and sweeps that are followed by streams instead of being asked for again. Draws nothing and words no view.

mod connection;
mod left;
mod pace;
mod sweep;

pub use self::connection::{CoordinatorLink, trouble};
pub use self::pace::Pace;
pub use self::sweep::{LiveSweep, Made, Planned, results_of};
