// What `dense.cpp` offers to Rust.
#pragma once

#include <stdint.h>

extern "C" {
// out = act(x W^T + b), or without b where it is null; W as [out, in], act ReLU or nothing.
char *togl_dense(void *x, void *weight, void *bias, int32_t relu, void **out);
}
