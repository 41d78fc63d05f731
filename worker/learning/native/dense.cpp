// Dense maps of rows, y = x W^T + b, forward and backward. Floats on the processor take the loops of `gemm.h` where those
// give the bits of libtorch's own product on this machine, which is tried once; everything else is libtorch's.

#include "dense.h"
#include "gemm.h"
#include "shared.h"

#include <cstring>

using at::Tensor;
using togl::Maybe;
using togl::View;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

constexpr int64_t LEAST = 16;  // rows and columns of a product; for smaller ones MKL adds in other orders

View view_of(const Tensor &x) { return {x.const_data_ptr<float>(), x.stride(0), x.stride(1)}; }

#ifdef TOGL_WIDE
Tensor wide(const Tensor &a, const Tensor &b, const Tensor &bias) {
  Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  togl::wide_product(a.size(0), b.size(1), a.size(1), view_of(a), view_of(b),
                     bias.defined() ? bias.const_data_ptr<float>() : nullptr, out.data_ptr<float>());
  return out;
}
#endif

Tensor by_libtorch(const Tensor &a, const Tensor &b, const Tensor &bias) {
  return bias.defined() ? at::addmm(bias, a, b) : at::mm(a, b);
}

// Whether both ways give the same bits here, for products of every kind: one chain, two halves, many chains, tails.
bool agree() {
#ifdef TOGL_WIDE
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl"))
    return false;
  const at::NoGradGuard no_grad;
  const int64_t shapes[][3] = {{640, 146, 146}, {16, 16, 7},   {146, 146, 640}, {33, 73, 193}, {67, 49, 300},
                               {29, 138, 384},  {20, 36, 73},  {146, 32, 577},  {25, 17, 192}, {601, 32, 33}};
  uint32_t state = 1;
  const auto numbers = [&state](int64_t rows, int64_t columns) {
    Tensor x = at::empty({rows, columns}, at::kFloat);
    for (float *to = x.data_ptr<float>(), *end = to + x.numel(); to < end; ++to) {
      state = state * 1664525u + 1013904223u;
      *to = (float)(int32_t)state * 0x1p-31f;
    }
    return x;
  };
  for (const auto &[m, n, k] : shapes) {
    const Tensor a = numbers(m, k), b = numbers(n, k), c = numbers(k, n), d = numbers(k, m), bias = numbers(1, n)[0];
    const auto same = [](const Tensor &x, const Tensor &y) {
      return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
    };
    if (!same(wide(a, b.t(), bias), at::addmm(bias, a, b.t())) || !same(wide(a, c, {}), at::mm(a, c)) ||
        !same(wide(d.t(), c, {}), at::mm(d.t(), c)))
      return false;
  }
  return true;
#else
  return false;
#endif
}

bool trusted() {
  static const bool same = agree();
  return same;
}

Tensor product(const Tensor &a, const Tensor &b, const Tensor &bias = {}) {
#ifdef TOGL_WIDE
  if (at::get_num_threads() == 1 && a.size(0) >= LEAST && b.size(1) >= LEAST && a.size(1) > 0 && trusted())
    return wide(a, b, bias);
#endif
  return by_libtorch(a, b, bias);
}

struct Dense : public torch::autograd::Function<Dense> {
  static Tensor forward(AutogradContext *ctx, const Tensor &x, const Tensor &weight, const Maybe &bias, bool relu) {
    Tensor out;
    if (relu && bias && x.is_cuda()) {
      out = at::_addmm_activation(*bias, x, weight.t());
    } else {
      out = x.is_cpu() ? product(x, weight.t(), bias.value_or(Tensor())) : by_libtorch(x, weight.t(), bias.value_or(Tensor()));
      if (relu) out.relu_();
    }
    ctx->save_for_backward({x, weight, relu ? out : Tensor()});
    ctx->saved_data["relu"] = relu;
    ctx->saved_data["bias"] = bias.has_value();
    return out;
  }

  static variable_list backward(AutogradContext *ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor g = ctx->saved_data["relu"].toBool() ? at::threshold_backward(grads[0], saved[2], 0) : grads[0];
    const auto times = [&g](const Tensor &a, const Tensor &b) { return g.is_cpu() ? product(a, b) : at::mm(a, b); };
    Tensor dx, dweight, dbias;
    if (ctx->needs_input_grad(0)) dx = times(g, saved[1]);
    if (ctx->needs_input_grad(1)) dweight = times(g.t(), saved[0]);
    if (ctx->saved_data["bias"].toBool() && ctx->needs_input_grad(2)) dbias = g.sum(0);
    return {dx, dweight, dbias, Tensor()};
  }
};

}  // namespace

extern "C" {

char *togl_dense(void *input, void *weight, void *bias, int32_t relu, void **out) {
  return togl::guarded([&] {
    const Tensor x = togl::borrow(input), w = togl::borrow(weight);
    const Maybe b = togl::borrow_maybe(bias);
    if (x.scalar_type() == at::kFloat && x.dim() == 2 && x.is_contiguous() && w.is_contiguous()) {
      *out = new Tensor(Dense::apply(x, w, b, relu != 0));
    } else {
      const Tensor y = at::linear(x, w, b);
      *out = new Tensor(relu ? y.relu() : y);
    }
  });
}
}
