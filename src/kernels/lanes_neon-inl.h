// Sixteen f32 lanes as four NEON registers. lanes_scalar-inl.h says what each name means. Comparisons and
// choices are written out where NEON has an instruction of that name (vmaxq, vminq): its NaN is not the
// definition's.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "kernels/level.h"

#if !defined(__aarch64__)
#error "this header belongs into files of the neon level"
#endif

namespace godwit::kernels {
namespace {

struct NeonLanes {
  static constexpr Level kLevel = Level::neon;
  static constexpr int kTileRows = 4;
  static constexpr int kTileVectors = 1;
  float32x4_t quarter[4];

  // fn(i) for the lanes from 4 i on.
  template <class Fn>
  [[gnu::always_inline]] static NeonLanes each(Fn fn) {
    return {{fn(0), fn(1), fn(2), fn(3)}};
  }
  static NeonLanes set1(float x) {
    const float32x4_t all = vdupq_n_f32(x);
    return {{all, all, all, all}};
  }
  static NeonLanes zero() { return set1(0.0f); }
  static NeonLanes iota() {
    static constexpr float kIndex[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return load(kIndex);
  }
  static NeonLanes load(const float* p) {
    return each([&](int i) { return vld1q_f32(p + 4 * i); });
  }
  static NeonLanes load_f16(const std::uint16_t* p) {
    return each([&](int i) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * i))); });
  }
  static NeonLanes load_bf16(const std::uint16_t* p) {
    return each(
        [&](int i) { return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vld1_u16(p + 4 * i)), 16)); });
  }
  static NeonLanes from_u8(std::uint64_t low, std::uint64_t high) {
    const uint16x8_t words[2] = {vmovl_u8(vcreate_u8(low)), vmovl_u8(vcreate_u8(high))};
    const auto widen = [](uint16x4_t x) { return vcvtq_f32_u32(vmovl_u16(x)); };
    return {{widen(vget_low_u16(words[0])), widen(vget_high_u16(words[0])), widen(vget_low_u16(words[1])),
             widen(vget_high_u16(words[1]))}};
  }
  static NeonLanes from_i8(std::uint64_t low, std::uint64_t high) {
    const int16x8_t words[2] = {vmovl_s8(vcreate_s8(low)), vmovl_s8(vcreate_s8(high))};
    const auto widen = [](int16x4_t x) { return vcvtq_f32_s32(vmovl_s16(x)); };
    return {{widen(vget_low_s16(words[0])), widen(vget_high_s16(words[0])), widen(vget_low_s16(words[1])),
             widen(vget_high_s16(words[1]))}};
  }
  // Floats by the places of their bytes: 4 code, 4 code + 1, ... in up to four registers of the table.
  template <int kBits>
  static NeonLanes lookup(const float* table, std::uint64_t low, std::uint64_t high) {
    if constexpr (kBits > 4) {
      float room[16];
      for (int i = 0; i < 16; i++) room[i] = table[((i < 8 ? low : high) >> (8 * (i % 8))) & 255];
      return load(room);
    } else {
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(table);
      const uint8x16_t codes = vshlq_n_u8(vcombine_u8(vcreate_u8(low), vcreate_u8(high)), 2);
      static constexpr std::uint8_t kCode[16] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
      const uint8x16_t inside = vreinterpretq_u8_u32(vdupq_n_u32(0x03020100u));
      return each([&](int i) {
        const uint8x16_t own = vaddq_u8(vld1q_u8(kCode), vdupq_n_u8(static_cast<std::uint8_t>(4 * i)));
        const uint8x16_t places = vaddq_u8(vqtbl1q_u8(codes, own), inside);
        if constexpr (kBits <= 2) return vreinterpretq_f32_u8(vqtbl1q_u8(vld1q_u8(bytes), places));
        if constexpr (kBits == 3) {
          const uint8x16x2_t eight = {{vld1q_u8(bytes), vld1q_u8(bytes + 16)}};
          return vreinterpretq_f32_u8(vqtbl2q_u8(eight, places));
        }
        const uint8x16x4_t sixteen = {
            {vld1q_u8(bytes), vld1q_u8(bytes + 16), vld1q_u8(bytes + 32), vld1q_u8(bytes + 48)}};
        return vreinterpretq_f32_u8(vqtbl4q_u8(sixteen, places));
      });
    }
  }
  static float half(std::uint16_t x) {
    return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(x))), 0);
  }
  static float32x4_t pairs_of(bool is_upper, float32x4_t a, float32x4_t b) {
    const float64x2_t c = vreinterpretq_f64_f32(a), d = vreinterpretq_f64_f32(b);
    return vreinterpretq_f32_f64(is_upper ? vtrn2q_f64(c, d) : vtrn1q_f64(c, d));
  }
  static void transpose(const float* from, std::int64_t from_stride, float* to, std::int64_t to_stride) {
    for (int i = 0; i < 16; i += 4)
      for (int j = 0; j < 16; j += 4) {
        const float* square = from + i * from_stride + j;
        const float32x4_t a = vld1q_f32(square), b = vld1q_f32(square + from_stride),
                          c = vld1q_f32(square + 2 * from_stride), d = vld1q_f32(square + 3 * from_stride);
        const float32x4_t even_ab = vtrn1q_f32(a, b), odd_ab = vtrn2q_f32(a, b);
        const float32x4_t even_cd = vtrn1q_f32(c, d), odd_cd = vtrn2q_f32(c, d);
        float* turned = to + j * to_stride + i;
        vst1q_f32(turned, pairs_of(false, even_ab, even_cd));
        vst1q_f32(turned + to_stride, pairs_of(false, odd_ab, odd_cd));
        vst1q_f32(turned + 2 * to_stride, pairs_of(true, even_ab, even_cd));
        vst1q_f32(turned + 3 * to_stride, pairs_of(true, odd_ab, odd_cd));
      }
  }
  static NeonLanes load_first(const float* p, std::int64_t n) {
    float room[16] = {};
    for (std::int64_t i = 0; i < n; i++) room[i] = p[i];
    return load(room);
  }
  void store(float* p) const {
    vst1q_f32(p, quarter[0]);
    vst1q_f32(p + 4, quarter[1]);
    vst1q_f32(p + 8, quarter[2]);
    vst1q_f32(p + 12, quarter[3]);
  }
  void store_first(float* p, std::int64_t n) const {
    float room[16];
    store(room);
    for (std::int64_t i = 0; i < n; i++) p[i] = room[i];
  }
  void store_int8(std::int8_t* p) const {
    const auto narrow = [](float32x4_t a, float32x4_t b) {
      return vqmovn_s16(vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(a)), vqmovn_s32(vcvtnq_s32_f32(b))));
    };
    vst1q_s8(p, vcombine_s8(narrow(quarter[0], quarter[1]), narrow(quarter[2], quarter[3])));
  }
  float first() const { return vgetq_lane_f32(quarter[0], 0); }

  friend NeonLanes operator+(NeonLanes a, NeonLanes b) {
    return each([&](int i) { return vaddq_f32(a.quarter[i], b.quarter[i]); });
  }
  friend NeonLanes operator-(NeonLanes a, NeonLanes b) {
    return each([&](int i) { return vsubq_f32(a.quarter[i], b.quarter[i]); });
  }
  friend NeonLanes operator*(NeonLanes a, NeonLanes b) {
    return each([&](int i) { return vmulq_f32(a.quarter[i], b.quarter[i]); });
  }
  friend NeonLanes operator/(NeonLanes a, NeonLanes b) {
    return each([&](int i) { return vdivq_f32(a.quarter[i], b.quarter[i]); });
  }
  static NeonLanes fma(NeonLanes a, NeonLanes b, NeonLanes c) {
    return each([&](int i) { return vfmaq_f32(c.quarter[i], a.quarter[i], b.quarter[i]); });
  }
  static float32x4_t larger(float32x4_t a, float32x4_t b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
  static NeonLanes max(NeonLanes a, NeonLanes b) {
    return each([&](int i) { return larger(a.quarter[i], b.quarter[i]); });
  }
  static NeonLanes min(NeonLanes a, NeonLanes b) { return where_less(a, b, a, b); }
  static NeonLanes abs(NeonLanes a) {
    return each([&](int i) { return vabsq_f32(a.quarter[i]); });
  }
  static NeonLanes negate(NeonLanes a) {
    return each([&](int i) { return vnegq_f32(a.quarter[i]); });
  }
  static NeonLanes sqrt(NeonLanes a) {
    return each([&](int i) { return vsqrtq_f32(a.quarter[i]); });
  }
  static NeonLanes where_less(NeonLanes a, NeonLanes b, NeonLanes yes, NeonLanes no) {
    return each([&](int i) {
      return vbslq_f32(vcltq_f32(a.quarter[i], b.quarter[i]), yes.quarter[i], no.quarter[i]);
    });
  }
  static NeonLanes where_set(std::uint32_t bits, NeonLanes yes, NeonLanes no) {
    static constexpr std::uint32_t kBit[16] = {1u << 0,  1u << 1,  1u << 2,  1u << 3, 1u << 4,  1u << 5,
                                               1u << 6,  1u << 7,  1u << 8,  1u << 9, 1u << 10, 1u << 11,
                                               1u << 12, 1u << 13, 1u << 14, 1u << 15};
    return each([&](int i) {
      return vbslq_f32(vtstq_u32(vdupq_n_u32(bits), vld1q_u32(kBit + 4 * i)), yes.quarter[i], no.quarter[i]);
    });
  }
  static NeonLanes power_of_two(NeonLanes a) {
    return each([&](int i) {
      const uint32x4_t shifted = vshlq_n_u32(vreinterpretq_u32_f32(a.quarter[i]), 23);
      return vreinterpretq_f32_u32(vaddq_u32(shifted, vdupq_n_u32(0x3f800000u)));
    });
  }
  float sum() const {
    const float32x4_t four = vaddq_f32(vaddq_f32(quarter[0], quarter[2]), vaddq_f32(quarter[1], quarter[3]));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
  }
  float maximum() const {
    const float32x4_t four = larger(larger(quarter[0], quarter[2]), larger(quarter[1], quarter[3]));
    const float32x2_t low = vget_low_f32(four), high = vget_high_f32(four);
    const float32x2_t two = vbsl_f32(vcgt_f32(low, high), low, high);
    const float a = vget_lane_f32(two, 0), b = vget_lane_f32(two, 1);
    return a > b ? a : b;
  }
};

}  // namespace
}  // namespace godwit::kernels
