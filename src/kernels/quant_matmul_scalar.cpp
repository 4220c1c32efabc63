#include <cmath>

#include "kernels/quant_matmul.h"

namespace godwit::kernels::scalar {
namespace {

constexpr std::int64_t kTile = 16;  // activation rows that share one decoded group

float add_group(const QuantMatmulArgs& a, const PackedGroup& group, std::int64_t m, std::int64_t g,
                float acc) {
  const std::int64_t groups = a.shape.columns / 32, at = m * groups + g;
  const std::int8_t* x = a.x.values + at * 32;
  int dots[2] = {0, 0};
  for (int k = 0; k < 32; k++) dots[k / 16] += (group.codes[k] - group.offset) * x[k];
  const float* scales = a.x.scales + 2 * at;
  if (group.is_split) {
    for (int half = 0; half < 2; half++) {
      acc = std::fma(static_cast<float>(dots[half]), group.scales[half] * scales[half], acc);
      if (!group.has_minimum) continue;
      const float sum = scales[half] * static_cast<float>(a.x.code_sums[2 * at + half]);
      acc = std::fma(-group.minimums[half], sum, acc);
    }
    return acc;
  }
  const float dot = std::fma(static_cast<float>(dots[1]), scales[1], static_cast<float>(dots[0]) * scales[0]);
  acc = std::fma(dot, group.scales[0], acc);
  return group.has_minimum ? std::fma(-group.minimums[0], a.x.sums[at], acc) : acc;
}

float add_values(const QuantMatmulArgs& a, const float* weights, std::int64_t m, std::int64_t g, float acc) {
  const float* x = a.x.rows + m * a.shape.columns + g * 32;
  for (int k = 0; k < 32; k++) acc = std::fma(weights[k], x[k], acc);
  return acc;
}

void read_values(const QuantMatmulArgs& a, std::int64_t n, std::int64_t g, float* values) {
  if (a.shape.format.codes != PackedCodes::dense)
    return decode_values(read_group(a.shape, a.packed, n, g), values);
  for (int k = 0; k < 32; k++) values[k] = read_dense(a.shape, a.packed, n, g * 32 + k);
}

void multiply_row(const QuantMatmulArgs& a, std::int64_t n, std::int64_t m_begin, std::int64_t m_end) {
  float acc[kTile] = {};
  for (std::int64_t g = 0; g < a.shape.columns / 32; g++) {
    if (a.shape.format.codes == PackedCodes::dense || a.x.form == ActivationForm::f32) {
      float weights[32];
      read_values(a, n, g, weights);
      for (std::int64_t m = m_begin; m < m_end; m++)
        acc[m - m_begin] = add_values(a, weights, m, g, acc[m - m_begin]);
      continue;
    }
    const PackedGroup group = read_group(a.shape, a.packed, n, g);
    for (std::int64_t m = m_begin; m < m_end; m++)
      acc[m - m_begin] = add_group(a, group, m, g, acc[m - m_begin]);
  }
  for (std::int64_t m = m_begin; m < m_end; m++) {
    float& y = a.y[m * a.y_stride + n];
    y = a.accumulate ? y + acc[m - m_begin] : acc[m - m_begin];
  }
}

}  // namespace

Level quant_matmul(const QuantMatmulArgs& a) {
  const std::int64_t end = a.band_end * kPackedRows < a.shape.rows ? a.band_end * kPackedRows : a.shape.rows;
  for (std::int64_t n = a.band_begin * kPackedRows; n < end; n++)
    for (std::int64_t m = a.m_begin; m < a.m_end; m += kTile)
      multiply_row(a, n, m, m + kTile < a.m_end ? m + kTile : a.m_end);
  return Level::scalar;
}

}  // namespace godwit::kernels::scalar
