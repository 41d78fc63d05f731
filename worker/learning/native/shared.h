// What the native operations have in common: tensors that cross the border, errors as text, who takes the fast loops.
#pragma once

#include <cstring>
#include <exception>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

namespace togl {

// Autograd functions take an absent tensor as an empty optional, not as an undefined tensor.
using Maybe = std::optional<at::Tensor>;

inline at::Tensor borrow(void *pointer) { return *static_cast<at::Tensor *>(pointer); }

inline Maybe borrow_maybe(void *pointer) { return pointer ? Maybe(borrow(pointer)) : Maybe(); }

template <class Work> char *guarded(Work work) {
  try {
    work();
    return nullptr;
  } catch (const c10::Error &error) {
    return strdup(error.what_without_backtrace());
  } catch (const std::exception &error) {
    return strdup(error.what());
  }
}

// Floats on the processor take loops over plain arrays; every other type and device takes libtorch's operations.
inline bool plain(const at::Tensor &x) { return x.is_cpu() && x.scalar_type() == at::kFloat; }

}  // namespace togl
