//! Methods that networks are compared with and that need no gradients: graph kernels and fixed features with a support
//! vector machine. They report folds like everything else; `fold` says what its fields mean for them.
//!
//! - `wl`: labels refined by Weisfeiler and Lehman's rounds, and the two kernels that compare them
//! - `ph`: persistence of the degree filtration as features
//! - `gram`: matrices of kernel values
//! - `svm`: one machine for each pair of classes; the solver is LIBSVM's, from a crate
//! - `inner`: the inner cross-validation that chooses the cost and the number of rounds
//! - `fold`: the order of these steps
//!
//! Nothing here uses tensors, threads or devices: a fold is a function of (trial, split, seed, data).

mod fold;
pub mod gram;
mod inner;
pub mod ph;
pub mod svm;
pub mod wl;

pub use fold::{feature_choice, grid_points};
pub(crate) use fold::{fit_fold, split_of};
