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
  static Bytes low_nibbles(Bytes b) { return _mm512_and_si512(b, _mm512_set1_epi8(15)); }
  static Bytes high_nibbles(Bytes b) { return low_nibbles(_mm512_srli_epi16(b, 4)); }
  template <int kLeft>
  static Bytes with_bits(Bytes low, Bytes bits, int mask) {
    const Bytes moved = kLeft >= 0 ? _mm512_slli_epi16(bits, kLeft >= 0 ? kLeft : 0)
                                   : _mm512_srli_epi16(bits, kLeft >= 0 ? 0 : -kLeft);
    constexpr int kAndOr = 0xea;  // (first & second) | third
    return _mm512_ternarylogic_epi32(moved, _mm512_set1_epi8(static_cast<char>(mask)), low, kAndOr);
  }

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
  static Ints load_bytes(const std::uint8_t* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Ints load_int8(const std::uint8_t* p) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Ints low_six(Ints a) { return _mm512_and_si512(a, _mm512_set1_epi32(63)); }
  template <int kShift>
  static Ints four_and_two(Ints a, Ints b) {
    const Ints low = _mm512_and_si512(_mm512_srli_epi32(a, kShift), _mm512_set1_epi32(15));
    return _mm512_or_si512(low, _mm512_slli_epi32(_mm512_srli_epi32(b, 6), 4));
  }

  static Floats to_floats(Ints a) { return _mm512_cvtepi32_ps(a); }
  static Floats zero() { return _mm512_setzero_ps(); }
  static Floats set1(float x) { return _mm512_set1_ps(x); }
  static Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats negate(Floats a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
  static Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static void store(float* y, Floats a, std::int64_t n, bool accumulate) {
    const auto mask = static_cast<__mmask16>(n >= kRows ? 0xffffu : (1u << n) - 1u);
    _mm512_mask_storeu_ps(y, mask, accumulate ? _mm512_add_ps(_mm512_maskz_loadu_ps(mask, y), a) : a);
  }
};

}  // namespace
}  // namespace godwit::kernels
