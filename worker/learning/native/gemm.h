// Dense products of floats with 512-bit vectors, in the order of additions that MKL has on processors for which it knows
// no such vectors: for every element one chain of fused multiply-adds from 0 over 192 columns (half of them, where there are less than twice as
// many), chains added up in turn.
// Owns that order and the loops; whether it is MKL's on this machine is found out by `dense.cpp`, which alone uses it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#if defined(__x86_64__) && defined(__GNUC__)
#define TOGL_WIDE 1
#include <immintrin.h>
#endif

namespace togl {

// A matrix as it lies there: element (i, j) at i * rows + j * columns.
struct View {
  const float *data;
  int64_t rows, columns;
};

constexpr int64_t CHAIN = 192;  // columns of one chain at most
constexpr int64_t PANEL = 32;   // columns of the product that are made together

#ifdef TOGL_WIDE
#define TOGL_512 __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,fma")))

// ROWS rows and VECTORS * 16 columns of the product; `panel` holds [k][PANEL].
template <int ROWS, int VECTORS>
TOGL_512 static inline void tile(int64_t k, const float *a, int64_t step_row, int64_t step_column, const float *panel,
                                 const float *base, int64_t base_stride, float *out, int64_t stride,
                                 int64_t columns) {
  __m512 sum[ROWS][VECTORS];
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < VECTORS; ++v) sum[r][v] = _mm512_setzero_ps();
  for (int64_t p = 0; p < k; ++p) {
    __m512 b[VECTORS];
#pragma GCC unroll 2
    for (int v = 0; v < VECTORS; ++v) b[v] = _mm512_loadu_ps(panel + p * PANEL + 16 * v);
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; ++r) {
      const __m512 x = _mm512_set1_ps(a[r * step_row + p * step_column]);
#pragma GCC unroll 2
      for (int v = 0; v < VECTORS; ++v) sum[r][v] = _mm512_fmadd_ps(x, b[v], sum[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < VECTORS; ++v) {
      const int64_t left = columns - 16 * v;
      if (left <= 0) continue;
      const __mmask16 mask = left >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << left) - 1);
      float *to = out + r * stride + 16 * v;
      if (base) sum[r][v] = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, base + r * base_stride + 16 * v), sum[r][v]);
      _mm512_mask_storeu_ps(to, mask, sum[r][v]);
    }
}

template <int VECTORS>
TOGL_512 static void strip(int64_t m, int64_t k, const View &a, const float *panel, const float *base,
                           int64_t base_stride, float *out, int64_t stride, int64_t columns) {
  constexpr int ROWS = 12;
  int64_t i = 0;
  const auto at = [&](int64_t row) { return a.data + row * a.rows; };
  const auto below = [&](int64_t row) { return base ? base + row * base_stride : nullptr; };
  for (; i + ROWS <= m; i += ROWS)
    tile<ROWS, VECTORS>(k, at(i), a.rows, a.columns, panel, below(i), base_stride, out + i * stride, stride, columns);
  for (; i + 4 <= m; i += 4)
    tile<4, VECTORS>(k, at(i), a.rows, a.columns, panel, below(i), base_stride, out + i * stride, stride, columns);
  for (; i < m; ++i)
    tile<1, VECTORS>(k, at(i), a.rows, a.columns, panel, below(i), base_stride, out + i * stride, stride, columns);
}

// out [m, n] = a [m, k] b [k, n], added to `bias` [n] where there is one.
TOGL_512 static void wide_product(int64_t m, int64_t n, int64_t k, const View &a, const View &b, const float *bias,
                                  float *out) {
  static thread_local std::vector<float> room;
  room.resize(CHAIN * PANEL);
  float *panel = room.data();
  const int64_t chain = k > CHAIN && k < 2 * CHAIN ? k / 2 : CHAIN;
  for (int64_t first = 0; first < k; first += chain) {
    const int64_t depth = std::min(chain, k - first);
    const View part = {a.data + first * a.columns, a.rows, a.columns};
    for (int64_t column = 0; column < n; column += PANEL) {
      const int64_t columns = std::min(PANEL, n - column);
      const float *from = b.data + first * b.rows + column * b.columns;
      if (b.columns == 1) {
        for (int64_t p = 0; p < depth; ++p)
          for (int64_t j = 0; j < columns; ++j) panel[p * PANEL + j] = from[p * b.rows + j];
      } else {
        for (int64_t j = 0; j < columns; ++j)
          for (int64_t p = 0; p < depth; ++p) panel[p * PANEL + j] = from[p * b.rows + j * b.columns];
      }
      if (columns < PANEL)
        for (int64_t p = 0; p < depth; ++p) std::fill(panel + p * PANEL + columns, panel + (p + 1) * PANEL, 0.0f);
      const float *base = first > 0 ? out + column : bias ? bias + column : nullptr;
      const int64_t base_stride = first > 0 ? n : 0;
      if (columns > 16)
        strip<2>(m, depth, part, panel, base, base_stride, out + column, n, columns);
      else
        strip<1>(m, depth, part, panel, base, base_stride, out + column, n, columns);
    }
  }
}
#endif

}  // namespace togl
