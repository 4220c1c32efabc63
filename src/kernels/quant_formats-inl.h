// How the vector bodies read one group of 32 inputs from a packed record (packed_weights.h): eight registers
// of codes, one step each, and the group's scales. `part` picks the register's rows within the band: 0 or,
// with eight rows a register, 1.
#pragma once

#include <cstdint>

#include "kernels/packed_weights.h"

namespace godwit::kernels {
namespace {

template <class D>
struct Group {
  typename D::Bytes codes[8];
  typename D::Floats scales[2];
  typename D::Floats addend;  // times the activation sum; formats with a minimum only
};

// kHead: bytes in front of the first group's codes; kGroupBytes: one group's codes; kSplit: scales per 16
// inputs.
struct PackedQ8_0 {
  static constexpr int kGroups = 1, kHead = 32, kGroupBytes = 512, kLargest = 255, kOffset = 128;
  static constexpr bool kHasMinimum = false, kSplit = false, kIsSigned = true;
  template <class D>
  [[gnu::always_inline]] static void read(const std::uint8_t* record, int, int part, Group<D>& out) {
    out.scales[0] = D::load_halves(record + part * 16);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
      out.codes[i] = D::load(record + kHead + i * 64 + part * 32);
      if constexpr (D::kFlipsSign) out.codes[i] = D::flip_sign(out.codes[i]);
    }
  }
};

template <class D>
[[gnu::always_inline]] inline void read_nibbles(const std::uint8_t* lines, Group<D>& out) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    const auto both = D::load(lines + i * 64);
    out.codes[2 * i] = D::low_nibbles(both);
    out.codes[2 * i + 1] = D::high_nibbles(both);
  }
}

struct PackedQ4_0 {
  static constexpr int kGroups = 1, kHead = 32, kGroupBytes = 256, kLargest = 15, kOffset = 8;
  static constexpr bool kHasMinimum = false, kSplit = false, kIsSigned = false;
  template <class D>
  [[gnu::always_inline]] static void read(const std::uint8_t* record, int, int part, Group<D>& out) {
    out.scales[0] = D::load_halves(record + part * 16);
    read_nibbles<D>(record + kHead + part * 32, out);
  }
};

struct PackedQ4_1 {
  static constexpr int kGroups = 1, kHead = 64, kGroupBytes = 256, kLargest = 15, kOffset = 0;
  static constexpr bool kHasMinimum = true, kSplit = false, kIsSigned = false;
  template <class D>
  [[gnu::always_inline]] static void read(const std::uint8_t* record, int, int part, Group<D>& out) {
    out.scales[0] = D::load_halves(record + part * 16);
    out.addend = D::load_halves(record + 32 + part * 16);
    read_nibbles<D>(record + kHead + part * 32, out);
  }
};

struct PackedQ5_0 {
  static constexpr int kGroups = 1, kHead = 32, kGroupBytes = 320, kLargest = 31, kOffset = 16;
  static constexpr bool kHasMinimum = false, kSplit = false, kIsSigned = false;
  template <class D>
  [[gnu::always_inline]] static void read(const std::uint8_t* record, int, int part, Group<D>& out) {
    out.scales[0] = D::load_halves(record + part * 16);
    const auto fifth = D::load(record + kHead + part * 32);
    read_nibbles<D>(record + kHead + 64 + part * 32, out);
    out.codes[0] = D::template with_bits<4>(out.codes[0], fifth, 0x10);
    out.codes[1] = D::template with_bits<3>(out.codes[1], fifth, 0x10);
    out.codes[2] = D::template with_bits<2>(out.codes[2], fifth, 0x10);
    out.codes[3] = D::template with_bits<1>(out.codes[3], fifth, 0x10);
    out.codes[4] = D::template with_bits<0>(out.codes[4], fifth, 0x10);
    out.codes[5] = D::template with_bits<-1>(out.codes[5], fifth, 0x10);
    out.codes[6] = D::template with_bits<-2>(out.codes[6], fifth, 0x10);
    out.codes[7] = D::template with_bits<-3>(out.codes[7], fifth, 0x10);
  }
};

struct PackedQ4_K {
  static constexpr int kGroups = 8, kHead = 256, kGroupBytes = 256, kLargest = 15, kOffset = 0;
  static constexpr bool kHasMinimum = true, kSplit = false, kIsSigned = false;
  template <class D>
  [[gnu::always_inline]] static void read(const std::uint8_t* record, int group, int part, Group<D>& out) {
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
    out.addend = D::negate(D::mul(D::load_halves(record + 32 + part * 16), D::to_floats(minimum)));
    read_nibbles<D>(record + kHead + group * kGroupBytes + part * 32, out);
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
    const std::uint8_t* lines = record + kHead + group * kGroupBytes + part * 32;
    read_nibbles<D>(lines + 128, out);
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
      const auto high = D::load(lines + half * 64);
      auto* codes = out.codes + half * 4;
      codes[0] = D::template with_bits<4>(codes[0], high, 0x30);
      codes[1] = D::template with_bits<2>(codes[1], high, 0x30);
      codes[2] = D::template with_bits<0>(codes[2], high, 0x30);
      codes[3] = D::template with_bits<-2>(codes[3], high, 0x30);
    }
  }
};

}  // namespace
}  // namespace godwit::kernels
