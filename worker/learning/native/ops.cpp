// Native operations of the learning crate; `ops.h` says what each one promises.
// Floats on the CPU take the loops in this file (one thread, fixed order of additions); every other type and
// device takes the ATen composition beside them, so both must compute the same function.

#include "kernels.h"
#include "devices.h"
#include "ops.h"
#include "shared.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <ATen/ATen.h>
#include <ATen/Version.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/GradMode.h>
#include <torch/version.h>

using namespace togl;
using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

namespace {

// ---- sparse product

// libtorch warns in every process that compressed rows are a young feature of it; the reader of a log cannot act on that.
struct Silence : public c10::WarningHandler {
  void process(const c10::Warning &) override {}
};

Tensor compressed_rows(const Tensor &start, const Tensor &columns, const Tensor &weights, at::IntArrayRef shape) {
  Silence silence;
  const c10::WarningUtils::WarningHandlerGuard guard(&silence);
  return at::_sparse_csr_tensor_unsafe(start, columns, weights, shape, weights.options().layout(at::kSparseCsr));
}

Tensor multiply(const Tensor &start, const Tensor &columns, const Tensor &values, const Tensor &compressed, const Tensor &x) {
  const int64_t rows = start.size(0) - 1, width = x.size(1);
  if (plain(x)) {
    const Tensor dense = x.contiguous();
    Tensor out = at::empty({rows, width}, x.options());
    sparse_rows(rows, width, start.const_data_ptr<int64_t>(), columns.const_data_ptr<int64_t>(),
                values.defined() ? values.const_data_ptr<float>() : nullptr, dense.const_data_ptr<float>(),
                out.data_ptr<float>());
    return out;
  }
  if (compressed.defined() && compressed.scalar_type() == x.scalar_type()) return times_compressed(compressed, x);
  const Tensor weights = values.defined() ? values.to(x.scalar_type()) : at::ones(columns.sizes(), x.options());
  const Tensor counts = start.slice(0, 1) - start.slice(0, 0, rows);
  const Tensor row_of = at::repeat_interleave(counts);
  const Tensor messages = x.index_select(0, columns) * weights.unsqueeze(1);
  return at::zeros({rows, width}, x.options()).index_add(0, row_of, messages);
}

struct SparseProduct : public torch::autograd::Function<SparseProduct> {
  static Tensor forward(AutogradContext *ctx, const Tensor &x, const Tensor &start, const Tensor &columns,
                        const Maybe &values, const Maybe &compressed, const Tensor &t_start, const Tensor &t_columns,
                        const Maybe &t_values, const Maybe &t_compressed) {
    TORCH_CHECK(x.dim() == 2 && x.size(0) == t_start.size(0) - 1, "sparse product: the matrix has ",
                t_start.size(0) - 1, " columns, the dense operand has shape ", x.sizes());
    ctx->save_for_backward(
        {t_start, t_columns, t_values.value_or(Tensor()), t_compressed.value_or(Tensor())});
    return multiply(start, columns, values.value_or(Tensor()), compressed.value_or(Tensor()), x);
  }
  static variable_list backward(AutogradContext *ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    Tensor grad = multiply(saved[0], saved[1], saved[2], saved[3], grads[0]);
    return {grad, Tensor(), Tensor(), Tensor(), Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

// ---- batch norm

struct BatchNorm : public torch::autograd::Function<BatchNorm> {
  static Tensor forward(AutogradContext *ctx, const Tensor &input, const Tensor &weight, const Tensor &bias,
                        const Maybe &maybe_residual, Norm norm) {
    const Tensor residual = maybe_residual.value_or(Tensor());
    const Tensor x = input.contiguous();
    const int64_t rows = x.size(0), width = x.size(1);
    Tensor stats = at::empty({4, width}, x.options());  // mean, 1/sd, scale, shift
    float *mean = stats.data_ptr<float>(), *inverse = mean + width, *scale = inverse + width, *shift = scale + width;
    float *running_mean = norm.running_mean.data_ptr<float>(), *running_var = norm.running_var.data_ptr<float>();
    if (norm.training) {
      std::vector<double> m(width), v(width);
      std::vector<float> part(2 * width);
      column_moments(rows, width, x.const_data_ptr<float>(), m.data(), v.data(), part.data(), part.data() + width);
      const double unbias = rows > 1 ? (double)rows / (double)(rows - 1) : 1.0;
      for (int64_t j = 0; j < width; ++j) {
        mean[j] = (float)m[j];
        inverse[j] = (float)(1.0 / std::sqrt(v[j] + norm.eps));
        running_mean[j] = (float)(norm.momentum * m[j] + (1.0 - norm.momentum) * running_mean[j]);
        running_var[j] = (float)(norm.momentum * v[j] * unbias + (1.0 - norm.momentum) * running_var[j]);
      }
    } else {
      for (int64_t j = 0; j < width; ++j) {
        mean[j] = running_mean[j];
        inverse[j] = (float)(1.0 / std::sqrt((double)running_var[j] + norm.eps));
      }
    }
    const float *w = weight.const_data_ptr<float>(), *b = bias.const_data_ptr<float>();
    for (int64_t j = 0; j < width; ++j) {
      scale[j] = w[j] * inverse[j];
      shift[j] = b[j];
    }
    const Tensor add = residual.defined() ? residual.contiguous() : residual;
    Tensor out = at::empty_like(x);
    scale_rows(rows, width, x.const_data_ptr<float>(), mean, scale, shift,
               add.defined() ? add.const_data_ptr<float>() : nullptr, norm.relu, out.data_ptr<float>());
    ctx->save_for_backward({x, stats});
    ctx->saved_data["training"] = norm.training;
    ctx->saved_data["relu"] = norm.relu;
    ctx->saved_data["residual"] = residual.defined();
    return out;
  }

  static variable_list backward(AutogradContext *ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor x = saved[0], stats = saved[1], g = grads[0].contiguous();
    const int64_t rows = x.size(0), width = x.size(1);
    const float *mean = stats.const_data_ptr<float>(), *inverse = mean + width, *scale = inverse + width,
                *shift = scale + width;
    Tensor dx = at::empty_like(x), parameters = at::empty({2, width}, x.options());
    std::vector<double> sum(width), dot(width);
    std::vector<float> part(2 * width), coefficients(3 * width);
    gradient_moments(rows, width, x.const_data_ptr<float>(), g.const_data_ptr<float>(), scale, shift, mean,
                     ctx->saved_data["relu"].toBool(), dx.data_ptr<float>(), sum.data(), dot.data(), part.data(),
                     part.data() + width);
    float *dweight = parameters.data_ptr<float>(), *dbias = dweight + width;
    float *a = coefficients.data(), *b = a + width, *c = b + width;
    const bool training = ctx->saved_data["training"].toBool();
    for (int64_t j = 0; j < width; ++j) {
      dweight[j] = (float)(dot[j] * inverse[j]);
      dbias[j] = (float)sum[j];
      a[j] = scale[j];
      const double slope = training ? -(double)scale[j] * inverse[j] * inverse[j] * dot[j] / (double)rows : 0.0;
      const double level = training ? -(double)scale[j] * sum[j] / (double)rows : 0.0;
      b[j] = (float)slope;
      c[j] = (float)level;
    }
    combine_rows(rows, width, x.const_data_ptr<float>(), mean, a, b, c, dx.data_ptr<float>());
    const Tensor dresidual = ctx->saved_data["residual"].toBool() ? grads[0] : Tensor();
    return {dx, parameters.select(0, 0), parameters.select(0, 1), dresidual, Tensor()};
  }
};

Tensor composed_batch_norm(const Norm &norm, const Tensor &x, const Tensor &residual) {
  Tensor y;
  if (norm.training) {
    const Tensor mean = x.mean(0), var = x.var(0, false);
    const double rows = (double)x.size(0), unbias = rows > 1 ? rows / (rows - 1) : 1.0;
    {
      at::NoGradGuard no_grad;
      norm.running_mean.mul_(1 - norm.momentum).add_(mean, norm.momentum);
      norm.running_var.mul_(1 - norm.momentum).add_(var, norm.momentum * unbias);
    }
    y = (x - mean) * (var + norm.eps).rsqrt() * norm.weight + norm.bias;
  } else {
    y = (x - norm.running_mean) * (norm.running_var + norm.eps).rsqrt() * norm.weight + norm.bias;
  }
  if (norm.relu) y = y.relu();
  return residual.defined() ? y + residual : y;
}

// ---- coordinate functions

Units units_of(const variable_list &p) {
  const auto data = [&p](int index) { return p[index].const_data_ptr<float>(); };
  return {p[0].size(0), data(0), data(1), data(2), data(3), data(4), data(5), data(6)};
}

struct Coordinates : public torch::autograd::Function<Coordinates> {
  static Tensor forward(AutogradContext *ctx, const Tensor &birth, const Tensor &death, const Tensor &p0,
                        const Tensor &p1, const Tensor &p2, const Tensor &p3, const Tensor &p4, const Tensor &p5,
                        const Tensor &p6) {
    const Tensor b = birth.contiguous(), d = death.contiguous();
    const variable_list parameters = {p0, p1, p2, p3, p4, p5, p6};
    const Units units = units_of(parameters);
    Tensor out = at::empty({b.size(0), b.size(1), 4 * units.q}, b.options());
    coordinates_forward(b.numel(), units, b.const_data_ptr<float>(), d.const_data_ptr<float>(), out.data_ptr<float>());
    ctx->save_for_backward({p0, p1, p2, p3, p4, p5, p6, b, d, out});
    return out;
  }

  static variable_list backward(AutogradContext *ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Units units = units_of(saved);
    const Tensor b = saved[7], d = saved[8], out = saved[9], g = grads[0].contiguous();
    Tensor db = at::empty_like(b), dd = at::empty_like(d);
    std::vector<double> du(7 * units.q + 1, 0.0);
    coordinates_backward(b.numel(), units, b.const_data_ptr<float>(), d.const_data_ptr<float>(),
                         out.const_data_ptr<float>(), g.const_data_ptr<float>(), db.data_ptr<float>(),
                         dd.data_ptr<float>(), du.data());
    variable_list result = {db, dd};
    const double *from = du.data();
    for (int p = 0; p < 7; ++p) {
      Tensor to = at::empty_like(saved[p]);
      float *data = to.data_ptr<float>();
      for (int64_t j = 0; j < to.numel(); ++j) data[j] = (float)*from++;
      result.push_back(to);
    }
    return result;
  }
};

// ---- Adam

void adam_step(const togl_adam_settings &s, Tensor p, Tensor g, Tensor m, Tensor v) {
  const double correction1 = 1.0 - std::pow(s.beta1, (double)s.step);
  const double correction2 = 1.0 - std::pow(s.beta2, (double)s.step);
  const double step_size = s.lr / correction1, root = std::sqrt(correction2);
  if (plain(p) && p.is_contiguous()) {
    const Tensor grad = g.contiguous();
    adam_rows(p.numel(), p.data_ptr<float>(), grad.const_data_ptr<float>(), m.data_ptr<float>(), v.data_ptr<float>(),
              (float)s.beta1, (float)s.beta2, (float)s.weight_decay, (float)step_size, (float)root, (float)s.eps);
    return;
  }
  if (s.weight_decay != 0.0) g = g.add(p, s.weight_decay);
  m.lerp_(g, 1.0 - s.beta1);
  v.mul_(s.beta2).addcmul_(g, g, 1.0 - s.beta2);
  p.addcdiv_(m, v.sqrt().div_(root).add_(s.eps), -step_size);
}

// ---- memory of devices

// The allocator that counts for a kind of device, once it is in use.
c10::DeviceAllocator *counting_allocator(int cuda) {
  auto *allocator = dynamic_cast<c10::DeviceAllocator *>(c10::GetAllocator(cuda ? c10::kCUDA : c10::kMPS));
  return allocator && allocator->initialized() ? allocator : nullptr;
}

}  // namespace

extern "C" {

void togl_restart_memory(int cuda, int index) {
  free(guarded([&] {
    if (auto *allocator = counting_allocator(cuda)) {
      allocator->emptyCache();
      allocator->resetPeakStats((c10::DeviceIndex)index);
    }
  }));
}

int64_t togl_peak_memory(int cuda, int index) {
  int64_t bytes = -1;
  free(guarded([&] {
    const auto total = (size_t)c10::CachingAllocator::StatType::AGGREGATE;
    if (auto *allocator = counting_allocator(cuda))
      bytes = allocator->getDeviceStats((c10::DeviceIndex)index).reserved_bytes[total].peak;
  }));
  return bytes;
}

char *togl_sparse_product(const togl_sparse *a, void *x, void **out) {
  return guarded([&] {
    *out = new Tensor(SparseProduct::apply(borrow(x), borrow(a->row_start), borrow(a->columns), borrow_maybe(a->values),
                                           borrow_maybe(a->compressed), borrow(a->t_row_start), borrow(a->t_columns),
                                           borrow_maybe(a->t_values), borrow_maybe(a->t_compressed)));
  });
}

char *togl_batch_norm(const togl_norm *n, void *input, void *add, void **out) {
  return guarded([&] {
    const Tensor x = borrow(input);
    const Maybe residual = borrow_maybe(add);
    TORCH_CHECK(x.dim() == 2, "batch norm: rows are expected, not shape ", x.sizes());
    TORCH_CHECK(!residual || residual->sizes() == x.sizes(), "batch norm: the residual has another shape");
    TORCH_CHECK(borrow(n->weight).numel() == x.size(1), "batch norm: the width has changed to ", x.size(1));
    const Norm norm = {borrow(n->weight), borrow(n->bias), borrow(n->running_mean), borrow(n->running_var),
                       n->momentum, n->eps, n->training != 0, n->relu != 0};
    if (plain(x))
      *out = new Tensor(BatchNorm::apply(x, norm.weight, norm.bias, residual, norm));
    else if (!x.is_cpu() && norm.training && x.size(0) > 1)
      *out = new Tensor(device_batch_norm(norm, x, residual));
    else
      *out = new Tensor(composed_batch_norm(norm, x, residual.value_or(Tensor())));
  });
}

char *togl_coordinate_functions(const togl_coordinates *f, void *birth, void *death, void **out) {
  return guarded([&] {
    TORCH_CHECK(borrow(birth).sizes() == borrow(death).sizes(), "coordinate functions: births and deaths differ in shape");
    *out = new Tensor(Coordinates::apply(borrow(birth), borrow(death), borrow(f->triangle), borrow(f->gauss_centre),
                                         borrow(f->gauss_width), borrow(f->line_weight), borrow(f->line_bias),
                                         borrow(f->hat_centre), borrow(f->hat_radius)));
  });
}

char *togl_adam(const togl_adam_settings *settings, int64_t count, void **parameters, void **first, void **second,
                void *step) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    if (step) return adam_at_once(*settings, count, parameters, first, second, borrow(step));
    for (int64_t i = 0; i < count; ++i) {
      Tensor p = borrow(parameters[i]);
      if (!p.grad().defined()) continue;
      adam_step(*settings, p, p.grad(), borrow(first[i]), borrow(second[i]));
      p.mutable_grad().reset();
    }
  });
}

char *togl_backward(void *out, void *gradient) {
  return guarded([&] { borrow(out).backward(borrow(gradient)); });
}

char *togl_compressed_rows(void *start, void *columns, void *values, int64_t width, void **out) {
  return guarded([&] {
    const Tensor rows = borrow(start), entries = borrow(columns);
    *out = new Tensor(compressed_rows(rows, entries, borrow(values), {rows.size(0) - 1, width}));
  });
}

void togl_keep_memory(void) {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
  mallopt(M_TOP_PAD, 16 << 20);
#endif
}

char *togl_libtorch_version(void) { return strdup(TORCH_VERSION); }

char *togl_cpu_capability(void) { return strdup(at::get_cpu_capability().c_str()); }
}
