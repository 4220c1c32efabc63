#include "kernels/quantize_blocks.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "kernels/half.h"

namespace godwit::kernels {
namespace {

constexpr int kElements = 32;  // of a block of either format

struct Extreme {
  float value = 0, magnitude = 0;  // the first of the largest magnitude
  bool is_finite = true;
};

Extreme extreme_of(const float* values) {
  Extreme found;
  for (int k = 0; k < kElements; ++k) {
    const float magnitude = std::fabs(values[k]);
    found.is_finite = found.is_finite && std::isfinite(magnitude);
    if (magnitude > found.magnitude) found = {values[k], magnitude, found.is_finite};
  }
  return found;
}

// 0 also for a scale so small that f32 has no inverse of it: f16 holds such a one as 0, and no code matters.
float inverse(float scale) {
  const float factor = 1.0f / scale;
  return std::isfinite(factor) ? factor : 0.0f;
}

bool store_scale(float scale, std::uint8_t* block) {
  const std::uint16_t half = float_to_f16(scale);
  std::memcpy(block, &half, sizeof half);
  return (half & 0x7c00u) != 0x7c00u;  // no infinity
}

bool quantize_q8_0(const float* values, std::uint8_t* block) {
  const Extreme most = extreme_of(values);
  if (!most.is_finite) return false;
  const float scale = most.magnitude / 127.0f, factor = inverse(scale);
  for (int k = 0; k < kElements; ++k)
    block[2 + k] = static_cast<std::uint8_t>(static_cast<std::int8_t>(std::round(values[k] * factor)));
  return store_scale(scale, block);
}

// One code of 0..15. The product and the sum are exact enough in f64; the sum is rounded to f32 before it is cut.
std::uint8_t nibble(float value, float factor) {
  const double shifted = static_cast<double>(value) * static_cast<double>(factor) + 8.5;
  const auto code = static_cast<int>(static_cast<float>(shifted));
  return static_cast<std::uint8_t>(code > 15 ? 15 : code);
}

bool quantize_q4_0(const float* values, std::uint8_t* block) {
  const Extreme most = extreme_of(values);
  if (!most.is_finite) return false;
  const float scale = most.value / -8.0f, factor = inverse(scale);
  for (int k = 0; k < kElements / 2; ++k)
    block[2 + k] = static_cast<std::uint8_t>(nibble(values[k], factor) | nibble(values[k + kElements / 2], factor) << 4);
  return store_scale(scale, block);
}

}  // namespace

bool can_quantize(BlockFormat format) { return !quantized_name(format).empty(); }

std::string_view quantized_name(std::optional<BlockFormat> format) {
  if (format == BlockFormat::q8_0) return "Q8_0";
  return format == BlockFormat::q4_0 ? "Q4_0" : "";
}

std::size_t quantize_blocks(BlockFormat format, const float* values, std::size_t block_count, std::byte* blocks) {
  if (!can_quantize(format))
    fail(ErrorCode::unsupported, "quantize_blocks", "nothing is quantized to format {}", static_cast<int>(format));
  const auto bytes = static_cast<std::size_t>(block_size(format).bytes);
  auto* out = reinterpret_cast<std::uint8_t*>(blocks);
  for (std::size_t b = 0; b < block_count; ++b) {
    const float* const from = values + b * kElements;
    const bool is_right = format == BlockFormat::q8_0 ? quantize_q8_0(from, out + b * bytes) : quantize_q4_0(from, out + b * bytes);
    if (!is_right) return b;
  }
  return block_count;
}

}  // namespace godwit::kernels
