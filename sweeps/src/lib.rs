//! The words of the domain: sweep files, grids, trials, ids, fold results and failures.
//!
//! Everything here is computation on plain values: no clock, no files, no network, no threads. Every other
//! crate may use this one; it uses none of them.

pub mod failure;
pub mod grid;
pub mod ids;
pub mod nearest;
pub mod result;
pub mod spec;
pub mod trial;

pub use failure::{Failure, FailureClass};
pub use grid::Grid;
pub use ids::{Attempt, FoldKey, SweepName, TrialId, WorkerId};
pub use result::FoldResult;
pub use spec::SweepSpec;
pub use trial::TrialConfig;
