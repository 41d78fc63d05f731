// Counts what a training step asks of a device: launches, copies and waits, by the part of the network that asked.
// Owns the rules of counting (docs/benchmarks.md); `count.h` says how it is used. Changes nothing that is computed.

#include "count.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <ATen/SequenceNumber.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

namespace {

enum class What { Nothing, Launch, Copy };

// What is known of an operation without looking at its tensors.
struct Kind {
  What what;
  bool waits;  // the host reads what the device has computed
};

struct Key {
  std::string part, phase, kind, name;
  bool operator<(const Key &other) const {
    return std::tie(part, phase, kind, name) < std::tie(other.part, other.phase, other.kind, other.name);
  }
};

std::mutex lock;
std::map<Key, int64_t> counts;
std::unordered_map<std::string, Kind> kinds;
std::vector<std::pair<uint64_t, std::string>> parts;  // from this number of an autograd node on, this part
c10::DeviceType counted = c10::DeviceType::CPU;
at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;

thread_local std::string part = "gradient sums";  // what no part asks for: the threads of the backward pass
thread_local const char *phase = "backward";
thread_local int64_t depth = 0;  // operations that were counted and have not ended

constexpr const char *FREE[] = {"aten::resize_", "aten::set_", "aten::_sparse_csr_tensor_unsafe",
                                "aten::_sparse_compressed_tensor_unsafe", "aten::_sparse_coo_tensor_unsafe"};
constexpr const char *WAITING[] = {"aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select",
                                   "aten::_unique2", "aten::repeat_interleave", "aten::equal"};

template <size_t N> bool among(const std::string &name, const char *const (&list)[N]) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

// An operation that only asks others launches nothing itself: those others are counted.
bool is_composite(const c10::OperatorHandle &op) {
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) return true;
  const auto backend = counted == c10::DeviceType::MPS ? c10::DispatchKey::MPS : c10::DispatchKey::CUDA;
  // Where the half of libtorch for the device is not there, its processor half knows which operations have a kernel.
  if (op.hasKernelForDispatchKey(backend) || op.hasKernelForDispatchKey(c10::DispatchKey::CPU)) return false;
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
}

Kind judge(const c10::OperatorName &name) {
  if (name.name == "aten::copy_" || name.name == "aten::_copy_from") return {What::Copy, false};
  const bool waits = among(name.name, WAITING);
  if (name.name.rfind("aten::empty", 0) == 0 || name.name == "aten::detach" || among(name.name, FREE))
    return {What::Nothing, false};
  const auto op = c10::Dispatcher::singleton().findOp(name);
  if (!op) return {What::Nothing, false};
  for (const auto &result : op->schema().returns())
    if (result.alias_info() && !result.alias_info()->isWrite()) return {What::Nothing, false};  // a view
  return {is_composite(*op) ? What::Nothing : What::Launch, waits};
}

bool on_device(const c10::IValue &value) {
  if (value.isTensor()) return value.toTensor().defined() && value.toTensor().device().type() == counted;
  if (!value.isTensorList()) return false;
  const auto list = value.toTensorVector();
  return std::any_of(list.begin(), list.end(),
                     [](const at::Tensor &tensor) { return tensor.defined() && tensor.device().type() == counted; });
}

struct Seen : public at::ObserverContext {
  bool counts = false;  // an operation that was counted
  bool node = false;    // a node of the backward pass
  std::string part;
  const char *phase = nullptr;
};

void add(const char *kind, const std::string &name) {
  const std::lock_guard<std::mutex> hold(lock);
  ++counts[{part, phase, kind, name}];
}

// Which way a copy goes, and whether the host waits for its end.
const char *direction(c10::ArrayRef<const c10::IValue> inputs, bool from_first) {
  const auto &to = inputs[from_first ? 1 : 0].toTensor(), &from = inputs[from_first ? 0 : 1].toTensor();
  const bool blocks = inputs.size() < 3 || !inputs[2].isBool() || !inputs[2].toBool();
  if (to.device() == from.device()) return "launch";
  if (to.is_cpu()) return blocks ? "wait" : "copy back";
  return blocks ? "blocking copy" : "copy";
}

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction &function) {
  auto seen = std::make_unique<Seen>();
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    seen->node = true;
    seen->part = part;
    seen->phase = phase;
    phase = "backward";
    const std::lock_guard<std::mutex> hold(lock);
    const auto number = (uint64_t)function.seqNr();
    const auto after = std::upper_bound(parts.begin(), parts.end(), number,
                                        [](uint64_t n, const auto &entry) { return n < entry.first; });
    const bool sums = number > (uint64_t)1 << 62 || after == parts.begin();  // a parameter has no number
    part = sums ? "gradient sums" : std::prev(after)->second;
    return seen;
  }
  const auto name = function.operator_name();
  if (!name) return seen;
  Kind kind;
  {
    const std::lock_guard<std::mutex> hold(lock);
    const auto full = name->name + "." + name->overload_name;
    const auto known = kinds.find(full);
    kind = known != kinds.end() ? known->second : kinds.emplace(full, judge(*name)).first->second;
  }
  const auto inputs = function.inputs();
  if (kind.what == What::Nothing || std::none_of(inputs.begin(), inputs.end(), on_device)) return seen;
  const char *word = kind.waits                  ? "wait"
                     : kind.what == What::Copy ? direction(inputs, name->name == "aten::_copy_from")
                                               : "launch";
  // A wait that computes something first is a launch as well.
  if (depth == 0 && kind.waits && name->name != "aten::_local_scalar_dense") add("launch", name->name);
  add(depth == 0 ? word : "nested", name->name);
  seen->counts = true;
  ++depth;
  return seen;
}

void leave(const at::RecordFunction &, at::ObserverContext *context) {
  auto *seen = static_cast<Seen *>(context);
  if (!seen) return;
  if (seen->counts) --depth;
  if (seen->node) {
    part = seen->part;
    phase = seen->phase;
  }
}

}  // namespace

extern "C" {

void togl_count_begin(int cuda) {
  {
    const std::lock_guard<std::mutex> hold(lock);
    counts.clear();
    kinds.clear();
    parts.clear();
    counted = cuda ? c10::DeviceType::CUDA : c10::DeviceType::MPS;
  }
  using at::RecordScope;
  handle = at::addGlobalCallback(at::RecordFunctionCallback(&enter, &leave)
                                     .needsInputs(true)
                                     .scopes({RecordScope::FUNCTION, RecordScope::BACKWARD_FUNCTION}));
}

void togl_count_part(const char *name) {
  part = name;
  phase = "forward";
  const std::lock_guard<std::mutex> hold(lock);
  parts.emplace_back(at::sequence_number::peek(), name);
}

char *togl_count_end(void) {
  at::removeCallback(handle);
  const std::lock_guard<std::mutex> hold(lock);
  std::string text;
  for (const auto &[key, count] : counts)
    text += key.part + "\t" + key.phase + "\t" + key.kind + "\t" + key.name + "\t" + std::to_string(count) + "\n";
  return strdup(text.c_str());
}
}
