// Integer dots of the quantized matmul on AVX-512 with VNNI: sixteen output rows per register.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/level.h"

#if !defined(__AVX512VNNI__)
#error "this header belongs into files built with the flags of the avx512 level"
#endif

namespace godwit::kernels {
namespace {

struct Avx512Dots {
  static constexpr Level kLevel = Level::avx512;
  static constexpr int kRows = 16;
  static constexpr int kTile = 8;
  static constexpr bool kFlipsSign = true;  // vpdpbusd wants unsigned codes: int8 codes get an offset of 128
  using Bytes = __m512i;
  using Ints = __m512i;
  using Floats = __m512;

  static Bytes load(const std::uint8_t* p) { return _mm512_loadu_si512(p); }
  static Bytes flip_sign(Bytes b) { return _mm512_xor_si512(b, _mm512_set1_epi8(-128)); }
  // The bits of `mask` that stand kRight places higher in each byte.
  template <int kRight>
  static Bytes bits_at(Bytes b, int mask) {
    if constexpr (kRight != 0) b = _mm512_srli_epi16(b, kRight);
    return _mm512_and_si512(b, _mm512_set1_epi8(static_cast<char>(mask)));
  }
  template <int kLeft>
  static Bytes with_bits(Bytes low, Bytes bits, int mask) {
    const Bytes moved = kLeft >= 0 ? _mm512_slli_epi16(bits, kLeft >= 0 ? kLeft : 0)
                                   : _mm512_srli_epi16(bits, kLeft >= 0 ? 0 : -kLeft);
    constexpr int kAndOr = 0xea;  // (first & second) | third
    return _mm512_ternarylogic_epi32(moved, _mm512_set1_epi8(static_cast<char>(mask)), low, kAndOr);
  }

  // Sixteen bytes, to be indexed by nibbles.
  static Bytes table(const std::uint8_t* p) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Bytes look_up(Bytes table, Bytes nibbles) { return _mm512_shuffle_epi8(table, nibbles); }

  static __m512i four_inputs(const std::int8_t* x) {
    int word;
    __builtin_memcpy(&word, x, 4);
    return _mm512_set1_epi32(word);
  }
  template <int kLargest, int kSteps>
  [[gnu::always_inline]] static Ints dot(const Bytes* codes, const std::int8_t* x) {
    static_assert(kLargest <= 255);
    Ints total = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int i = 0; i < kSteps; i++) total = _mm512_dpbusd_epi32(total, codes[i], four_inputs(x + 4 * i));
    return total;
  }
  template <int kOffset>
  static Ints minus_offset(Ints dot, std::int32_t sum) {
    return kOffset == 0 ? dot : _mm512_sub_epi32(dot, _mm512_set1_epi32(sum * kOffset));
  }

  static Floats load_halves(const std::uint8_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Floats load_bf16(const std::uint8_t* p) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
  }
  static Floats load_floats(const std::uint8_t* p) { return _mm512_castsi512_ps(_mm512_loadu_si512(p)); }
  static Ints load_bytes(const std::uint8_t* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Ints load_int8(const std::uint8_t* p) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  // 2^(e - 128): subnormal for e < 2.
  static Floats load_halves_of_e8m0(const std::uint8_t* p) {
    const Ints e = load_bytes(p);
    const Ints normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    const Ints tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    const __mmask16 is_tiny = _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2));
    return _mm512_castsi512_ps(_mm512_mask_blend_epi32(is_tiny, normal, tiny));
  }
  static Ints low_four(Ints a) { return _mm512_and_si512(a, _mm512_set1_epi32(15)); }
  static Ints high_four(Ints a) { return _mm512_srli_epi32(a, 4); }
  static Ints low_six(Ints a) { return _mm512_and_si512(a, _mm512_set1_epi32(63)); }
  template <int kShift>
  static Ints four_and_two(Ints a, Ints b) {
    const Ints low = _mm512_and_si512(_mm512_srli_epi32(a, kShift), _mm512_set1_epi32(15));
    return _mm512_or_si512(low, _mm512_slli_epi32(_mm512_srli_epi32(b, 6), 4));
  }
  // (a >> right_a & 15) | (b >> right_b & 3) << 4
  static Ints four_and_two(Ints a, int right_a, Ints b, int right_b) {
    const Ints low = low_four(_mm512_srl_epi32(a, _mm_cvtsi32_si128(right_a)));
    const Ints high = _mm512_and_si512(_mm512_srl_epi32(b, _mm_cvtsi32_si128(right_b)), _mm512_set1_epi32(3));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 4));
  }

  // Byte kByte of each 32 bits.
  template <int kByte, bool kIsSigned>
  static Ints byte_at(Bytes b) {
    if constexpr (kIsSigned) return _mm512_srai_epi32(_mm512_slli_epi32(b, 24 - 8 * kByte), 24);
    if constexpr (kByte == 3) return _mm512_srli_epi32(b, 24);
    if constexpr (kByte != 0) b = _mm512_srli_epi32(b, 8 * kByte);
    return _mm512_and_si512(b, _mm512_set1_epi32(255));
  }

  static Floats to_floats(Ints a) { return _mm512_cvtepi32_ps(a); }
  static Floats zero() { return _mm512_setzero_ps(); }
  static Floats set1(float x) { return _mm512_set1_ps(x); }
  static Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats negate(Floats a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
  static Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static void store(float* y, Floats a, std::int64_t n, bool accumulate) {
    const auto mask = static_cast<__mmask16>(n >= kRows ? 0xffffu : (1u << n) - 1u);
    _mm512_mask_storeu_ps(y, mask, accumulate ? _mm512_add_ps(_mm512_maskz_loadu_ps(mask, y), a) : a);
  }
};

}  // namespace
}  // namespace godwit::kernels
