//! The words of the domain: sweep files, grids, trials, ids, fold results and failures.
//!
//! Everything here is computation on plain values: no clock, no files, no network, no threads. Every other
//! crate may use this one; it uses none of them.

pub mod baselines;
pub mod blocks;
pub mod bounded;
pub mod bundle;
pub mod capability;
pub mod condition;
pub mod datasets;
pub mod draws;
pub mod estimate;
pub mod explain;
pub mod failure;
pub mod grid;
pub mod halve;
pub mod hint;
pub mod identity;
pub mod ids;
mod keys;
pub mod nearest;
pub mod overrides;
pub mod plan;
pub mod presets;
pub mod program;
pub mod published;
pub mod race;
pub mod random;
mod read;
pub mod result;
pub mod scale;
pub mod schema;
pub mod settings;
pub mod spec;
pub mod trial;
pub mod union;
pub mod visible;
mod words;
mod yaml;

pub use capability::Capability;
pub use explain::explain;
pub use failure::{Failure, FailureClass};
pub use grid::Grid;
pub use ids::{Attempt, FoldKey, SweepName, TrialId, WorkerId};
pub use plan::PlanCounts;
pub use result::{CheckedResult, FoldResult};
pub use scale::{Goal, Scale};
pub use spec::SweepSpec;
pub use trial::TrialConfig;

#[cfg(test)]
mod language_tests;
