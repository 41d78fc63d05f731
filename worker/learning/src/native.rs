//! The border to the C++ files of `native/`: safe functions over the C interface, errors as [`TrainError`].
//! Owns every `unsafe` block of this crate. Pointers are borrowed for the call only; a returned tensor is owned.

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::ptr::null_mut;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use tch::Tensor;

use crate::error::{Result, TrainError};

/// `togl_sparse` of ops.h: a matrix and its transpose, then both as tensors of compressed rows.
#[repr(C)]
struct RawSparse {
    halves: [RawRows; 2],
    compressed: [*mut c_void; 2],
}

#[repr(C)]
struct RawConvolution {
    weight: *mut c_void,
    bias: *mut c_void,
    rows: *mut c_void,
    transposed: *mut c_void,
    residual: i32,
}

#[repr(C)]
struct RawRows {
    row_start: *mut c_void,
    columns: *mut c_void,
    values: *mut c_void,
}

#[repr(C)]
struct RawNorm {
    weight: *mut c_void,
    bias: *mut c_void,
    running_mean: *mut c_void,
    running_var: *mut c_void,
    momentum: f64,
    eps: f64,
    training: i32,
    relu: i32,
}

unsafe extern "C" {
    fn togl_sparse_product(matrix: *const RawSparse, x: *mut c_void, out: *mut *mut c_void) -> *mut c_char;
    fn togl_compressed_rows(
        row_start: *mut c_void,
        columns: *mut c_void,
        values: *mut c_void,
        width: i64,
        out: *mut *mut c_void,
    ) -> *mut c_char;
    fn togl_graph_convolution(
        convolution: *const RawConvolution,
        norm: *const RawNorm,
        x: *mut c_void,
        out: *mut *mut c_void,
    ) -> *mut c_char;
    fn togl_all_pairs(
        values: *mut c_void,
        zero: *mut c_void,
        index: *mut c_void,
        vertices: i64,
        dim0: *mut *mut c_void,
        dim1: *mut *mut c_void,
    ) -> *mut c_char;
    fn togl_backward(out: *mut c_void, gradient: *mut c_void) -> *mut c_char;
    fn togl_dense(
        x: *mut c_void,
        weight: *mut c_void,
        bias: *mut c_void,
        relu: i32,
        out: *mut *mut c_void,
    ) -> *mut c_char;
    fn togl_count_begin(cuda: i32);
    fn togl_count_part(name: *const c_char);
    fn togl_count_end() -> *mut c_char;
    fn togl_batch_norm(
        norm: *const RawNorm,
        x: *mut c_void,
        residual: *mut c_void,
        out: *mut *mut c_void,
    ) -> *mut c_char;
    fn togl_coordinate_functions(
        functions: *const [*mut c_void; 7],
        birth: *mut c_void,
        death: *mut c_void,
        out: *mut *mut c_void,
    ) -> *mut c_char;
    fn togl_adam(
        settings: *const AdamStep,
        count: i64,
        parameters: *mut *mut c_void,
        first: *mut *mut c_void,
        second: *mut *mut c_void,
        step: *mut c_void,
    ) -> *mut c_char;
    fn togl_keep_memory();
    fn togl_restart_memory(cuda: i32, index: i32);
    fn togl_peak_memory(cuda: i32, index: i32) -> i64;
    fn togl_libtorch_version() -> *mut c_char;
    fn togl_cpu_capability() -> *mut c_char;
    fn free(pointer: *mut c_void);
}

/// One half of a sparse matrix: compressed rows on a device.
#[derive(Debug)]
pub(crate) struct Rows {
    pub row_start: Tensor,
    pub columns: Tensor,
    /// Absent: every entry is 1.
    pub values: Option<Tensor>,
    /// The same as a tensor of compressed rows, on devices that multiply with those.
    pub compressed: Option<Tensor>,
}

/// The map of a graph convolution.
pub(crate) struct Convolution<'a> {
    pub weight: &'a Tensor,
    pub bias: &'a Tensor,
    /// Compressed rows of the adjacency, and of its transpose.
    pub rows: &'a Tensor,
    pub transposed: &'a Tensor,
    /// Whether the input is added at the end.
    pub residual: bool,
}

/// Parameters, statistics and mode of a batch norm.
pub(crate) struct Norm<'a> {
    pub weight: &'a Tensor,
    pub bias: &'a Tensor,
    pub running_mean: &'a Tensor,
    pub running_var: &'a Tensor,
    pub momentum: f64,
    pub eps: f64,
    pub training: bool,
    pub relu: bool,
}

impl Norm<'_> {
    fn raw(&self) -> RawNorm {
        RawNorm {
            weight: raw(self.weight),
            bias: raw(self.bias),
            running_mean: raw(self.running_mean),
            running_var: raw(self.running_var),
            momentum: self.momentum,
            eps: self.eps,
            training: self.training.into(),
            relu: self.relu.into(),
        }
    }
}

/// Settings of one Adam step, laid out as in ops.h; `step` counts from 1.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct AdamStep {
    pub lr: f64,
    pub beta1: f64,
    pub beta2: f64,
    pub eps: f64,
    pub weight_decay: f64,
    pub step: i64,
}

fn raw(tensor: &Tensor) -> *mut c_void {
    tensor.as_ptr().cast_mut().cast()
}

fn raw_or_null(tensor: Option<&Tensor>) -> *mut c_void {
    tensor.map_or(null_mut(), raw)
}

/// Takes ownership of a C string.
fn take_text(text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the native side returns null or a string made by `strdup`, which nobody else frees.
    unsafe {
        let owned = CStr::from_ptr(text).to_string_lossy().into_owned();
        free(text.cast());
        Some(owned)
    }
}

fn check(error: *mut c_char) -> Result<()> {
    take_text(error).map_or(Ok(()), |message| Err(TrainError::from_torch(&message)))
}

fn owned(call: impl FnOnce(*mut *mut c_void) -> *mut c_char) -> Result<Tensor> {
    let mut out = null_mut();
    check(call(&mut out))?;
    // SAFETY: without an error the native side stored a pointer to a new `at::Tensor`, as torch-sys does.
    Ok(unsafe { Tensor::from_ptr(out.cast()) })
}

/// `A x` whose gradient is `transposed g`.
pub(crate) fn sparse_product(matrix: &Rows, transposed: &Rows, x: &Tensor) -> Result<Tensor> {
    let halves = [matrix, transposed].map(|rows| RawRows {
        row_start: raw(&rows.row_start),
        columns: raw(&rows.columns),
        values: raw_or_null(rows.values.as_ref()),
    });
    let compressed = [matrix, transposed].map(|rows| raw_or_null(rows.compressed.as_ref()));
    let matrix = RawSparse { halves, compressed };
    // SAFETY: all pointers come from live tensors and the struct mirrors the one in ops.h.
    owned(|out| unsafe { togl_sparse_product(&matrix, raw(x), out) })
}

/// The tensor of compressed rows with this many columns.
pub(crate) fn compressed_rows(
    row_start: &Tensor,
    columns: &Tensor,
    values: &Tensor,
    width: i64,
) -> Result<Tensor> {
    // SAFETY: all pointers come from live tensors.
    owned(|out| unsafe { togl_compressed_rows(raw(row_start), raw(columns), raw(values), width, out) })
}

/// A whole graph convolution with its norm, in training, on devices.
pub(crate) fn graph_convolution(map: &Convolution<'_>, norm: &Norm<'_>, x: &Tensor) -> Result<Tensor> {
    let convolution = RawConvolution {
        weight: raw(map.weight),
        bias: raw(map.bias),
        rows: raw(map.rows),
        transposed: raw(map.transposed),
        residual: map.residual.into(),
    };
    // SAFETY: all pointers come from live tensors and the structs mirror those in ops.h.
    owned(|out| unsafe { togl_graph_convolution(&convolution, &norm.raw(), raw(x), out) })
}

/// The pairs of `vertices` vertices and of all kept edges from values `[n, k]` at flat places.
pub(crate) fn all_pairs(
    values: &Tensor,
    zero: &Tensor,
    index: &Tensor,
    vertices: i64,
) -> Result<(Tensor, Tensor)> {
    let mut dim1 = null_mut();
    // SAFETY: pointers of live tensors; without an error both results are pointers to new tensors.
    let dim0 = owned(|dim0| unsafe {
        togl_all_pairs(raw(values), raw(zero), raw(index), vertices, dim0, &mut dim1)
    })?;
    // SAFETY: as above.
    Ok((dim0, unsafe { Tensor::from_ptr(dim1.cast()) }))
}

/// Back through the network from `out`, whose gradient is given.
pub(crate) fn backward(out: &Tensor, gradient: &Tensor) -> Result<()> {
    // SAFETY: pointers of live tensors.
    check(unsafe { togl_backward(raw(out), raw(gradient)) })
}

/// `x W^T + b`, with ReLU if asked for.
pub(crate) fn dense(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>, relu: bool) -> Result<Tensor> {
    // SAFETY: all pointers come from live tensors, or say that there is none.
    owned(|out| unsafe { togl_dense(raw(x), raw(weight), raw_or_null(bias), relu.into(), out) })
}

/// Counts what is asked of a device from here on; says no where libtorch does not count for it.
pub(crate) fn begin_counting(device: tch::Device) -> bool {
    let Some((cuda, _)) = counted(device) else { return false };
    // SAFETY: a plain number; registers callbacks that live as long as the program.
    unsafe { togl_count_begin(cuda) };
    true
}

/// What follows belongs to this part of the network.
pub(crate) fn count_part(name: &CStr) {
    // SAFETY: the name is copied before the call returns.
    unsafe { togl_count_part(name.as_ptr()) }
}

/// Stops counting; the lines of `count.h`.
pub(crate) fn end_counting() -> String {
    // SAFETY: returns an owned C string.
    take_text(unsafe { togl_count_end() }).unwrap_or_default()
}

/// Batch norm, optional ReLU, optional residual.
pub(crate) fn batch_norm(norm: &Norm<'_>, x: &Tensor, residual: Option<&Tensor>) -> Result<Tensor> {
    // SAFETY: all pointers come from live tensors and the struct mirrors the one in ops.h.
    owned(|out| unsafe { togl_batch_norm(&norm.raw(), raw(x), raw_or_null(residual), out) })
}

/// The four coordinate functions, parameters in the order of `togl_coordinates`; CPU floats only.
pub(crate) fn coordinate_functions(
    parameters: [&Tensor; 7],
    birth: &Tensor,
    death: &Tensor,
) -> Result<Tensor> {
    let pointers = parameters.map(raw);
    // SAFETY: `togl_coordinates` is seven pointers, which come from live tensors like the points.
    owned(|out| unsafe { togl_coordinate_functions(&pointers, raw(birth), raw(death), out) })
}

/// One Adam step; each gradient is dropped afterwards. `number` is that of the step, where the parameters are on a device.
pub(crate) fn adam(
    step: AdamStep,
    [parameters, first, second]: [&[Tensor]; 3],
    number: Option<&Tensor>,
) -> Result<()> {
    let pointers = |tensors: &[Tensor]| tensors.iter().map(raw).collect::<Vec<_>>();
    let (mut p, mut m, mut v) = (pointers(parameters), pointers(first), pointers(second));
    let count = p.len().min(m.len()).min(v.len()) as i64;
    let number = raw_or_null(number);
    // SAFETY: three lists of at least `count` pointers to live tensors; the struct mirrors the one in ops.h.
    check(unsafe { togl_adam(&step, count, p.as_mut_ptr(), m.as_mut_ptr(), v.as_mut_ptr(), number) })
}

/// Makes a library part of this process for good: what it registers with libtorch at its start stays.
pub(crate) fn open_library(path: &Path) -> std::result::Result<(), String> {
    // SAFETY: a library of libtorch itself, whose start only registers what it can do; it is never unloaded.
    let opened = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
    opened.map(std::mem::forget).map_err(|error| error.to_string())
}

/// Asks the allocator to keep freed memory for the next step.
pub(crate) fn keep_memory() {
    // SAFETY: only sets options of the allocator, which is safe at any time.
    unsafe { togl_keep_memory() }
}

/// Whether a device is CUDA (else MPS) and its index; nothing for devices without an allocator of their own.
fn counted(device: tch::Device) -> Option<(i32, i32)> {
    match device {
        tch::Device::Cuda(index) => Some((1, i32::try_from(index).ok()?)),
        tch::Device::Mps => Some((0, 0)),
        tch::Device::Cpu | tch::Device::Vulkan => None,
    }
}

/// Starts a device's record of memory anew and empties libtorch's cache there.
pub(crate) fn restart_memory(device: tch::Device) {
    if let Some((cuda, index)) = counted(device) {
        // SAFETY: plain numbers; a device that was never used, or is not there, is left alone.
        unsafe { togl_restart_memory(cuda, index) }
    }
}

/// The most that was taken of a device's memory since then, if libtorch counts it there.
pub(crate) fn peak_memory(device: tch::Device) -> Option<u64> {
    let (cuda, index) = counted(device)?;
    // SAFETY: as above; "not known" is a negative number.
    u64::try_from(unsafe { togl_peak_memory(cuda, index) }).ok()
}

/// The libtorch whose headers this program was compiled with.
pub(crate) fn libtorch_version() -> String {
    // SAFETY: returns an owned C string.
    take_text(unsafe { togl_libtorch_version() }).unwrap_or_default()
}

/// The vector instructions that libtorch uses on this processor, in small letters.
pub(crate) fn cpu_capability() -> String {
    // SAFETY: returns an owned C string.
    take_text(unsafe { togl_cpu_capability() }).unwrap_or_default().to_lowercase()
}
