//! Devices: which there are, whether they work, how many threads libtorch may use. Owns the only global settings that
//! this crate touches (thread counts, the allocator's thrift), and only when it is asked to.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use tch::{Cuda, Kind, Tensor};

use crate::cuda_half;
pub use crate::cuda_half::CudaHalf;
use crate::error::{Result, TrainError, guard};
use crate::native;

/// The libtorch version that tch and torch-sys were made for.
pub const EXPECTED_LIBTORCH: &str = "2.13.0";

/// Where to train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// The processor.
    Cpu,
    /// An NVIDIA (or ROCm) device by index.
    Cuda(usize),
    /// Apple's GPU.
    Mps,
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => formatter.write_str("cpu"),
            Self::Cuda(index) => write!(formatter, "cuda:{index}"),
            Self::Mps => formatter.write_str("mps"),
        }
    }
}

impl Device {
    /// Device kind for a result's provenance: folds of two GPUs of one machine are of one kind.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda(_) => "cuda",
            Self::Mps => "mps",
        }
    }

    /// libtorch's handle, if the device is there.
    pub(crate) fn open(self) -> Result<tch::Device> {
        // The processor is always there; asking for others would load what they need.
        if self == Self::Cpu || devices().any(|there| there == self) {
            return Ok(self.handle());
        }
        let there: Vec<String> = devices().map(|device| device.to_string()).collect();
        Err(TrainError::Config(format!(
            "this machine has no usable device {self}, only {}; `togl-worker doctor` says more",
            there.join(", ")
        )))
    }

    fn handle(self) -> tch::Device {
        match self {
            Self::Cpu => tch::Device::Cpu,
            Self::Cuda(index) => tch::Device::Cuda(index),
            Self::Mps => tch::Device::Mps,
        }
    }

    /// Starts the record of [`Self::peak_memory`] anew, and gives back what earlier folds left unused on the device.
    pub fn restart_memory(self) {
        native::restart_memory(self.handle());
    }

    /// The most that this process had taken of the device's memory, in bytes; nothing for the processor, whose memory
    /// the system knows, and where libtorch does not count.
    pub fn peak_memory(self) -> Option<u64> {
        native::peak_memory(self.handle())
    }
}

/// The devices that libtorch can use here.
fn devices() -> impl Iterator<Item = Device> {
    std::iter::once(Device::Cpu)
        .chain((0..cuda_devices()).map(|index| Device::Cuda(index as usize)))
        .chain(tch::utils::has_mps().then_some(Device::Mps))
}

fn cuda_devices() -> i64 {
    cuda_half::open();
    guard(|| Ok(Cuda::device_count())).unwrap_or(0)
}

/// Limits libtorch to this many threads, here and in backward passes started from the calling thread.
///
/// Call it on the thread that trains, before anything else: OpenMP counts threads per calling thread. One thread
/// gives bit-reproducible runs. It also asks the allocator to keep freed memory: every step allocates the same
/// tensors again, and fetching their pages anew costs about a tenth of the time.
pub fn use_threads(threads: usize) {
    let threads = i32::try_from(threads.max(1)).unwrap_or(i32::MAX);
    tch::set_num_threads(threads);
    native::keep_memory();
}

/// Limits the threads that libtorch uses between operations. Works once, before the first parallel operation;
/// later calls are refused by libtorch and reported.
pub fn use_interop_threads(threads: usize) -> Result<()> {
    let threads = i32::try_from(threads.max(1)).unwrap_or(i32::MAX);
    guard(|| {
        tch::set_num_interop_threads(threads);
        Ok(())
    })
}

/// The libtorch that this program was compiled with.
pub fn libtorch_version() -> String {
    native::libtorch_version()
}

/// What decides the last digits of what is computed on a device of this word, as far as libtorch knows it: the vector instructions
/// of the processor. Which GPU it is, is asked of the driver.
pub fn processor(device: &str) -> String {
    if device == "cpu" { native::cpu_capability() } else { String::new() }
}

/// What `doctor` shows about tensors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inspection {
    /// Version of libtorch.
    pub libtorch: String,
    /// Version that the bindings were made for.
    pub libtorch_expected: String,
    /// Threads libtorch uses within an operation.
    pub threads: i32,
    /// Threads libtorch uses between operations.
    pub interop_threads: i32,
    /// Where it lies; nothing where the system does not tell.
    pub libtorch_folder: Option<PathBuf>,
    /// Whether libtorch's CUDA half is there and could be opened.
    pub cuda_half: CudaHalf,
    /// CUDA devices that can be used.
    pub cuda_devices: i64,
    /// Whether cuDNN can be used.
    pub cudnn: bool,
    /// Whether Apple's GPU can be used.
    pub mps: bool,
    /// One entry a device: whether a tiny training step works there.
    pub devices: Vec<DeviceCheck>,
}

/// Whether a device computes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceCheck {
    /// Which device.
    pub device: String,
    /// Whether a tiny training step worked.
    pub works: bool,
    /// What went wrong, if something did.
    pub error: Option<String>,
}

/// Looks at this machine's devices and tries each.
pub fn inspect() -> Inspection {
    let cuda_half = cuda_half::open().clone(); // before libtorch is asked what it has
    Inspection {
        libtorch: libtorch_version(),
        libtorch_expected: EXPECTED_LIBTORCH.to_owned(),
        threads: tch::get_num_threads(),
        interop_threads: tch::get_num_interop_threads(),
        libtorch_folder: cuda_half::libtorch_folder(),
        cuda_half,
        cuda_devices: cuda_devices(),
        cudnn: guard(|| Ok(Cuda::cudnn_is_available())).unwrap_or(false),
        mps: tch::utils::has_mps(),
        devices: devices().map(check).collect(),
    }
}

fn check(device: Device) -> DeviceCheck {
    let error = guard(|| tiny_step(device.open()?)).err().map(|error| error.to_string());
    DeviceCheck { device: device.to_string(), works: error.is_none(), error }
}

/// Fits a line to four points by one step of gradient descent: forward, backward, update, read back.
fn tiny_step(device: tch::Device) -> Result<()> {
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0]).view([4, 1]).f_to_device(device)?;
    let mut weight = Tensor::zeros([1, 1], (Kind::Float, device)).set_requires_grad(true);
    let before = (x.f_matmul(&weight)? - &x).square().sum(Kind::Float);
    before.f_backward()?;
    let _no_grad = tch::no_grad_guard();
    weight -= weight.grad() * 0.01;
    let after = (x.f_matmul(&weight)? - &x).square().sum(Kind::Float);
    if after.f_double_value(&[])? < before.f_double_value(&[])? {
        return Ok(());
    }
    Err(TrainError::Torch("a training step did not reduce the loss".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_found_and_trains() {
        let inspection = inspect();
        assert_eq!(inspection.devices[0], DeviceCheck { device: "cpu".to_owned(), works: true, error: None });
        assert_eq!(inspection.libtorch, EXPECTED_LIBTORCH);
        assert!(serde_json::to_string(&inspection).unwrap().contains("\"cuda_devices\""));
    }

    #[test]
    fn libtorch_uses_as_many_threads_as_it_is_told() {
        for threads in [1, 3, 1] {
            use_threads(threads);
            assert_eq!(tch::get_num_threads(), threads as i32);
        }
        use_threads(0);
        assert_eq!(tch::get_num_threads(), 1, "none is one");
    }

    #[test]
    fn a_device_that_is_not_there_is_a_setting_error_that_names_it() {
        let error = Device::Cuda(99).open().unwrap_err();
        assert!(
            error.to_string().starts_with("settings: this machine has no usable device cuda:99, only cpu"),
            "{error}"
        );
    }

    #[test]
    fn the_memory_of_the_processor_is_not_libtorchs_to_count() {
        Device::Cpu.restart_memory();
        assert_eq!(Device::Cpu.peak_memory(), None);
        assert_eq!(Device::Cuda(99).peak_memory(), None);
    }
}
