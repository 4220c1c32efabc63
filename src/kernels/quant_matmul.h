// y[m, n] (+)= sum over k of w[n, k] x[m, k]: packed quantized weights times int8 or f32 activations, or dense
// ones times f32.
//
// Definition, for one m and n, groups of 32 inputs in ascending order, acc starting at +0:
//   dot0, dot1 = sums of (code - offset) * q over the halves of 16 inputs, exact integers
//   dot  = fma(float(dot1), activation_scale1, float(dot0) * activation_scale0)
//   acc  = fma(dot, scale, acc)
//   acc  = fma(-minimum, activation_sum, acc)      formats with a minimum: Q4_1, Q5_1, Q4_K, Q5_K,
//                                                 affine (its bias is -minimum)
// Q6_K, Q3_K and Q2_K have scales for each half, and do for each, in order,
//   acc  = fma(float(dot), scale * activation_scale, acc)
//   acc  = fma(-minimum, activation_scale * float(code_sum), acc)      Q2_K
//   y    = acc, or y + acc when accumulating
// Dense weights, and all where x.form is f32, meet the activations themselves (x.rows): acc = fma(w[n, k],
// x[m, k], acc), k in ascending order, w the number that dequant_packed_row gives. Neither m nor the number of
// rows asked for together enters: an answer has the same bits alone and in any batch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/activations.h"
#include "kernels/level.h"
#include "kernels/packed_weights.h"

namespace godwit::kernels {

struct QuantMatmulArgs {
  PackedShape shape;
  const std::byte* packed;            // packed_bytes(shape)
  Activations x;                      // rows of length shape.columns
  float* y;                           // [m, N], rows y_stride apart
  std::int64_t y_stride;              // in elements
  std::int64_t m_begin, m_end;        // activation rows that this call does
  std::int64_t band_begin, band_end;  // bands of 16 output rows that this call does
  bool accumulate;
};

// One body per level; callers use the KernelTable.
namespace scalar {
Level quant_matmul(const QuantMatmulArgs& args);
}
namespace avx2 {
Level quant_matmul(const QuantMatmulArgs& args);
}
namespace avx512 {
Level quant_matmul(const QuantMatmulArgs& args);
}
namespace neon {
Level quant_matmul(const QuantMatmulArgs& args);
}

}  // namespace godwit::kernels
