//! What can go wrong while learning, in variants a caller can act on, and the failure class of each.
//! Owns the translation of libtorch's words ("out of memory") and of its panics into these variants.

use std::panic::{AssertUnwindSafe, catch_unwind};

use togl_sweeps::FailureClass;
use togl_topology::TopologyError;

/// Why a fold could not be trained, or a model not be built or verified.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A loss, a filtration value or a metric is NaN or infinite.
    #[error("not a finite number: {0}")]
    NotFinite(String),
    /// The data cannot be used for this trial.
    #[error("data: {0}")]
    Data(String),
    /// The trial's settings cannot be trained.
    #[error("settings: {0}")]
    Config(String),
    /// The device ran out of memory.
    #[error("out of memory: {0}")]
    OutOfMemory(String),
    /// The observer asked to stop.
    #[error("stopped after epoch {epoch}")]
    Stopped {
        /// The last epoch that was trained.
        epoch: u32,
    },
    /// The fold took longer than it may.
    #[error("time limit of {limit} s reached in epoch {epoch}")]
    TimeLimit {
        /// The limit in seconds.
        limit: f64,
        /// The epoch in which it was noticed.
        epoch: u32,
    },
    /// A file of reference vectors does not say what its layout promises.
    #[error("reference file: {0}")]
    Reference(String),
    /// Anything else that libtorch reports.
    #[error("libtorch: {0}")]
    Torch(String),
}

/// What everything in this crate returns.
pub type Result<T> = std::result::Result<T, TrainError>;

impl TrainError {
    /// The class that decides what happens to the fold.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::NotFinite(_) => FailureClass::NotFinite,
            Self::Data(_) => FailureClass::Data,
            Self::Config(_) => FailureClass::Config,
            Self::OutOfMemory(_) => FailureClass::OutOfMemory,
            Self::Stopped { .. } => FailureClass::Preempted,
            Self::TimeLimit { .. } => FailureClass::TimeLimit,
            Self::Reference(_) | Self::Torch(_) => FailureClass::Error,
        }
    }

    /// Sorts a message of libtorch into its variant.
    pub(crate) fn from_torch(message: &str) -> Self {
        let first_line = first_line(message).to_owned();
        let lower = message.to_lowercase();
        if lower.contains("out of memory") || lower.contains("can't allocate memory") {
            return Self::OutOfMemory(first_line);
        }
        Self::Torch(first_line)
    }
}

/// What libtorch says, without its stack of frames and without the words a panic puts around it.
fn first_line(message: &str) -> &str {
    let bare = message.split_once("Torch(\"").map_or(message, |(_, bare)| bare);
    let end = bare.find("\\n").or_else(|| bare.find('\n')).unwrap_or(bare.len());
    &bare[..end]
}

impl From<tch::TchError> for TrainError {
    fn from(error: tch::TchError) -> Self {
        Self::from_torch(&error.to_string())
    }
}

impl From<TopologyError> for TrainError {
    fn from(error: TopologyError) -> Self {
        match error {
            TopologyError::NotFinite { .. } => Self::NotFinite(error.to_string()),
            other => Self::Data(other.to_string()),
        }
    }
}

impl From<togl_data::SplitError> for TrainError {
    fn from(error: togl_data::SplitError) -> Self {
        Self::Data(error.to_string())
    }
}

/// Runs tensor code whose operators panic where libtorch throws, and returns such a panic as an error.
///
/// This is the one border between tensor arithmetic (which reads better without a `?` after every sum) and callers
/// that must survive an exhausted device.
pub(crate) fn guard<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            Err(TrainError::from_torch(text.unwrap_or("a tensor operation panicked")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exhausted_device_is_recognised_by_its_message() {
        let cuda = TrainError::from_torch("CUDA out of memory. Tried to allocate 2.00 GiB\nbacktrace");
        assert_eq!(cuda.class(), FailureClass::OutOfMemory);
        assert_eq!(cuda.to_string(), "out of memory: CUDA out of memory. Tried to allocate 2.00 GiB");
        let host = TrainError::from_torch(
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes",
        );
        assert_eq!(host.class(), FailureClass::OutOfMemory);
        assert_eq!(TrainError::from_torch("shape mismatch").class(), FailureClass::Error);
    }

    #[test]
    fn a_panicking_tensor_operation_becomes_an_error() {
        let wrong = || {
            let sum = tch::Tensor::ones([2, 3], (tch::Kind::Float, tch::Device::Cpu))
                + tch::Tensor::from_slice(&[1f32, 2.0]);
            Ok(sum)
        };
        let error = guard(wrong).unwrap_err().to_string();
        assert!(error.starts_with("libtorch: The size of tensor a (3) must match"), "{error}");
        assert!(!error.contains("frame #0"), "{error}");
    }

    #[test]
    fn a_stopped_run_is_preempted_not_failed() {
        assert_eq!(TrainError::Stopped { epoch: 3 }.class(), FailureClass::Preempted);
        assert_eq!(TrainError::TimeLimit { limit: 1.0, epoch: 0 }.class(), FailureClass::TimeLimit);
    }
}
