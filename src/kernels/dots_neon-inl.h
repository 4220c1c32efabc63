// Integer dots of the quantized matmul on NEON as every AArch64 has it: eight output rows in a pair of
// registers. See quant_matmul-inl.h.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "kernels/level.h"

#if !defined(__aarch64__)
#error "this header belongs into files of the neon level"
#endif

namespace godwit::kernels {
namespace {

struct NeonDots {
  static constexpr Level kLevel = Level::neon;
  static constexpr int kRows = 8;
  static constexpr int kTile = 4;
  static constexpr bool kFlipsSign = false;  // all products are of int8: codes without a sign stay below 128
  struct Bytes {
    uint8x16_t low, high;
  };
  struct Ints {
    int32x4_t low, high;
  };
  struct Floats {
    float32x4_t low, high;
  };

  static Bytes load(const std::uint8_t* p) { return {vld1q_u8(p), vld1q_u8(p + 16)}; }
  template <int kRight>
  static Bytes bits_at(Bytes b, int mask) {
    if constexpr (kRight != 0) b = {vshrq_n_u8(b.low, kRight), vshrq_n_u8(b.high, kRight)};
    if (mask == 255 >> kRight) return b;  // the shift left no others
    const uint8x16_t kept = vdupq_n_u8(static_cast<std::uint8_t>(mask));
    return {vandq_u8(b.low, kept), vandq_u8(b.high, kept)};
  }
  template <int kLeft>
  static Bytes with_bits(Bytes low, Bytes bits, int mask) {
    if constexpr (kLeft > 0) bits = {vshlq_n_u8(bits.low, kLeft), vshlq_n_u8(bits.high, kLeft)};
    if constexpr (kLeft < 0) bits = {vshrq_n_u8(bits.low, -kLeft), vshrq_n_u8(bits.high, -kLeft)};
    const uint8x16_t kept = vdupq_n_u8(static_cast<std::uint8_t>(mask));
    return {vorrq_u8(low.low, vandq_u8(bits.low, kept)), vorrq_u8(low.high, vandq_u8(bits.high, kept))};
  }

  static uint8x16_t table(const std::uint8_t* p) { return vld1q_u8(p); }
  static Bytes look_up(uint8x16_t table, Bytes nibbles) {
    return {vqtbl1q_u8(table, nibbles.low), vqtbl1q_u8(table, nibbles.high)};
  }

  static int8x16_t four_inputs(const std::int8_t* x) {
    std::int32_t word;
    __builtin_memcpy(&word, x, 4);
    return vreinterpretq_s8_s32(vdupq_n_s32(word));
  }
  // Four rows of `kSteps` steps. Each 16-bit lane takes one product a step, kRun of them before it could
  // overflow; then lanes are added in pairs to 32 bits, and pairs at last.
  template <int kRun, int kSteps, class Codes>
  [[gnu::always_inline]] static int32x4_t dot_of_four(Codes codes, const std::int8_t* x) {
    int32x4_t low_pairs = vdupq_n_s32(0), high_pairs = vdupq_n_s32(0);
#pragma GCC unroll 8
    for (int first = 0; first < kSteps; first += kRun) {
      const int8x16_t first_code = vreinterpretq_s8_u8(codes(first)),
                      first_input = four_inputs(x + 4 * first);
      int16x8_t low = vmull_s8(vget_low_s8(first_code), vget_low_s8(first_input));
      int16x8_t high = vmull_high_s8(first_code, first_input);
#pragma GCC unroll 8
      for (int i = first + 1; i < first + kRun; i++) {
        const int8x16_t code = vreinterpretq_s8_u8(codes(i)), input = four_inputs(x + 4 * i);
        low = vmlal_s8(low, vget_low_s8(code), vget_low_s8(input));
        high = vmlal_high_s8(high, code, input);
      }
      low_pairs = first == 0 ? vpaddlq_s16(low) : vpadalq_s16(low_pairs, low);
      high_pairs = first == 0 ? vpaddlq_s16(high) : vpadalq_s16(high_pairs, high);
    }
    return vpaddq_s32(low_pairs, high_pairs);
  }
  template <int kLargest, int kSteps>
  [[gnu::always_inline]] static Ints dot_of_eight(const Bytes* codes, const std::int8_t* x) {
    constexpr int kFit = 32767 / (kLargest * 127), kRun = kFit >= kSteps ? kSteps : kFit >= 2 ? 2 : 1;
    static_assert(kSteps % kRun == 0);
    return {dot_of_four<kRun, kSteps>([&](int i) { return codes[i].low; }, x),
            dot_of_four<kRun, kSteps>([&](int i) { return codes[i].high; }, x)};
  }
  template <int kLargest, int kSteps>
  [[gnu::always_inline]] static Ints dot(const Bytes* codes, const std::int8_t* x) {
    static_assert(kLargest <= 127);
    return dot_of_eight<kLargest, kSteps>(codes, x);
  }
  template <int kSteps>
  [[gnu::always_inline]] static Ints dot_signed(const Bytes* codes, const std::int8_t* x) {
    return dot_of_eight<128, kSteps>(codes, x);
  }
  template <int kOffset>
  static Ints minus_offset(Ints dot, std::int32_t sum) {
    const int32x4_t all = vdupq_n_s32(sum * kOffset);
    return {vsubq_s32(dot.low, all), vsubq_s32(dot.high, all)};
  }

  static Floats load_halves(const std::uint8_t* p) {
    const float16x8_t halves = vreinterpretq_f16_u8(vld1q_u8(p));
    return {vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)};
  }
  static Floats load_bf16(const std::uint8_t* p) {
    const uint16x8_t halves = vreinterpretq_u16_u8(vld1q_u8(p));
    return {vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vget_low_u16(halves)), 16)),
            vreinterpretq_f32_u32(vshlq_n_u32(vmovl_high_u16(halves), 16))};
  }
  static Floats load_floats(const std::uint8_t* p) {
    return {vreinterpretq_f32_u8(vld1q_u8(p)), vreinterpretq_f32_u8(vld1q_u8(p + 16))};
  }
  static Ints load_bytes(const std::uint8_t* p) {
    const uint16x8_t words = vmovl_u8(vld1_u8(p));
    return {vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(words))),
            vreinterpretq_s32_u32(vmovl_high_u16(words))};
  }
  static Ints load_int8(const std::uint8_t* p) {
    const int16x8_t words = vmovl_s8(vreinterpret_s8_u8(vld1_u8(p)));
    return {vmovl_s16(vget_low_s16(words)), vmovl_high_s16(words)};
  }
  // 2^(e - 128): subnormal for e < 2.
  static float32x4_t half_of_e8m0(int32x4_t e) {
    const int32x4_t normal = vshlq_n_s32(vsubq_s32(e, vdupq_n_s32(1)), 23);
    const int32x4_t tiny = vshlq_s32(vdupq_n_s32(0x00200000), e);
    return vreinterpretq_f32_s32(vbslq_s32(vcltq_s32(e, vdupq_n_s32(2)), tiny, normal));
  }
  static Floats load_halves_of_e8m0(const std::uint8_t* p) {
    const Ints e = load_bytes(p);
    return {half_of_e8m0(e.low), half_of_e8m0(e.high)};
  }
  // a >> right & mask, of numbers that are not negative.
  static Ints bits_of(Ints a, int right, int mask) {
    const int32x4_t shift = vdupq_n_s32(-right), kept = vdupq_n_s32(mask);
    return {vandq_s32(vshlq_s32(a.low, shift), kept), vandq_s32(vshlq_s32(a.high, shift), kept)};
  }
  static Ints low_four(Ints a) { return bits_of(a, 0, 15); }
  static Ints high_four(Ints a) { return bits_of(a, 4, 15); }
  static Ints low_six(Ints a) { return bits_of(a, 0, 63); }
  template <int kShift>
  static Ints four_and_two(Ints a, Ints b) {
    return four_and_two(a, kShift, b, 6);
  }
  // (a >> right_a & 15) | (b >> right_b & 3) << 4
  static Ints four_and_two(Ints a, int right_a, Ints b, int right_b) {
    const Ints low = bits_of(a, right_a, 15), high = bits_of(b, right_b, 3);
    return {vorrq_s32(low.low, vshlq_n_s32(high.low, 4)), vorrq_s32(low.high, vshlq_n_s32(high.high, 4))};
  }

  template <int kByte, bool kIsSigned>
  static int32x4_t byte_of_four(uint8x16_t b) {
    if constexpr (kIsSigned) return vshrq_n_s32(vshlq_n_s32(vreinterpretq_s32_u8(b), 24 - 8 * kByte), 24);
    uint32x4_t words = vreinterpretq_u32_u8(b);
    if constexpr (kByte != 0) words = vshrq_n_u32(words, 8 * kByte);
    return vreinterpretq_s32_u32(vandq_u32(words, vdupq_n_u32(255)));
  }
  template <int kByte, bool kIsSigned>
  static Ints byte_at(Bytes b) {
    return {byte_of_four<kByte, kIsSigned>(b.low), byte_of_four<kByte, kIsSigned>(b.high)};
  }

  static Floats to_floats(Ints a) { return {vcvtq_f32_s32(a.low), vcvtq_f32_s32(a.high)}; }
  static Floats zero() { return set1(0.0f); }
  static Floats set1(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }
  static Floats mul(Floats a, Floats b) { return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)}; }
  static Floats add(Floats a, Floats b) { return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)}; }
  static Floats negate(Floats a) { return {vnegq_f32(a.low), vnegq_f32(a.high)}; }
  static Floats fma(Floats a, Floats b, Floats c) {
    return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
  }
  static void store(float* y, Floats a, std::int64_t n, bool accumulate) {
    if (n >= kRows) {
      if (accumulate) a = add({vld1q_f32(y), vld1q_f32(y + 4)}, a);
      vst1q_f32(y, a.low);
      vst1q_f32(y + 4, a.high);
      return;
    }
    float room[kRows];
    vst1q_f32(room, a.low);
    vst1q_f32(room + 4, a.high);
    for (std::int64_t i = 0; i < n; i++) y[i] = accumulate ? y[i] + room[i] : room[i];
  }
};

}  // namespace
}  // namespace godwit::kernels
