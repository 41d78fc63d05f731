// Played GPUs: what libtorch needs to believe in two CUDA devices, or with -DPLAYED_MPS in Apple's, on a machine that has
// none. It is preloaded into a program that is linked to the CPU half of libtorch (LD_PRELOAD), which so takes every path
// that a real device takes.
//
// It keeps the rules of a real device that a program can break:
//   - the processor cannot read its addresses (they lie in a range without access: who tries dies at once);
//   - tensors of two devices do not mix;
//   - its memory ends (after PLAYED_GPU_BYTES), and libtorch then says so in its own words;
//   - Apple's has no double precision.
// The processor does the operations, on copies. So this shows that devices are handled rightly, and neither how fast a
// real one is nor which digits it gives.

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/detail/MPSHooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_nnz_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/col_indices_native.h>
#include <ATen/ops/crow_indices_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/values_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#ifdef PLAYED_MPS
#define BACKEND MPS
constexpr c10::DeviceType KIND = c10::kMPS;
constexpr c10::DispatchKey KEY = c10::DispatchKey::MPS;
constexpr c10::DeviceIndex DEVICES = 1;
constexpr const char *OUT_OF_MEMORY = "MPS backend out of memory";
#else
#define BACKEND CUDA
constexpr c10::DeviceType KIND = c10::kCUDA;
constexpr c10::DispatchKey KEY = c10::DispatchKey::CUDA;
constexpr c10::DeviceIndex DEVICES = 2;
constexpr const char *OUT_OF_MEMORY = "CUDA out of memory";
#endif

namespace {

using at::Tensor;

constexpr size_t ADDRESSES = size_t(1) << 40;  // reserved, never memory; none is used twice

thread_local c10::DeviceIndex current = 0;

int64_t capacity() {
  const char *text = std::getenv("PLAYED_GPU_BYTES");
  return text ? std::strtoll(text, nullptr, 10) : int64_t(1) << 32;
}

// ---- memory

struct Block {
  std::vector<char> bytes;
  c10::DeviceIndex device;
};

std::mutex lock;
std::map<uintptr_t, Block> blocks;
c10::CachingAllocator::Stat taken[DEVICES];

uintptr_t reserve() {
  void *range = mmap(nullptr, ADDRESSES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TORCH_CHECK(range != MAP_FAILED, "played device: the system gives no addresses");
  return reinterpret_cast<uintptr_t>(range);
}

void release(void *pointer) {
  const std::lock_guard<std::mutex> hold(lock);
  const auto found = blocks.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == blocks.end()) return;
  taken[found->second.device].decrease(found->second.bytes.size());
  blocks.erase(found);
}

struct Memory final : public c10::DeviceAllocator {
  c10::DataPtr allocate(size_t size) override {
    const c10::Device device(KIND, current);
    if (size == 0) return {nullptr, nullptr, &release, device};
    const std::lock_guard<std::mutex> hold(lock);
    static uintptr_t next = reserve();
    const int64_t left = capacity() - taken[current].current;
    TORCH_CHECK_WITH(OutOfMemoryError, (int64_t)size <= left, OUT_OF_MEMORY, ". Tried to allocate ", size,
                     " bytes. GPU ", (int)current, " has a total capacity of ", capacity(), " bytes of which ", left,
                     " bytes is free.");
    void *pointer = reinterpret_cast<void *>(next);
    blocks[next] = Block{std::vector<char>(size), current};
    taken[current].increase(size);
    next += (size + 511) / 512 * 512;
    return {pointer, pointer, &release, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void *, const void *, size_t) const override { TORCH_CHECK(false, "played device: no raw copies"); }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr &, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    const std::lock_guard<std::mutex> hold(lock);
    stats.reserved_bytes[(size_t)c10::CachingAllocator::StatType::AGGREGATE] = taken[device];
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex device) override {
    const std::lock_guard<std::mutex> hold(lock);
    taken[device].peak = taken[device].current;
  }
};

Memory memory;
REGISTER_ALLOCATOR(KIND, &memory);

// The same tensor as the processor sees it: its own memory, or what stands behind a played address.
Tensor host_view(const Tensor &tensor) {
  if (tensor.is_cpu()) return tensor;
  const auto options = tensor.options().device(at::kCPU).requires_grad(false);
  if (tensor.numel() == 0) return at::empty_strided(tensor.sizes(), tensor.strides(), options);
  const std::lock_guard<std::mutex> hold(lock);
  const auto address = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
  auto block = blocks.upper_bound(address);
  TORCH_CHECK(block != blocks.begin(), "played device: an address that was never given");
  --block;
  const size_t offset = address - block->first;
  TORCH_CHECK(offset < block->second.bytes.size(), "played device: an address beyond its block");
  return at::from_blob(block->second.bytes.data() + offset, tensor.sizes(), tensor.strides(), options);
}

// ---- what was asked of it, counted without regard to who asked; written to the file PLAYED_GPU_COUNTS at the end

struct Asked {
  std::atomic<int64_t> launches{0}, copies{0}, waits{0};
  ~Asked() {
    const char *path = std::getenv("PLAYED_GPU_COUNTS");
    std::FILE *file = path ? std::fopen(path, "w") : nullptr;
    if (!file) return;
    std::fprintf(file, "{\"launches\": %lld, \"copies\": %lld, \"waits\": %lld}\n", (long long)launches,
                 (long long)copies, (long long)waits);
    std::fclose(file);
  }
};

Asked asked;
thread_local int within = 0;  // the processor is at work for the device, and what it asks for is its own affair

struct Inside {
  Inside() { ++within; }
  ~Inside() { --within; }
};

void count(std::atomic<int64_t> &what) {
  if (within == 0) ++what;
}

void count_copy(const Tensor &from, const Tensor &to) {
  count(from.device() == to.device() ? asked.launches : to.is_cpu() ? asked.waits : asked.copies);
}

// ---- what libtorch asks devices

struct Guard final : public c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return KIND; }
  c10::Device getDevice() const override { return c10::Device(KIND, current); }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() < DEVICES, "invalid device ordinal");
    uncheckedSetDevice(device);
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) current = device.index();
  }
  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return DEVICES; }
  void record(void **, const c10::Stream &, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void *, const c10::Stream &) const override {}
  bool queryEvent(void *) const override { return true; }
  bool queryStream(const c10::Stream &) const override { return true; }
  void synchronizeStream(const c10::Stream &) const override {}
  void synchronizeEvent(void *) const override {}
  void synchronizeDevice(const c10::DeviceIndex) const override {}
};

C10_REGISTER_GUARD_IMPL(BACKEND, Guard);

}  // namespace

namespace at {  // where libtorch's registry wants them

#ifdef PLAYED_MPS
struct PlayedHooks final : public MPSHooksInterface {
  bool hasMPS() const override { return true; }
  Allocator *getMPSDeviceAllocator() const override { return &memory; }
  void deviceSynchronize() const override {}
  void emptyCache() const override {}
#else
struct PlayedHooks final : public CUDAHooksInterface {
  explicit PlayedHooks(CUDAHooksArgs) {}
  bool hasCUDA() const override { return true; }
  bool hasCUDART() const override { return true; }
  DeviceIndex current_device() const override { return current; }
  int getNumGPUs() const override { return DEVICES; }
  Allocator *getCUDADeviceAllocator() const override { return &memory; }
  void deviceSynchronize(DeviceIndex) const override {}
#endif
  void init() const override {}
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  bool isAvailable() const override { return true; }
  bool isBuilt() const override { return true; }
  DeviceIndex deviceCount() const override { return DEVICES; }
  DeviceIndex getCurrentDevice() const override { return current; }
  Device getDeviceFromPtr(void *) const override { return Device(KIND, current); }
};

#ifdef PLAYED_MPS
C10_REGISTER_TYPED_CLASS(MPSHooksRegistry, "MPSHooks", PlayedHooks)
#else
C10_REGISTER_TYPED_CLASS(CUDAHooksRegistry, "CUDAHooks", PlayedHooks)
#endif

}  // namespace at

namespace {

// ---- operations

const c10::DispatchKeySet KEYS(KEY);

c10::Device place(std::optional<at::Device> asked) { return asked.value_or(at::Device(KIND, current)); }

at::ScalarType allowed(std::optional<at::ScalarType> asked) {
  const at::ScalarType type = at::dtype_or_default(asked);
  TORCH_CHECK(KIND != c10::kMPS || type != at::kDouble, "Cannot convert a MPS Tensor to float64 dtype");
  return type;
}

Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout>,
             std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(place(device));
  return at::detail::empty_generic(size, &memory, KEYS, allowed(type), format);
}

Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> type,
                     std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard(place(device));
  return at::detail::empty_strided_generic(size, stride, &memory, KEYS, allowed(type));
}

// Only tensors without contents are resized here.
const Tensor &resize_empty(const Tensor &self, at::IntArrayRef size, std::optional<at::MemoryFormat>) {
  if (self.sizes() == size) return self;
  TORCH_CHECK(self.numel() == 0, "played device: a tensor with contents cannot be resized");
  const c10::DeviceGuard guard(self.device());
  const auto stride = c10::contiguous_strides(size);
  const size_t bytes = at::detail::computeStorageNbytes(size, stride, self.itemsize());
  const c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, memory.allocate(bytes), &memory, true);
  at::native::set_storage_meta__symint(const_cast<Tensor &>(self), storage, 0, c10::fromIntArrayRefSlow(size),
                                       c10::fromIntArrayRefSlow(stride));
  return self;
}

Tensor &copy_into(Tensor &self, const Tensor &source, bool) {
  count_copy(source, self);
  host_view(self).copy_(host_view(source));
  return self;
}

Tensor copy_from(const Tensor &source, const Tensor &self, bool) {
  count_copy(source, self);
  host_view(self).copy_(host_view(source));
  return self;
}

Tensor copy_from_and_resize(const Tensor &source, const Tensor &self) {
  return copy_from(source, resize_empty(self, source.sizes(), {}), false);
}

at::Scalar local_scalar(const Tensor &self) {
  count(asked.waits);
  return at::_local_scalar_dense(host_view(self));
}

Tensor as_strided(const Tensor &self, at::IntArrayRef size, at::IntArrayRef stride, std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

void check_same(std::optional<at::Device> &place, const Tensor &tensor, const std::string &operation) {
  if (!tensor.defined() || (tensor.is_cpu() && tensor.dim() == 0)) return;  // single numbers may come from anywhere
  TORCH_CHECK(!place || *place == tensor.device(), "Expected all tensors to be on the same device, but found at least "
              "two devices, ", *place, " and ", tensor.device(), "! (", operation, ")");
  place = tensor.device();
}

// Everything else.
void by_processor(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  std::optional<at::Device> place;
  for (size_t i = stack->size() - op.schema().arguments().size(); i < stack->size(); ++i) {
    const c10::IValue &value = (*stack)[i];
    if (value.isTensor()) check_same(place, value.toTensor(), op.schema().name());
    if (value.isTensorList())
      for (const Tensor &tensor : value.toTensorVector()) check_same(place, tensor, op.schema().name());
  }
  count(asked.launches);
  const Inside inside;
  at::native::cpu_fallback(op, stack);
}

Tensor sparse_product(const Tensor &sparse, const Tensor &dense) {
  std::optional<at::Device> place = sparse.device();
  check_same(place, dense, "sparse product");
  count(asked.launches);
  const Inside inside;
  const auto options = dense.options().device(at::kCPU).layout(at::kSparseCsr);
  const Tensor host = at::sparse_csr_tensor(host_view(sparse.crow_indices()), host_view(sparse.col_indices()),
                                            host_view(sparse.values()), sparse.sizes(), options);
  return at::mm(host, host_view(dense)).to(dense.device());
}

// out = alpha * sparse x dense + beta * self; with beta 0 what is in `self` plays no role.
Tensor &sparse_sum(const Tensor &self, const Tensor &sparse, const Tensor &dense, const at::Scalar &beta,
                   const at::Scalar &alpha, Tensor &out) {
  const Tensor product = sparse_product(sparse, dense);
  const Inside inside;
  const Tensor host = host_view(product) * alpha;
  host_view(out).copy_(beta.toDouble() == 0 ? host : host + host_view(self) * beta);
  return out;
}

TORCH_LIBRARY_IMPL(aten, BACKEND, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("resize_", &resize_empty);
  m.impl("copy_", &copy_into);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &local_scalar);
  m.impl("as_strided", &as_strided);
  m.impl("view", &at::native::view);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
}

TORCH_LIBRARY_IMPL(_, BACKEND, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&by_processor>()); }

TORCH_LIBRARY_IMPL(aten, SparseCsrCUDA, m) {
  m.impl("crow_indices", &at::native::crow_indices_sparse_csr);
  m.impl("col_indices", &at::native::col_indices_sparse_csr);
  m.impl("values", &at::native::values_sparse_csr);
  m.impl("_nnz", &at::native::_nnz_sparse_csr);
  m.impl("mm", &sparse_product);
  m.impl("addmm.out", &sparse_sum);
}

}  // namespace
