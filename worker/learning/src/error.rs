//! What can go wrong while learning, in variants a caller can act on, and the failure class of each.
//! Owns the translation of libtorch's words ("out of memory") and of its panics into these variants.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};

use togl_data::SplitError;
use togl_sweeps::FailureClass;
use togl_topology::TopologyError;

/// Why a fold could not be trained, or a model not be built or verified.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A loss, a filtration value or a metric is NaN or infinite.
    #[error("not a finite number: {0}")]
    NotFinite(String),
    /// The data cannot be used for this trial.
    // Whoever shows it puts its class in front, which is `data`.
    #[error("{0}")]
    Data(String),
    /// The trial's settings cannot be trained.
    #[error("settings: {0}")]
    Config(String),
    /// The data set has no such split, here or elsewhere.
    #[error("settings: {0}")]
    NoSuchSplit(SplitError),
    /// The device ran out of memory.
    #[error("out of memory: {0}")]
    OutOfMemory(String),
    /// The observer asked to stop.
    #[error("stopped after {epochs} epoch{}", if *epochs == 1 { "" } else { "s" })]
    Stopped {
        /// Whole epochs that were trained.
        epochs: u32,
    },
    /// A file of reference vectors does not say what its layout promises.
    #[error("reference file: {0}")]
    Reference(String),
    /// A checkpoint that cannot be used; training can start anew.
    #[error("checkpoint: {0}")]
    Checkpoint(String),
    /// Anything else that libtorch reports.
    #[error("libtorch: {0}")]
    Torch(String),
    /// A mistake in this program.
    #[error("panicked: {0}; this is a bug of togl, please report it")]
    Panicked(String),
}

/// What everything in this crate returns.
pub type Result<T> = std::result::Result<T, TrainError>;

impl TrainError {
    /// The class that decides what happens to the fold.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::NotFinite(_) => FailureClass::NotFinite,
            Self::Data(_) => FailureClass::Data,
            Self::Config(_) | Self::NoSuchSplit(_) => FailureClass::Config,
            Self::OutOfMemory(_) => FailureClass::OutOfMemory,
            Self::Stopped { .. } => FailureClass::Preempted,
            Self::Reference(_) | Self::Checkpoint(_) | Self::Torch(_) => FailureClass::Error,
            Self::Panicked(_) => FailureClass::Panicked,
        }
    }

    /// What somebody who trains a fold by hand can do about it.
    pub fn hint(&self) -> Option<String> {
        let advice = match self {
            Self::OutOfMemory(_) => {
                "a smaller batch_size or hidden_dim needs less memory; so do fewer programs on the same device"
            }
            Self::NotFinite(_) => "a smaller lr often helps; `features` of the data may also be too large",
            Self::NoSuchSplit(error) => return error.hint(),
            _ => return None,
        };
        Some(advice.to_owned())
    }

    /// Sorts a message of libtorch into its variant.
    pub(crate) fn from_torch(message: &str) -> Self {
        let first_line = first_line(message).to_owned();
        if is_out_of_memory(message) {
            return Self::OutOfMemory(first_line);
        }
        Self::Torch(first_line)
    }

    /// What a caught panic means. Operators of tch panic where libtorch throws, with its words in `Torch("...")`;
    /// every other panic is a mistake of ours.
    fn from_panic(text: &str) -> Self {
        if text.contains("Torch(\"") || is_out_of_memory(text) {
            return Self::from_torch(text);
        }
        Self::Panicked(text.lines().next().unwrap_or_default().to_owned())
    }
}

/// Whether these are the words of an allocator that has nothing left: libtorch's for processors, CUDA, ROCm and MPS,
/// cuBLAS and cuDNN when they start, the C++ library's, Rust's.
pub fn is_out_of_memory(message: &str) -> bool {
    const WORDS: [&str; 9] = [
        "out of memory",
        "can't allocate memory",
        "not enough memory: you tried to allocate",
        "cannot allocate memory",
        "cudaerrormemoryallocation",
        "cublas_status_alloc_failed",
        "cudnn_status_alloc_failed",
        "std::bad_alloc",
        "memory allocation of ",
    ];
    let lower = message.to_lowercase();
    WORDS.iter().any(|words| lower.contains(words))
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

impl From<SplitError> for TrainError {
    /// A split that the data set's rule does not have is missing everywhere; other data may lack it only here.
    fn from(error: SplitError) -> Self {
        match &error {
            SplitError::OutOfRange { split, valid, .. } if !valid.contains(*split) => {
                Self::NoSuchSplit(error)
            }
            _ => Self::Data(error.to_string()),
        }
    }
}

thread_local! {
    /// Whether this thread is inside of [`guard`].
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic is libtorch's way of throwing in tensor code and comes back as an error. A program's panic hook may
/// then be silent: the words that Rust would print hold a page of C++ frames.
pub fn is_returned_as_error(panic: &PanicHookInfo<'_>) -> bool {
    GUARDED.get() && panic.payload_as_str().is_some_and(|text| text.contains("Torch(\""))
}

/// Runs tensor code whose operators panic where libtorch throws, and returns such a panic as an error.
///
/// This is the one border between tensor arithmetic (which reads better without a `?` after every sum) and callers
/// that must survive an exhausted device.
pub(crate) fn guard<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let outer = GUARDED.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    match outcome {
        Ok(result) => result,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            Err(TrainError::from_panic(text.unwrap_or("without a message")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As libtorch, its libraries and the systems below them say it.
    const NO_MEMORY: [&str; 10] = [
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB of which 1.19 GiB is \
         free. Process 4242 has 14.57 GiB memory in use. Of the allocated memory 13.02 GiB is allocated by PyTorch, \
         and 201.15 MiB is reserved by PyTorch but unallocated.\nException raised from malloc",
        "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API call",
        "HIP out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 11.98 GiB",
        "MPS backend out of memory (MPS allocated: 17.93 GB, other allocations: 384.00 KB, max allowed: 18.13 GB). \
         Tried to allocate 256 bytes on shared pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to \
         allocate 4398046511104 bytes. Error code 12 (Cannot allocate memory)",
        "DefaultCPUAllocator: not enough memory: you tried to allocate 34359738368 bytes.",
        "std::bad_alloc",
        "memory allocation of 1099511627776 bytes failed",
    ];

    #[test]
    fn an_exhausted_device_is_recognised_by_its_message() {
        for message in NO_MEMORY {
            assert_eq!(TrainError::from_torch(message).class(), FailureClass::OutOfMemory, "{message}");
            let panic = format!("called `Result::unwrap()` on an `Err` value: Torch(\"{message}\")");
            assert_eq!(TrainError::from_panic(&panic).class(), FailureClass::OutOfMemory, "{panic}");
        }
        let short = TrainError::from_torch(NO_MEMORY[1]).to_string();
        assert_eq!(short, "out of memory: CUDA error: out of memory", "frames are left out");
    }

    #[test]
    fn other_trouble_is_not_taken_for_a_lack_of_memory() {
        let others = [
            "CUDA error: device-side assert triggered",
            "Expected all tensors to be on the same device, but found at least two devices, cpu and cuda:0!",
            "CUDA error: an illegal memory access was encountered",
            "unsupported memory format option Contiguous",
        ];
        for message in others {
            assert_eq!(TrainError::from_torch(message).class(), FailureClass::Error, "{message}");
        }
    }

    /// The real allocator of the processor, asked for more than any address space has.
    #[test]
    fn the_processors_allocator_is_understood() {
        let ask = || Ok(tch::Tensor::zeros([1 << 48], (tch::Kind::Float, tch::Device::Cpu)));
        let error = guard(ask).unwrap_err();
        assert_eq!(error.class(), FailureClass::OutOfMemory, "{error}");
    }

    #[test]
    fn a_mistake_of_ours_is_told_from_trouble_of_libtorch() {
        let nothing: [u32; 0] = [];
        let error = guard(|| Ok(nothing[std::hint::black_box(3)])).unwrap_err();
        assert_eq!(error.class(), FailureClass::Panicked);
        assert!(error.to_string().contains("index out of bounds"), "{error}");
        assert!(error.to_string().contains("please report it"), "{error}");
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
        assert_eq!(TrainError::Stopped { epochs: 3 }.class(), FailureClass::Preempted);
    }
}
