// Compositions for devices; `devices.h` says what each one promises.

#include "devices.h"

#include <array>
#include <vector>

using at::Tensor;
using togl::Maybe;
using togl::Norm;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

constexpr std::array<bool, 3> ALL = {true, true, true};

struct Normalised {
  Tensor mean, inverse, out;
};

Normalised normalise(Norm &norm, const Tensor &x) {
  // This form says which of its tensors it writes to, so that libtorch brings the running statistics back.
  auto [y, mean, inverse] = at::_native_batch_norm_legit(x, norm.weight, norm.bias, norm.running_mean, norm.running_var,
                                                         true, norm.momentum, norm.eps);
  if (norm.relu) y.relu_();
  return {mean, inverse, y};
}

struct DeviceNorm : public torch::autograd::Function<DeviceNorm> {
  static Tensor forward(AutogradContext *ctx, const Tensor &x, const Tensor &weight, const Tensor &bias,
                        const Maybe &residual, Norm norm) {
    const auto [mean, inverse, y] = normalise(norm, x);
    ctx->save_for_backward({x, weight, mean, inverse, norm.relu ? y : Tensor()});
    ctx->saved_data["eps"] = norm.eps;
    ctx->saved_data["residual"] = residual.has_value();
    return residual ? y.add(*residual) : y;
  }

  static variable_list backward(AutogradContext *ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor g = saved[4].defined() ? at::threshold_backward(grads[0], saved[4], 0) : grads[0].contiguous();
    const auto [dx, dweight, dbias] = at::native_batch_norm_backward(
        g, saved[0], saved[1], {}, {}, saved[2], saved[3], true, ctx->saved_data["eps"].toDouble(), ALL);
    return {dx, dweight, dbias, ctx->saved_data["residual"].toBool() ? grads[0] : Tensor(), Tensor()};
  }
};

// A whole graph convolution: act(batch_norm(A x W^T + b)) [+ x]. The norm takes away whatever b adds, so that the gradient
// of b is 0, and it is not computed.
struct Convolution : public torch::autograd::Function<Convolution> {
  static Tensor forward(AutogradContext *ctx, const Tensor &x, const Tensor &weight, const Tensor &bias,
                        const Tensor &norm_weight, const Tensor &norm_bias, const Tensor &rows, const Tensor &transposed,
                        Norm norm, bool residual) {
    const Tensor sums = togl::times_compressed(rows, x);
    const Tensor z = at::addmm(bias, sums, weight.t());
    const auto [mean, inverse, y] = normalise(norm, z);
    ctx->save_for_backward({sums, weight, z, norm_weight, mean, inverse, norm.relu ? y : Tensor(), transposed});
    ctx->saved_data["eps"] = norm.eps;
    ctx->saved_data["residual"] = residual;
    return residual ? y.add(x) : y;
  }

  static variable_list backward(AutogradContext *ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor up = grads[0].contiguous();
    const Tensor g = saved[6].defined() ? at::threshold_backward(up, saved[6], 0) : up;
    const auto [dz, dnorm, dshift] = at::native_batch_norm_backward(
        g, saved[2], saved[3], {}, {}, saved[4], saved[5], true, ctx->saved_data["eps"].toDouble(), ALL);
    const Tensor dweight = dz.t().mm(saved[0]), back = dz.mm(saved[1]);
    Tensor dx = at::empty_like(up);
    if (ctx->saved_data["residual"].toBool())
      at::addmm_out(dx, up, saved[7], back, 1, 1);
    else
      at::addmm_out(dx, dx, saved[7], back, 0, 1);
    return {dx, dweight, Tensor(), dnorm, dshift, Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

// Values at flat indices, the last of which stands for 0: the pairs of all vertices, and those of all kept edges.
struct AllPairs : public torch::autograd::Function<AllPairs> {
  static variable_list forward(AutogradContext *ctx, const Tensor &values, const Tensor &zero, const Tensor &index,
                               int64_t vertices) {
    const Tensor flat = at::cat({values.reshape({-1}), zero}, 0).index_select(0, index);
    const int64_t width = 2 * values.size(1);
    ctx->save_for_backward({index});
    ctx->saved_data["rows"] = values.size(0);
    ctx->saved_data["columns"] = values.size(1);
    ctx->saved_data["split"] = vertices * width;
    return {flat.narrow(0, 0, vertices * width).view({vertices, width}),
            flat.narrow(0, vertices * width, flat.size(0) - vertices * width).view({-1, width})};
  }

  static variable_list backward(AutogradContext *ctx, variable_list grads) {
    const Tensor index = ctx->get_saved_variables()[0];
    const int64_t rows = ctx->saved_data["rows"].toInt(), columns = ctx->saved_data["columns"].toInt(),
                  split = ctx->saved_data["split"].toInt(), count = rows * columns;
    const Tensor &known = grads[0].defined() ? grads[0] : grads[1];
    Tensor sum = at::zeros({count + 1}, known.options());
    if (grads[0].defined()) sum.index_add_(0, index.narrow(0, 0, split), grads[0].reshape({-1}));
    if (grads[1].defined() && grads[1].numel() > 0)
      sum.index_add_(0, index.narrow(0, split, index.size(0) - split), grads[1].reshape({-1}));
    return {sum.narrow(0, 0, count).view({rows, columns}), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

namespace togl {

Tensor device_batch_norm(const Norm &norm, const Tensor &x, const Maybe &residual) {
  return DeviceNorm::apply(x.contiguous(), norm.weight, norm.bias, residual, norm);
}

void adam_at_once(const togl_adam_settings &s, int64_t count, void **parameters, void **first, void **second,
                  const Tensor &step) {
  std::vector<Tensor> p, g, m, v;
  for (int64_t i = 0; i < count; ++i) {
    Tensor parameter = borrow(parameters[i]);
    if (!parameter.grad().defined()) continue;
    g.push_back(parameter.grad());
    p.push_back(parameter);
    m.push_back(borrow(first[i]));
    v.push_back(borrow(second[i]));
  }
  if (p.empty()) return;
  const std::vector<Tensor> steps(p.size(), step);
  at::_fused_adam_(p, g, m, v, {}, steps, s.lr, s.beta1, s.beta2, s.weight_decay, s.eps, false, false);
  for (Tensor &parameter : p) parameter.mutable_grad().reset();
}

}  // namespace togl

extern "C" {

char *togl_graph_convolution(const togl_convolution *c, const togl_norm *n, void *x, void **out) {
  return togl::guarded([&] {
    const Norm norm = {togl::borrow(n->weight), togl::borrow(n->bias), togl::borrow(n->running_mean),
                       togl::borrow(n->running_var), n->momentum, n->eps, n->training != 0, n->relu != 0};
    *out = new Tensor(Convolution::apply(togl::borrow(x), togl::borrow(c->weight), togl::borrow(c->bias), norm.weight,
                                         norm.bias, togl::borrow(c->rows), togl::borrow(c->transposed), norm,
                                         c->residual != 0));
  });
}

char *togl_all_pairs(void *values, void *zero, void *index, int64_t vertices, void **dim0, void **dim1) {
  return togl::guarded([&] {
    const auto pairs = AllPairs::apply(togl::borrow(values), togl::borrow(zero), togl::borrow(index), vertices);
    *dim0 = new Tensor(pairs[0]);
    *dim1 = new Tensor(pairs[1]);
  });
}
}
