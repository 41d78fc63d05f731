// What `dense.cpp` offers to Rust.
#pragma once

#include <stdint.h>

extern "C" {
// out = act(x W^T + b), or without b where it is null; W as [out, in], act ReLU or nothing.
char *togl_dense(void *x, void *weight, void *bias, int32_t relu, void **out);

// Whether floats on this processor take loops of ours: they do where a trial gives the bits of libtorch's.
int32_t togl_wide_products(void);
}
