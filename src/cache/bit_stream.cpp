#include "cache/bit_stream.h"

#include <cstdint>
#include <functional>
#include <vector>

#include "base/mx_ops.h"

namespace godwit::cache {
namespace {

// Eight codes fill `bits` whole bytes, so everything repeats with that period.
constexpr int kPeriod = 8;

mx::array word(int value) { return mx::array(static_cast<std::uint32_t>(value), mx::uint32); }

mx::array shifted(const mx::array& x, int left) {
  if (left == 0) return x;
  return left > 0 ? mx::left_shift(x, word(left)) : mx::right_shift(x, word(-left));
}

// [..., n] -> n / period columns' worth of `period` arrays [..., n / period].
std::vector<mx::array> columns(const mx::array& x, int period) {
  mx::Shape shape = x.shape();
  shape.back() /= period;
  shape.push_back(period);
  const mx::array split = mx::reshape(x, shape);
  std::vector<mx::array> parts;
  for (int i = 0; i < period; ++i) parts.push_back(mx::take(split, i, -1));
  return parts;
}

mx::array joined(const std::vector<mx::array>& parts) {
  const mx::array split = mx::stack(parts, -1);
  mx::Shape shape = split.shape();
  shape.pop_back();
  shape.back() *= static_cast<int>(parts.size());
  return mx::reshape(split, shape);
}

// Fields of `width` bits side by side, gathered from fields of `from` bits side by side. 32 bits in between:
// 8 would lose what crosses a byte.
std::vector<mx::array> regrouped(const std::vector<mx::array>& fields, int from, int count, int width) {
  std::vector<mx::array> out;
  for (int target = 0; target < count; ++target) {
    mx::array sum = word(0);
    for (int source = 0; source < static_cast<int>(fields.size()); ++source) {
      const int left = source * from - target * width;
      if (left >= width || left <= -from) continue;  // they share no bit
      sum = mx::bitwise_or(sum, shifted(fields[static_cast<std::size_t>(source)], left));
    }
    out.push_back(mx::bitwise_and(sum, word((1 << width) - 1)));
  }
  return out;
}

}  // namespace

mx::array pack_bits(const mx::array& codes, int bits) {
  return mx::astype(joined(regrouped(columns(codes, kPeriod), bits, bits, 8)), mx::uint8);
}

mx::array unpack_bits(const mx::array& bytes, int bits) {
  return joined(regrouped(columns(mx::astype(bytes, mx::uint32), bits), 8, kPeriod, bits));
}

}  // namespace godwit::cache
