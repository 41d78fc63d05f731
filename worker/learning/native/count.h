// What `count.cpp` offers to Rust: between begin and end, every operation on a device is counted for the part of the
// network that was named last, or whose forward pass made the node of the backward pass that asks for it.
#pragma once

#include <stdint.h>

extern "C" {
// Counts from here on; `cuda` is 0 for MPS.
void togl_count_begin(int cuda);

// What follows on this thread belongs to this part.
void togl_count_part(const char *name);

// Stops counting. Lines of part, phase, kind, operation and count with tabs between, as text to be freed.
char *togl_count_end(void);
}
