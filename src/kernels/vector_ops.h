// The small operations over whole vectors of f32.
#pragma once

#include <cstdint>

namespace godwit::kernels {

// y = a + b. y may be a or b.
struct AddArgs {
  const float* a;
  const float* b;
  float* y;
  std::int64_t n;
};

// *index = the lowest index of the largest element; a NaN never wins. -1 when nothing is larger than
// -infinity and no element is -infinity either (n = 0, or NaN alone).
struct ArgmaxArgs {
  const float* x;
  std::int64_t n;
  std::int64_t* index;
};

}  // namespace godwit::kernels
