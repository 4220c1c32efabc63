// Sixteen f32 lanes in portable C++: the vocabulary that the bodies (*-inl.h) are written in, and its
// definition. The other levels offer the same names and the same bits. Comparisons are false for NaN.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/half.h"
#include "kernels/level.h"

namespace godwit::kernels {
namespace {

struct ScalarLanes {
  static constexpr Level kLevel = Level::scalar;
  static constexpr int kTileRows = 4;     // query rows that share one read of a key vector
  static constexpr int kTileVectors = 4;  // vectors of sixteen accumulators per query row
  float lane[16];

  template <class Fn>
  static ScalarLanes each(Fn fn) {
    ScalarLanes out;
    for (int i = 0; i < 16; i++) out.lane[i] = fn(i);
    return out;
  }
  static ScalarLanes set1(float x) {
    return each([&](int) { return x; });
  }
  static ScalarLanes zero() { return set1(0.0f); }
  static ScalarLanes iota() {
    return each([](int i) { return static_cast<float>(i); });
  }
  static ScalarLanes load(const float* p) {
    return each([&](int i) { return p[i]; });
  }
  static ScalarLanes load_f16(const std::uint16_t* p) {
    return each([&](int i) { return half_to_float(p[i]); });
  }
  static ScalarLanes load_bf16(const std::uint16_t* p) {
    return each([&](int i) { return bf16_to_float(p[i]); });
  }
  // Sixteen bytes, the first in the lowest bits of `low`, unsigned or signed.
  static ScalarLanes from_u8(std::uint64_t low, std::uint64_t high) {
    return each([&](int i) { return static_cast<float>(byte(low, high, i)); });
  }
  static ScalarLanes from_i8(std::uint64_t low, std::uint64_t high) {
    return each([&](int i) { return static_cast<float>(static_cast<std::int8_t>(byte(low, high, i))); });
  }
  static std::uint8_t byte(std::uint64_t low, std::uint64_t high, int i) {
    return static_cast<std::uint8_t>((i < 8 ? low : high) >> (8 * (i % 8)));
  }
  // table[byte], bytes below 2^kBits; the table has at least 16 entries.
  template <int kBits>
  static ScalarLanes lookup(const float* table, std::uint64_t low, std::uint64_t high) {
    return each([&](int i) { return table[byte(low, high, i)]; });
  }
  static float half(std::uint16_t x) { return half_to_float(x); }
  // Element j of row i of a 16 x 16 square becomes element i of row j.
  static void transpose(const float* from, std::int64_t from_stride, float* to, std::int64_t to_stride) {
    for (int i = 0; i < 16; i++)
      for (int j = 0; j < 16; j++) to[j * to_stride + i] = from[i * from_stride + j];
  }
  // The first n lanes from memory (n <= 16), the others +0; nothing past n is touched.
  static ScalarLanes load_first(const float* p, std::int64_t n) {
    return each([&](int i) { return i < n ? p[i] : 0.0f; });
  }
  void store(float* p) const { store_first(p, 16); }
  void store_first(float* p, std::int64_t n) const {
    for (int i = 0; i < n; i++) p[i] = lane[i];
  }
  // Lanes that hold integers in [-128, 127].
  void store_int8(std::int8_t* p) const {
    for (int i = 0; i < 16; i++) p[i] = static_cast<std::int8_t>(lane[i]);
  }
  float first() const { return lane[0]; }

  friend ScalarLanes operator+(ScalarLanes a, ScalarLanes b) {
    return each([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  friend ScalarLanes operator-(ScalarLanes a, ScalarLanes b) {
    return each([&](int i) { return a.lane[i] - b.lane[i]; });
  }
  friend ScalarLanes operator*(ScalarLanes a, ScalarLanes b) {
    return each([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  friend ScalarLanes operator/(ScalarLanes a, ScalarLanes b) {
    return each([&](int i) { return a.lane[i] / b.lane[i]; });
  }
  // a*b + c, rounded once.
  static ScalarLanes fma(ScalarLanes a, ScalarLanes b, ScalarLanes c) {
    return each([&](int i) { return std::fma(a.lane[i], b.lane[i], c.lane[i]); });
  }
  // a where a > b, else b: a NaN in b survives, one in a does not.
  static ScalarLanes max(ScalarLanes a, ScalarLanes b) {
    return each([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static ScalarLanes min(ScalarLanes a, ScalarLanes b) {
    return each([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static ScalarLanes abs(ScalarLanes a) {
    return each([&](int i) { return std::fabs(a.lane[i]); });
  }
  static ScalarLanes negate(ScalarLanes a) {
    return each([&](int i) { return -a.lane[i]; });
  }
  static ScalarLanes sqrt(ScalarLanes a) {
    return each([&](int i) { return std::sqrt(a.lane[i]); });
  }
  // yes where a < b, else no.
  static ScalarLanes where_less(ScalarLanes a, ScalarLanes b, ScalarLanes yes, ScalarLanes no) {
    return each([&](int i) { return a.lane[i] < b.lane[i] ? yes.lane[i] : no.lane[i]; });
  }
  // yes in the lanes whose bit is set, lane 0 the lowest, else no.
  static ScalarLanes where_set(std::uint32_t bits, ScalarLanes yes, ScalarLanes no) {
    return each([&](int i) { return bits >> i & 1 ? yes.lane[i] : no.lane[i]; });
  }
  // The low nine bits of each pattern become an exponent: 2^n for a lane that holds 1.5*2^23 + n, -127 < n <
  // 128.
  static ScalarLanes power_of_two(ScalarLanes a) {
    return each([&](int i) {
      return std::bit_cast<float>((std::bit_cast<std::uint32_t>(a.lane[i]) << 23) + 0x3f800000u);
    });
  }
  // The one tree of all float sums: lane i meets i+8, then i+4, i+2, i+1.
  float sum() const {
    ScalarLanes t = *this;
    for (int width = 8; width > 0; width /= 2)
      for (int i = 0; i < width; i++) t.lane[i] = t.lane[i] + t.lane[i + width];
    return t.lane[0];
  }
  float maximum() const {
    ScalarLanes t = *this;
    for (int width = 8; width > 0; width /= 2)
      for (int i = 0; i < width; i++)
        t.lane[i] = t.lane[i] > t.lane[i + width] ? t.lane[i] : t.lane[i + width];
    return t.lane[0];
  }
};

}  // namespace
}  // namespace godwit::kernels
