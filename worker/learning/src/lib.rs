//! Tensors, layers, models and training: the only crate of togl that uses libtorch.
//!
//! Layout
//! - `parameters`, `adam`: named tensors with their initial values, and the optimiser
//! - `sparse`, `batch`: graphs as matrices, and how graphs of a data set become a mini-batch
//! - `persistence`: filtration values to persistence pairs that carry gradients
//! - `layers`, `model`: one layer a file, and the network of a trial
//! - `baselines`: kernels with support vector machines, which need no tensors
//! - `job`, `learner`, `metrics`, `schedule`, `train`: one fold from what is asked for to its test
//! - `checkpoint`, `filtrations`: a fold in the middle of its training as bytes; what a trained network learnt
//! - `cuda_half`: libtorch's CUDA half, opened at run time where it is
//! - `device`, `bench`, `verify` (with `reference`, its file format): what the commands of those names call
//! - `launches`: what a training step asks of a device, counted
//! - `native`: the border to the C++ files of `native/`, the few operations libtorch does not have
//!
//! Nothing here reads a clock, prints, or draws from a global random generator.

pub mod adam;
pub mod baselines;
pub mod batch;
pub mod bench;
pub mod checkpoint;
mod cuda_half;
pub mod device;
pub mod error;
pub mod filtrations;
pub mod job;
pub mod launches;
pub mod layers;
mod learner;
pub mod metrics;
pub mod model;
mod native;
pub mod parameters;
pub mod persistence;
mod reference;
mod reference_names;
pub mod schedule;
pub mod shares;
pub mod sparse;
pub mod train;
pub mod verify;

pub use checkpoint::{Checkpoint, Header};
pub use device::{Device, Inspection, inspect, use_threads};
pub use error::{TrainError, is_returned_as_error};
pub use filtrations::{Filtrations, filtrations};
pub use job::{EpochProgress, Flow, Job, Observer};
pub use train::{continue_fold, train_fold};
pub use verify::{CaseReport, verify_file};
