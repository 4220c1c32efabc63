// Rows of activations as int8: the right-hand side of the quantized matmul. A row is cut into groups of 16;
// each group is quantized by itself, so a row's bytes depend on that row alone.
//
//   scale = max|x| / 127,  q = x * (127 / max|x|) rounded to nearest, ties to even, within [-127, 127]
//   code_sum = q0 + ... + q15
//   sum = scale0 * code_sum0 + scale1 * code_sum1 of the two groups in each 32 inputs, each operation rounded
//
// A group whose largest magnitude is below 2^-100 becomes zero. A NaN or an infinity makes its group's scale
// NaN, so that it shows in every output instead of turning into a number.
#pragma once

#include <cstdint>

namespace godwit::kernels {

inline constexpr std::int64_t kActivationGroup = 16;

// What a product with quantized weights reads: the int8 form above, or the rows themselves.
enum class ActivationForm { int8, f32 };

// Views of rows; n is the row length, a multiple of 32, the same for all.
struct Activations {
  const std::int8_t* values;      // [rows, n]
  const float* scales;            // [rows, n/16]
  const float* sums;              // [rows, n/32]
  const std::int32_t* code_sums;  // [rows, n/16]
  // [rows, n], what they were made of: read by products with dense weights, and by all where the form is f32.
  const float* rows = nullptr;
  ActivationForm form = ActivationForm::int8;  // f32: the members before `rows` are not read
};

struct QuantizeRowsArgs {
  const float* x;  // [rows, n], rows x_stride apart
  std::int64_t rows, n, x_stride;
  std::int8_t* values;
  float* scales;
  float* sums;
  std::int32_t* code_sums;
};

}  // namespace godwit::kernels
