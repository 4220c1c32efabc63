// The way back from the rotated domain of turbo values.
#pragma once

#include <cstdint>

namespace godwit::kernels {

// x = signs * (H y / sqrt(dim)) for each head, in place: stages as in rotate_values (kv_codec.h). Linear, so
// attention over rotated values is turned back once, after its last merge.
struct RestoreValuesArgs {
  float* x;                        // [rows, dim], rows lie stride apart
  std::int64_t rows, dim, stride;  // dim 64, 128, 256 or 512
};

}  // namespace godwit::kernels
