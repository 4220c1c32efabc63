// How the vector bodies read one group of 32 inputs from a packed record (packed_weights.h): eight registers
// of codes, one step each, and the group's scales. `part` picks the register's rows within the band: 0 or,
// with eight rows a register, 1.
#pragma once

#include <cstdint>

#include "kernels/packed_weights.h"

namespace godwit::kernels {
namespace {

template <class D>
inline constexpr int kParts = static_cast<int>(kPackedRows) / D::kRows;

template <class D>
struct Group {
  typename D::Bytes codes[8];
  typename D::Floats scales[2];
  typename D::Floats
      addends[2];  // times the activation sum, split times that of each half; with a minimum only
};

// kGroups: groups in a record, 0 where the shape says; kHead: bytes in front of the first group's codes;
// kGroupBytes: one group's codes; kSplit: scales per 16 inputs. A code stands for code - kOffset, where
// kOffset counts from the unsigned code even if the record holds it as int8 (kIsSigned). Eight lines of int8
// codes.
template <class D>
[[gnu::always_inline]] inline void read_bytes(const std::uint8_t* lines, Group<D>& out) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) {
    out.codes[i] = D::load(lines + i * 64);
    if constexpr (D::kFlipsSign) out.codes[i] = D::flip_sign(out.codes[i]);
  }
}

struct PackedQ8_0 {
  static constexpr int kGroups = 1, kHead = 32, kGroupBytes = 512, kLargest = 255, kOffset = 128;
  static constexpr bool kHasMinimum = false, kSplit = false, kIsSigned = true;
  template <class D>
  [[gnu::always_inline]] static void read(const std::uint8_t* record, int, int part, Group<D>& out) {
    out.scales[0] = D::load_halves(record + part * 16);
    read_lines<D, 8>(record + kHead + part * 32, out);
  }
};

template <class D>
[[gnu::always_inline]] inline void read_nibbles(const std::uint8_t* lines, Group<D>& out) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    const auto both = D::load(lines + i * 64);
    out.codes[2 * i] = D::template bits_at<0>(both, 15);
    out.codes[2 * i + 1] = D::template bits_at<4>(both, 15);
  }
}

// Two lines of 2-bit parts.
template <class D>
[[gnu::always_inline]] inline void read_pairs(const std::uint8_t* lines, Group<D>& out) {
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    const auto four = D::load(lines + i * 64);
    out.codes[4 * i] = D::template bits_at<0>(four, 3);
    out.codes[4 * i + 1] = D::template bits_at<2>(four, 3);
    out.codes[4 * i + 2] = D::template bits_at<4>(four, 3);
    out.codes[4 * i + 3] = D::template bits_at<6>(four, 3);
  }
}

// Above the kLow low bits of each code one more, from a line that has it for all steps.
template <class D, int kLow>
[[gnu::always_inline]] inline void add_top_bit(const std::uint8_t* line, Group<D>& out) {
  const auto top = D::load(line);
  constexpr int kMask = 1 << kLow;
  out.codes[0] = D::template with_bits<kLow>(out.codes[0], top, kMask);
  out.codes[1] = D::template with_bits<kLow - 1>(out.codes[1], top, kMask);
  out.codes[2] = D::template with_bits<kLow - 2>(out.codes[2], top, kMask);
  out.codes[3] = D::template with_bits<kLow - 3>(out.codes[3], top, kMask);
  out.codes[4] = D::template with_bits<kLow - 4>(out.codes[4], top, kMask);
  out.codes[5] = D::template with_bits<kLow - 5>(out.codes[5], top, kMask);
  out.codes[6] = D::template with_bits<kLow - 6>(out.codes[6], top, kMask);
  out.codes[7] = D::template with_bits<kLow - 7>(out.codes[7], top, kMask);
}

// Above the nibbles two more, from two lines.
template <class D>
[[gnu::always_inline]] inline void add_top_pair(const std::uint8_t* lines, Group<D>& out) {
#pragma GCC unroll 2
  for (int half = 0; half < 2; half++) {
    const auto top = D::load(lines + half * 64);
    auto* codes = out.codes + half * 4;
    codes[0] = D::template with_bits<4>(codes[0], top, 0x30);
    codes[1] = D::template with_bits<2>(codes[1], top, 0x30);
    codes[2] = D::template with_bits<0>(codes[2], top, 0x30);
    codes[3] = D::template with_bits<-2>(codes[3], top, 0x30);
  }
}

// The kBits lines of a group's codes: high bits in front of the low ones.
template <class D, int kBits>
[[gnu::always_inline]] inline void read_lines(const std::uint8_t* lines, Group<D>& out) {
  if constexpr (kBits == 8) {
    read_bytes<D>(lines, out);
  } else if constexpr (kBits >= 4) {
    read_nibbles<D>(lines + (kBits - 4) * 64, out);
    if constexpr (kBits == 5) add_top_bit<D, 4>(lines, out);
    if constexpr (kBits == 6) add_top_pair<D>(lines, out);
  } else {
    read_pairs<D>(lines + (kBits - 2) * 64, out);
    if constexpr (kBits == 3) add_top_bit<D, 2>(lines, out);
  }
}

struct PackedQ4_0 {
  static constexpr int kGroups = 1, kHead = 32, kGroupBytes = 256, kLargest = 15, kOffset = 8;
  static constexpr bool kHasMinimum = false, kSplit = false, kIsSigned = false;
  template <class D>
  [[gnu::always_inline]] static void read(const std::uint8_t* record, int, int part, Group<D>& out) {
    out.scales[0] = D::load_halves(record + part * 16);
    read_lines<D, 4>(record + kHead + part * 32, out);
  }
};

struct PackedQ4_1 {
  static constexpr int kGroups = 1, kHead = 64, kGroupBytes = 256, kLargest = 15, kOffset = 0;
  static constexpr bool kHasMinimum = true, kSplit = false, kIsSigned = false;
  template <class D>
  [[gnu::always_inline]] static void read(const std::uint8_t* record, int, int part, Group<D>& out) {
    out.scales[0] = D::load_halves(record + part * 16);
    out.addends[0] = D::load_halves(record + 32 + part * 16);
    read_lines<D, 4>(record + kHead + part * 32, out);
  }
};

struct PackedQ5_0 {
  static constexpr int kGroups = 1, kHead = 32, kGroupBytes = 320, kLargest = 31, kOffset = 16;
  static constexpr bool kHasMinimum = false, kSplit = false, kIsSigned = false;
  template <class D>
  [[gnu::always_inline]] static void read(const std::uint8_t* record, int, int part, Group<D>& out) {
    out.scales[0] = D::load_halves(record + part * 16);
    read_lines<D, 5>(record + kHead + part * 32, out);
  }
};

struct PackedQ5_1 {
  static constexpr int kGroups = 1, kHead = 64, kGroupBytes = 320, kLargest = 31, kOffset = 0;
  static constexpr bool kHasMinimum = true, kSplit = false, kIsSigned = false;
  template <class D>
  [[gnu::always_inline]] static void read(const std::uint8_t* record, int, int part, Group<D>& out) {
    out.scales[0] = D::load_halves(record + part * 16);
    out.addends[0] = D::load_halves(record + 32 + part * 16);
    read_lines<D, 5>(record + kHead + part * 32, out);
  }
};

// Scale and addend of a group of Q4_K and Q5_K, whose records have one head.
template <class D>
[[gnu::always_inline]] inline void read_k_scales(const std::uint8_t* record, int group, int part,
                                                 Group<D>& out) {
  const auto plane = [&](int i) { return D::load_bytes(record + 64 + i * 16 + part * 8); };
  typename D::Ints scale, minimum;
  if (group < 4) {
    scale = D::low_six(plane(group));
    minimum = D::low_six(plane(group + 4));
  } else {
    const auto shared = plane(group + 4);
    scale = D::template four_and_two<0>(shared, plane(group - 4));
    minimum = D::template four_and_two<4>(shared, plane(group));
  }
  out.scales[0] = D::mul(D::load_halves(record + part * 16), D::to_floats(scale));
  out.addends[0] = D::negate(D::mul(D::load_halves(record + 32 + part * 16), D::to_floats(minimum)));
}

struct PackedQ4_K {
  static constexpr int kGroups = 8, kHead = 256, kGroupBytes = 256, kLargest = 15, kOffset = 0;
  static constexpr bool kHasMinimum = true, kSplit = false, kIsSigned = false;
  template <class D>
  [[gnu::always_inline]] static void read(const std::uint8_t* record, int group, int part, Group<D>& out) {
    read_k_scales<D>(record, group, part, out);
    read_lines<D, 4>(record + kHead + group * kGroupBytes + part * 32, out);
  }
};

struct PackedQ5_K {
  static constexpr int kGroups = 8, kHead = 256, kGroupBytes = 320, kLargest = 31, kOffset = 0;
  static constexpr bool kHasMinimum = true, kSplit = false, kIsSigned = false;
  template <class D>
  [[gnu::always_inline]] static void read(const std::uint8_t* record, int group, int part, Group<D>& out) {
    read_k_scales<D>(record, group, part, out);
    read_lines<D, 5>(record + kHead + group * kGroupBytes + part * 32, out);
  }
};

struct PackedQ6_K {
  static constexpr int kGroups = 8, kHead = 288, kGroupBytes = 384, kLargest = 63, kOffset = 32;
  static constexpr bool kHasMinimum = false, kSplit = true, kIsSigned = false;
  template <class D>
  [[gnu::always_inline]] static void read(const std::uint8_t* record, int group, int part, Group<D>& out) {
    const auto d = D::load_halves(record + part * 16);
    const std::uint8_t* scales = record + 32 + group * 32 + part * 8;
    out.scales[0] = D::mul(d, D::to_floats(D::load_int8(scales)));
    out.scales[1] = D::mul(d, D::to_floats(D::load_int8(scales + 16)));
    read_lines<D, 6>(record + kHead + group * kGroupBytes + part * 32, out);
  }
};

// 6-bit scales, as q3_scale() finds them in the 12 bytes.
struct PackedQ3_K {
  static constexpr int kGroups = 8, kHead = 224, kGroupBytes = 192, kLargest = 7, kOffset = 4;
  static constexpr bool kHasMinimum = false, kSplit = true, kIsSigned = false;
  template <class D>
  [[gnu::always_inline]] static void read(const std::uint8_t* record, int group, int part, Group<D>& out) {
    const auto d = D::load_halves(record + part * 16);
    const auto plane = [&](int i) { return D::load_bytes(record + 32 + i * 16 + part * 8); };
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
      const int at = 2 * group + half;
      const auto scale = D::four_and_two(plane(at % 8), at / 8 * 4, plane(8 + at % 4), at / 4 * 2);
      out.scales[half] = D::mul(d, D::to_floats(D::template minus_offset<32>(scale, 1)));
    }
    read_lines<D, 3>(record + kHead + group * kGroupBytes + part * 32, out);
  }
};

struct PackedQ2_K {
  static constexpr int kGroups = 8, kHead = 320, kGroupBytes = 128, kLargest = 3, kOffset = 0;
  static constexpr bool kHasMinimum = true, kSplit = true, kIsSigned = false;
  template <class D>
  [[gnu::always_inline]] static void read(const std::uint8_t* record, int group, int part, Group<D>& out) {
    const auto d = D::load_halves(record + part * 16), dmin = D::load_halves(record + 32 + part * 16);
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
      const auto both = D::load_bytes(record + 64 + (2 * group + half) * 16 + part * 8);
      out.scales[half] = D::mul(d, D::to_floats(D::low_four(both)));
      out.addends[half] = D::negate(D::mul(dmin, D::to_floats(D::high_four(both))));
    }
    read_lines<D, 2>(record + kHead + group * kGroupBytes + part * 32, out);
  }
};

// What each nibble stands for, from a table of sixteen bytes.
template <class D>
[[gnu::always_inline]] inline void look_up(const std::uint8_t* table, bool flips_sign, Group<D>& out) {
  auto values = D::table(table);
  if constexpr (D::kFlipsSign)
    if (flips_sign) values = D::flip_sign(values);
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) out.codes[i] = D::look_up(values, out.codes[i]);
}

struct PackedIq4Nl {
  static constexpr int kGroups = 1, kHead = 32, kGroupBytes = 256, kLargest = 255, kOffset = 128;
  static constexpr bool kHasMinimum = false, kSplit = false, kIsSigned = true;
  template <class D>
  [[gnu::always_inline]] static void read(const std::uint8_t* record, int, int part, Group<D>& out) {
    out.scales[0] = D::load_halves(record + part * 16);
    read_lines<D, 4>(record + kHead + part * 32, out);
    look_up<D>(reinterpret_cast<const std::uint8_t*>(kIq4Values), true, out);
  }
};

// 6-bit scales, as iq4_xs_scale() finds them in the 6 bytes.
struct PackedIq4Xs {
  static constexpr int kGroups = 8, kHead = 128, kGroupBytes = 256, kLargest = 255, kOffset = 128;
  static constexpr bool kHasMinimum = false, kSplit = false, kIsSigned = true;
  template <class D>
  [[gnu::always_inline]] static void read(const std::uint8_t* record, int group, int part, Group<D>& out) {
    const auto plane = [&](int i) { return D::load_bytes(record + 32 + i * 16 + part * 8); };
    const auto scale = D::four_and_two(plane(2 + group / 2), group % 2 * 4, plane(group / 4), group % 4 * 2);
    out.scales[0] =
        D::mul(D::load_halves(record + part * 16), D::to_floats(D::template minus_offset<32>(scale, 1)));
    read_lines<D, 4>(record + kHead + group * kGroupBytes + part * 32, out);
    look_up<D>(reinterpret_cast<const std::uint8_t*>(kIq4Values), true, out);
  }
};

// Codes are 12 + twice the number: a table of sixteen. The scale is half of what its exponent says.
struct PackedMxfp4 {
  static constexpr int kGroups = 1, kHead = 16, kGroupBytes = 256, kLargest = 24, kOffset = 12;
  static constexpr bool kHasMinimum = false, kSplit = false, kIsSigned = false;
  template <class D>
  [[gnu::always_inline]] static void read(const std::uint8_t* record, int, int part, Group<D>& out) {
    static constexpr std::uint8_t kCodes[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
    out.scales[0] = D::load_halves_of_e8m0(record + part * 8);
    read_lines<D, 4>(record + kHead + part * 32, out);
    look_up<D>(kCodes, false, out);
  }
};

template <class D, ScaleType kScales>
[[gnu::always_inline]] inline typename D::Floats load_scales(const std::uint8_t* plane, int part) {
  if constexpr (kScales == ScaleType::f16) return D::load_halves(plane + part * 16);
  if constexpr (kScales == ScaleType::bf16) return D::load_bf16(plane + part * 16);
  if constexpr (kScales == ScaleType::f32) return D::load_floats(plane + part * 32);
}

// Numbers instead of codes; the tile reads them input by input.
template <ScaleType kNumbers>
struct PackedDense {
  static constexpr ScaleType kType = kNumbers;
};
template <class F>
inline constexpr bool kIsDense = false;
template <ScaleType kNumbers>
inline constexpr bool kIsDense<PackedDense<kNumbers>> = true;

// A record is as long as its scale reaches: 32, 64 or 128 inputs. One group a record is a form of its own, a
// quarter faster than a count that is read.
template <int kBits, ScaleType kScales, int kGroupsOfScale>
struct PackedAffine {
  static constexpr int kPlane = kScales == ScaleType::f32 ? 64 : 32;
  static constexpr int kGroups = kGroupsOfScale, kHead = 2 * kPlane, kGroupBytes = kBits * 64;
  static constexpr int kLargest = (1 << kBits) - 1, kOffset = 0;
  static constexpr bool kHasMinimum = true, kSplit = false, kIsSigned = kBits == 8;
  template <class D>
  [[gnu::always_inline]] static void read(const std::uint8_t* record, int group, int part, Group<D>& out) {
    out.scales[0] = load_scales<D, kScales>(record, part);
    out.addends[0] = load_scales<D, kScales>(record + kPlane, part);
    read_lines<D, kBits>(record + kHead + group * kGroupBytes + part * 32, out);
  }
};

// The widths that are rarer: one body for the three types of scales, told apart in each group.
template <class D>
[[gnu::always_inline]] inline typename D::Floats load_scales(ScaleType type, const std::uint8_t* plane,
                                                             int part) {
  if (type == ScaleType::bf16) return load_scales<D, ScaleType::bf16>(plane, part);
  if (type == ScaleType::f16) return load_scales<D, ScaleType::f16>(plane, part);
  return load_scales<D, ScaleType::f32>(plane, part);
}
template <int kBits, int kGroupsOfScale>
struct PackedOpenAffine {
  static constexpr int kGroups = kGroupsOfScale, kHead = 0, kGroupBytes = kBits * 64;
  static constexpr int kLargest = (1 << kBits) - 1, kOffset = 0;
  static constexpr bool kHasMinimum = true, kSplit = false, kIsSigned = kBits == 8;
  ScaleType scales;
  int plane() const { return scales == ScaleType::f32 ? 64 : 32; }
  int head() const { return 2 * plane(); }
  template <class D>
  [[gnu::always_inline]] void read(const std::uint8_t* record, int group, int part, Group<D>& out) const {
    out.scales[0] = load_scales<D>(scales, record, part);
    out.addends[0] = load_scales<D>(scales, record + plane(), part);
    read_lines<D, kBits>(record + head() + group * kGroupBytes + part * 32, out);
  }
};

// The format with what its type leaves open; its head.
template <class F>
[[gnu::always_inline]] inline F make_format(const PackedFormat& format) {
  if constexpr (requires { F::scales; })
    return F{format.scales};
  else
    return F{};
}
template <class F>
[[gnu::always_inline]] inline std::int64_t head_bytes(const F& format) {
  if constexpr (requires { F::scales; })
    return format.head();
  else
    return F::kHead;
}

// How far ahead of its use a group is asked for: more than the hardware looks ahead by itself.
inline constexpr std::int64_t kAhead = 2048;

template <class F>
[[gnu::always_inline]] inline void prefetch_group(const std::uint8_t* bytes) {
  constexpr int kBytes = F::kGroupBytes + F::kHead / (F::kGroups == 0 ? 1 : F::kGroups);
#pragma GCC unroll 10
  for (int line = 0; line < kBytes; line += 64) __builtin_prefetch(bytes + line);
}

}  // namespace
}  // namespace godwit::kernels
