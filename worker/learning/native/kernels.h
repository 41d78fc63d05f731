// Loops over plain arrays of floats: the arithmetic of the native operations, without libtorch. One thread, fixed
// order of additions, so equal processors give equal bits. Column loops are innermost: that is what vectorises.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define TOGL_HOT __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TOGL_HOT
#endif

#define TOGL_ONLY __restrict__  // nothing else points there, so loops need no checks

namespace togl {

// ---- sparse product

TOGL_HOT static void sparse_rows(int64_t rows, int64_t width, const int64_t *TOGL_ONLY start,
                                 const int64_t *TOGL_ONLY columns, const float *TOGL_ONLY values,
                                 const float *TOGL_ONLY x, float *TOGL_ONLY out) {
  for (int64_t row = 0; row < rows; ++row) {
    float *to = out + row * width;
    for (int64_t j = 0; j < width; ++j) to[j] = 0.0f;
    for (int64_t entry = start[row]; entry < start[row + 1]; ++entry) {
      const float *from = x + columns[entry] * width;
      if (values) {
        const float value = values[entry];
        for (int64_t j = 0; j < width; ++j) to[j] += value * from[j];
      } else {
        for (int64_t j = 0; j < width; ++j) to[j] += from[j];
      }
    }
  }
}

// ---- batch norm

constexpr int64_t BLOCK = 32;  // rows summed as float before they are added to a double

TOGL_HOT static void column_moments(int64_t rows, int64_t width, const float *TOGL_ONLY x, double *TOGL_ONLY mean,
                             double *TOGL_ONLY var, float *TOGL_ONLY part, float *TOGL_ONLY centre) {
  for (int64_t j = 0; j < width; ++j) mean[j] = var[j] = 0.0;
  for (int64_t first = 0; first < rows; first += BLOCK) {
    const int64_t last = std::min(rows, first + BLOCK);
    for (int64_t j = 0; j < width; ++j) part[j] = 0.0f;
    for (int64_t i = first; i < last; ++i)
      for (int64_t j = 0; j < width; ++j) part[j] += x[i * width + j];
    for (int64_t j = 0; j < width; ++j) mean[j] += part[j];
  }
  for (int64_t j = 0; j < width; ++j) {
    mean[j] /= (double)rows;
    centre[j] = (float)mean[j];
  }
  for (int64_t first = 0; first < rows; first += BLOCK) {
    const int64_t last = std::min(rows, first + BLOCK);
    for (int64_t j = 0; j < width; ++j) part[j] = 0.0f;
    for (int64_t i = first; i < last; ++i)
      for (int64_t j = 0; j < width; ++j) {
        const float away = x[i * width + j] - centre[j];
        part[j] += away * away;
      }
    for (int64_t j = 0; j < width; ++j) var[j] += part[j];
  }
  for (int64_t j = 0; j < width; ++j) var[j] /= (double)rows;
}

// out = act((x - mean) * scale + shift) [+ residual], and act is ReLU or nothing.
TOGL_HOT static void scale_rows(int64_t rows, int64_t width, const float *TOGL_ONLY x, const float *TOGL_ONLY mean,
                                const float *TOGL_ONLY scale, const float *TOGL_ONLY shift,
                                const float *TOGL_ONLY residual, bool relu, float *TOGL_ONLY out) {
  for (int64_t i = 0; i < rows; ++i) {
    const float *from = x + i * width;
    float *to = out + i * width;
    if (relu)
      for (int64_t j = 0; j < width; ++j) {
        const float y = (from[j] - mean[j]) * scale[j] + shift[j];
        to[j] = y > 0.0f ? y : 0.0f;
      }
    else
      for (int64_t j = 0; j < width; ++j) to[j] = (from[j] - mean[j]) * scale[j] + shift[j];
    if (residual) {
      const float *add = residual + i * width;
      for (int64_t j = 0; j < width; ++j) to[j] += add[j];
    }
  }
}

// gy = g masked by the activation (written to `masked`); sums of gy and of gy * (x - mean) per column.
TOGL_HOT static void gradient_moments(int64_t rows, int64_t width, const float *TOGL_ONLY x, const float *TOGL_ONLY g,
                               const float *TOGL_ONLY scale, const float *TOGL_ONLY shift, const float *TOGL_ONLY mean,
                               bool relu, float *TOGL_ONLY masked, double *TOGL_ONLY sum, double *TOGL_ONLY dot,
                               float *TOGL_ONLY part, float *TOGL_ONLY part_dot) {
  const float floor = relu ? 0.0f : -INFINITY;  // gradients pass where y > floor
  for (int64_t j = 0; j < width; ++j) sum[j] = dot[j] = 0.0;
  for (int64_t first = 0; first < rows; first += BLOCK) {
    const int64_t last = std::min(rows, first + BLOCK);
    for (int64_t j = 0; j < width; ++j) part[j] = part_dot[j] = 0.0f;
    for (int64_t i = first; i < last; ++i) {
      const float *TOGL_ONLY from = x + i * width;
      const float *TOGL_ONLY up = g + i * width;
      float *TOGL_ONLY to = masked + i * width;
      for (int64_t j = 0; j < width; ++j) {
        const float away = from[j] - mean[j];
        const float y = away * scale[j] + shift[j];
        const float through = up[j];
        const float grad = y > floor ? through : 0.0f;
        to[j] = grad;
        part[j] += grad;
        part_dot[j] += grad * away;
      }
    }
    for (int64_t j = 0; j < width; ++j) {
      sum[j] += part[j];
      dot[j] += part_dot[j];
    }
  }
}

// g = a * g + b * (x - mean) + c, per column.
TOGL_HOT static void combine_rows(int64_t rows, int64_t width, const float *TOGL_ONLY x, const float *TOGL_ONLY mean,
                                  const float *TOGL_ONLY a, const float *TOGL_ONLY b, const float *TOGL_ONLY c,
                                  float *TOGL_ONLY g) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < width; ++j) {
      const int64_t at = i * width + j;
      g[at] = a[j] * g[at] + b[j] * (x[at] - mean[j]) + c[j];
    }
}

// ---- coordinate functions

struct Units {
  int64_t q;
  const float *triangle, *gauss, *width, *line, *line_bias, *centre, *radius;
};

inline float sign(float x) { return (float)((x > 0.0f) - (x < 0.0f)); }

inline void coordinates_forward(int64_t points, const Units &u, const float *birth, const float *death, float *out) {
  const int64_t q = u.q;
  const float narrow = 1.0f / (2.0f * u.width[0] * u.width[0]);
  for (int64_t i = 0; i < points; ++i) {
    const float b = birth[i], d = death[i];
    float *to = out + i * 4 * q;
    for (int64_t j = 0; j < q; ++j) {
      const float height = d - std::fabs(u.triangle[j] - b);
      to[j] = height > 0.0f ? height : 0.0f;
      const float gb = b - u.gauss[j], gd = d - u.gauss[j];
      to[q + j] = std::exp(-(gb * gb + gd * gd) * narrow);
      to[2 * q + j] = u.line[2 * j] * b + u.line[2 * j + 1] * d + u.line_bias[j];
      const float distance = std::fabs(b - u.centre[j]) + std::fabs(d - u.centre[j]);
      to[3 * q + j] = 1.0f / (1.0f + distance) - 1.0f / (1.0f + std::fabs(std::fabs(u.radius[j]) - distance));
    }
  }
}

// Gradients of both coordinates; those of the units are summed into `du`: 7q + 1 doubles in the order of `Units`.
inline void coordinates_backward(int64_t points, const Units &u, const float *birth, const float *death,
                                 const float *value, const float *grad, float *db, float *dd, double *du) {
  const int64_t q = u.q;
  const float s = u.width[0], narrow = 1.0f / (s * s);
  double *triangle = du, *gauss = du + q, *width = du + 2 * q, *line = width + 1, *bias = line + 2 * q,
         *centre = bias + q, *radius = centre + q;
  for (int64_t i = 0; i < points; ++i) {
    const float b = birth[i], d = death[i];
    const float *g = grad + i * 4 * q, *y = value + i * 4 * q;
    float to_b = 0.0f, to_d = 0.0f;
    for (int64_t j = 0; j < q; ++j) {
      if (y[j] > 0.0f) {
        const float side = sign(u.triangle[j] - b) * g[j];
        to_d += g[j];
        to_b += side;
        triangle[j] -= side;
      }
      const float gb = b - u.gauss[j], gd = d - u.gauss[j], gy = g[q + j] * y[q + j] * narrow;
      to_b -= gy * gb;
      to_d -= gy * gd;
      gauss[j] += gy * (gb + gd);
      width[0] += gy * (gb * gb + gd * gd) / s;
      const float gl = g[2 * q + j];
      to_b += gl * u.line[2 * j];
      to_d += gl * u.line[2 * j + 1];
      line[2 * j] += gl * b;
      line[2 * j + 1] += gl * d;
      bias[j] += gl;
      const float sb = sign(b - u.centre[j]), sd = sign(d - u.centre[j]);
      const float distance = std::fabs(b - u.centre[j]) + std::fabs(d - u.centre[j]);
      const float gap = std::fabs(u.radius[j]) - distance, near = 1.0f / (1.0f + distance),
                  far = 1.0f / (1.0f + std::fabs(gap));
      const float outer = g[3 * q + j] * far * far * sign(gap);
      const float inner = -g[3 * q + j] * near * near - outer;
      to_b += inner * sb;
      to_d += inner * sd;
      centre[j] -= inner * (sb + sd);
      radius[j] += outer * sign(u.radius[j]);
    }
    db[i] = to_b;
    dd[i] = to_d;
  }
}

// ---- Adam

TOGL_HOT static void adam_rows(int64_t count, float *TOGL_ONLY p, const float *TOGL_ONLY g, float *TOGL_ONLY m,
                               float *TOGL_ONLY v, float beta1, float beta2, float decay, float step_size,
                               float root_correction, float eps) {
  for (int64_t i = 0; i < count; ++i) {
    const float grad = g[i] + decay * p[i];
    m[i] += (1.0f - beta1) * (grad - m[i]);
    v[i] = beta2 * v[i] + (1.0f - beta2) * grad * grad;
    p[i] -= step_size * m[i] / (std::sqrt(v[i]) / root_correction + eps);
  }
}

}  // namespace togl
