// What the native operations do on devices, where every operation of libtorch costs a launch: as few as there are.
// Owns those compositions. None of it runs on the processor, whose bits it must not touch.
#pragma once

#include "ops.h"
#include "shared.h"

namespace togl {

struct Norm {
  at::Tensor weight, bias, running_mean, running_var;
  double momentum, eps;
  bool training, relu;
};

// A x of compressed rows: one launch.
inline at::Tensor times_compressed(const at::Tensor &rows, const at::Tensor &x) {
  at::Tensor out = at::empty({rows.size(0), x.size(1)}, x.options());
  at::addmm_out(out, out, rows, x, 0, 1);
  return out;
}

// act(batch_norm(x)) [+ residual] in training, for at least two rows.
at::Tensor device_batch_norm(const Norm &norm, const at::Tensor &x, const Maybe &residual);

// One step of Adam for all parameters that have a gradient.
void adam_at_once(const togl_adam_settings &settings, int64_t count, void **parameters, void **first, void **second,
                  const at::Tensor &step);

}  // namespace togl
