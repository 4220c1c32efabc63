#include "checkpoint/quantize_rows.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "kernels/half.h"
#include "kernels/quantize_blocks.h"

namespace godwit::checkpoint {
namespace {

std::size_t element_bytes(TensorFormat format) { return format == TensorFormat::f32 ? 4 : 2; }

void widen(TensorFormat format, const std::byte* from, std::size_t count, float* to) {
  if (format == TensorFormat::f32) {
    std::memcpy(to, from, count * sizeof(float));
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t half;
    std::memcpy(&half, from + 2 * i, sizeof half);
    to[i] = format == TensorFormat::f16 ? kernels::half_to_float(half) : kernels::bf16_to_float(half);
  }
}

}  // namespace

std::vector<std::byte> quantized_rows(const TensorEntry& entry, std::span<const std::byte> bytes, int rows, int columns,
                                      kernels::BlockFormat format, ThreadPool& pool) {
  const kernels::BlockSize block = kernels::block_size(format);
  const auto width = static_cast<std::size_t>(columns), blocks = width / static_cast<std::size_t>(block.elements);
  const std::size_t row_bytes = blocks * static_cast<std::size_t>(block.bytes);
  std::vector<std::byte> quantized(static_cast<std::size_t>(rows) * row_bytes);
  std::atomic<int> wrong{rows};  // the first row that cannot be stored
  const int pieces = std::min(rows, 64);
  pool.run(pieces, [&](int piece) {
    std::vector<float> values(width);
    const auto first = static_cast<int>(std::int64_t{rows} * piece / pieces);
    const auto last = static_cast<int>(std::int64_t{rows} * (piece + 1) / pieces);
    for (int row = first; row < last; ++row) {
      const auto at = static_cast<std::size_t>(row);
      widen(entry.format, bytes.data() + at * width * element_bytes(entry.format), width, values.data());
      if (kernels::quantize_blocks(format, values.data(), blocks, quantized.data() + at * row_bytes) == blocks) continue;
      for (int known = wrong.load(); row < known && !wrong.compare_exchange_weak(known, row);) {
      }
      return;
    }
  });
  if (wrong < rows)
    fail(ErrorCode::corrupt_file, "weights", "{}: row {} holds a number that is not finite, or too large to be quantized",
         describe(entry), wrong.load());
  return quantized;
}

}  // namespace godwit::checkpoint
