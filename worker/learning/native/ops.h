// What `ops.cpp` offers to Rust: the handful of tensor operations that need an autograd function of their own or
// that would otherwise be many small ones. Tensors travel as torch-sys does it: as pointers to `at::Tensor`.
// Every function catches what libtorch throws and returns it as text (to be freed with `free`), or null.
#pragma once

#include <stdint.h>

extern "C" {
struct togl_sparse {
  void *row_start;    // i64 [rows + 1]
  void *columns;      // i64 [entries]
  void *values;       // [entries], or null: every entry is 1
  void *t_row_start;  // the transposed matrix, in the same form
  void *t_columns;
  void *t_values;
  void *compressed;  // both as tensors of compressed rows, on devices that multiply with those; else null
  void *t_compressed;
};

// The tensor of compressed rows with this many columns.
char *togl_compressed_rows(void *row_start, void *columns, void *values, int64_t width, void **out);

// out = A x; the gradient of x is A^T g. Nothing is differentiated through A.
char *togl_sparse_product(const togl_sparse *matrix, void *x, void **out);

struct togl_norm {
  void *weight;
  void *bias;
  void *running_mean;
  void *running_var;
  double momentum;
  double eps;
  int32_t training;
  int32_t relu;
};

// out = act(batch_norm(x)) [+ residual]; running statistics are updated in training.
char *togl_batch_norm(const togl_norm *norm, void *x, void *residual, void **out);

struct togl_convolution {
  void *weight;      // [out, in]
  void *bias;        // [out]
  void *rows;        // compressed rows of A
  void *transposed;  // and of its transpose
  int32_t residual;
};

// out = act(batch_norm(A x W^T + b)) [+ x] in training, on devices; b, which the norm takes away again, gets no gradient.
char *togl_graph_convolution(const togl_convolution *convolution, const togl_norm *norm, void *x, void **out);

// The pairs of `vertices` vertices and of all kept edges, both [m, 2k], out of values [n, k]: `index` names values by their
// flat place, and n k stands for `zero` [1].
char *togl_all_pairs(void *values, void *zero, void *index, int64_t vertices, void **dim0, void **dim1);

struct togl_coordinates {
  void *triangle;      // [q]
  void *gauss_centre;  // [q]
  void *gauss_width;   // [1]
  void *line_weight;   // [q, 2]
  void *line_bias;     // [q]
  void *hat_centre;    // [q]
  void *hat_radius;    // [q]
};

// out [m, k, 4q]: the four coordinate functions of the points (birth, death), both [m, k]; CPU and float only.
char *togl_coordinate_functions(const togl_coordinates *functions, void *birth, void *death, void **out);

struct togl_adam_settings {
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  int64_t step;  // from 1
};

// One step for `count` parameters; each gradient is taken from its parameter and then dropped. On devices `step` is the
// number of the step there, and all parameters move at once; it is null on the processor.
char *togl_adam(const togl_adam_settings *settings, int64_t count, void **parameters, void **first, void **second,
                void *step);

// Back through the network from `out`, whose gradient is `gradient`.
char *togl_backward(void *out, void *gradient);

// Asks the allocator to keep freed memory for the next step instead of giving it back (glibc; nothing elsewhere).
void togl_keep_memory(void);

// Gives back what libtorch keeps unused of a device's memory and starts the record of its peak anew; `cuda` is 0 for MPS.
void togl_restart_memory(int cuda, int index);

// The most that libtorch had taken of a device's memory since then, in bytes; -1 where that is not known.
int64_t togl_peak_memory(int cuda, int index);

// Version of the libtorch that is loaded, as text to be freed.
char *togl_libtorch_version(void);

// The vector instructions that libtorch uses on this processor, as text to be freed.
char *togl_cpu_capability(void);
}
