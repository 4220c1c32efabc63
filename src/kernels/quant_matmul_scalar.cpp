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
  const float scale = a.x.scales[at];
  if (a.shape.format == BlockFormat::q6_k) {
    acc = std::fma(static_cast<float>(dots[0]), group.scales[0] * scale, acc);
    return std::fma(static_cast<float>(dots[1]), group.scales[1] * scale, acc);
  }
  acc = std::fma(static_cast<float>(dots[0] + dots[1]), group.scales[0] * scale, acc);
  const bool has_minimum = a.shape.format == BlockFormat::q4_1 || a.shape.format == BlockFormat::q4_k;
  return has_minimum ? std::fma(-group.minimum, a.x.sums[at], acc) : acc;
}

void multiply_row(const QuantMatmulArgs& a, std::int64_t n, std::int64_t m_begin, std::int64_t m_end) {
  float acc[kTile] = {};
  for (std::int64_t g = 0; g < a.shape.columns / 32; g++) {
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
