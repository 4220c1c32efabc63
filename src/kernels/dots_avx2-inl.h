// Integer dots of the quantized matmul on AVX2: eight output rows per register. See quant_matmul-inl.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/level.h"

namespace godwit::kernels {
namespace {

struct Avx2Dots {
  static constexpr Level kLevel = Level::avx2;
  static constexpr int kRows = 8;            // output rows in one register
  static constexpr int kTile = 4;            // activation rows that share one decoded group
  static constexpr bool kFlipsSign = false;  // int8 codes are multiplied as they are
  using Bytes = __m256i;
  using Ints = __m256i;
  using Floats = __m256;

  static Bytes load(const std::uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  // The bits of `mask` that stand kRight places higher in each byte.
  template <int kRight>
  static Bytes bits_at(Bytes b, int mask) {
    if constexpr (kRight != 0) b = _mm256_srli_epi16(b, kRight);
    return _mm256_and_si256(b, _mm256_set1_epi8(static_cast<char>(mask)));
  }
  // low | (bits moved left by kLeft, right if negative) & mask
  template <int kLeft>
  static Bytes with_bits(Bytes low, Bytes bits, int mask) {
    const Bytes moved = kLeft >= 0 ? _mm256_slli_epi16(bits, kLeft) : _mm256_srli_epi16(bits, -kLeft);
    return _mm256_or_si256(low, _mm256_and_si256(moved, _mm256_set1_epi8(static_cast<char>(mask))));
  }

  // Sixteen bytes, to be indexed by nibbles.
  static Bytes table(const std::uint8_t* p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Bytes look_up(Bytes table, Bytes nibbles) { return _mm256_shuffle_epi8(table, nibbles); }

  static __m256i four_inputs(const std::int8_t* x) {
    int word;
    __builtin_memcpy(&word, x, 4);
    return _mm256_set1_epi32(word);
  }
  template <int kCount>
  [[gnu::always_inline]] static __m256i product_run(const Bytes* codes, const std::int8_t* x) {
    const __m256i last = _mm256_maddubs_epi16(codes[kCount - 1], four_inputs(x + 4 * (kCount - 1)));
    if constexpr (kCount == 1) return last;
    if constexpr (kCount > 1) return _mm256_add_epi16(product_run<kCount - 1>(codes, x), last);
  }
  // Sum over `kSteps` steps of codes times inputs; codes lie in [0, kLargest]. Products are summed in 16 bits
  // for as many steps as cannot overflow: two products of kLargest * 127 a step.
  template <int kLargest, int kSteps>
  [[gnu::always_inline]] static Ints dot(const Bytes* codes, const std::int8_t* x) {
    constexpr int kFit = 32767 / (kLargest * 254), kRun = kFit >= 8 ? 8 : kFit >= 4 ? 4 : kFit >= 2 ? 2 : 1;
    const __m256i one = _mm256_set1_epi16(1);
    Ints total = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int first = 0; first < kSteps; first += kRun) {
      const __m256i run = product_run < kRun < kSteps ? kRun : kSteps > (codes + first, x + 4 * first);
      total = _mm256_add_epi32(total, _mm256_madd_epi16(run, one));
    }
    return total;
  }
  // Codes are int8: |code| times the input with the code's sign. 128 * 127 * 2 still fits 16 bits.
  template <int kSteps>
  [[gnu::always_inline]] static Ints dot_signed(const Bytes* codes, const std::int8_t* x) {
    const __m256i one = _mm256_set1_epi16(1);
    Ints total = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int i = 0; i < kSteps; i++) {
      const __m256i signed_x = _mm256_sign_epi8(four_inputs(x + 4 * i), codes[i]);
      const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(codes[i]), signed_x);
      total = _mm256_add_epi32(total, _mm256_madd_epi16(pairs, one));
    }
    return total;
  }
  template <int kOffset>
  static Ints minus_offset(Ints dot, std::int32_t sum) {
    return kOffset == 0 ? dot : _mm256_sub_epi32(dot, _mm256_set1_epi32(sum * kOffset));
  }

  static Floats load_halves(const std::uint8_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Floats load_bf16(const std::uint8_t* p) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
  static Floats load_floats(const std::uint8_t* p) {
    return _mm256_castsi256_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Ints load_bytes(const std::uint8_t* p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  static Ints load_int8(const std::uint8_t* p) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  // 2^(e - 128): subnormal for e < 2.
  static Floats load_halves_of_e8m0(const std::uint8_t* p) {
    const Ints e = load_bytes(p);
    const Ints normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    const Ints tiny = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, tiny, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
  }
  static Ints low_four(Ints a) { return _mm256_and_si256(a, _mm256_set1_epi32(15)); }
  static Ints high_four(Ints a) { return _mm256_srli_epi32(a, 4); }
  static Ints low_six(Ints a) { return _mm256_and_si256(a, _mm256_set1_epi32(63)); }
  // (a >> kShift & 15) | (b >> 6) << 4
  template <int kShift>
  static Ints four_and_two(Ints a, Ints b) {
    const Ints low = _mm256_and_si256(_mm256_srli_epi32(a, kShift), _mm256_set1_epi32(15));
    return _mm256_or_si256(low, _mm256_slli_epi32(_mm256_srli_epi32(b, 6), 4));
  }
  // (a >> right_a & 15) | (b >> right_b & 3) << 4
  static Ints four_and_two(Ints a, int right_a, Ints b, int right_b) {
    const Ints low = low_four(_mm256_srl_epi32(a, _mm_cvtsi32_si128(right_a)));
    const Ints high = _mm256_and_si256(_mm256_srl_epi32(b, _mm_cvtsi32_si128(right_b)), _mm256_set1_epi32(3));
    return _mm256_or_si256(low, _mm256_slli_epi32(high, 4));
  }

  // Byte kByte of each 32 bits.
  template <int kByte, bool kIsSigned>
  static Ints byte_at(Bytes b) {
    if constexpr (kIsSigned) return _mm256_srai_epi32(_mm256_slli_epi32(b, 24 - 8 * kByte), 24);
    if constexpr (kByte == 3) return _mm256_srli_epi32(b, 24);
    if constexpr (kByte != 0) b = _mm256_srli_epi32(b, 8 * kByte);
    return _mm256_and_si256(b, _mm256_set1_epi32(255));
  }

  static Floats to_floats(Ints a) { return _mm256_cvtepi32_ps(a); }
  static Floats zero() { return _mm256_setzero_ps(); }
  static Floats set1(float x) { return _mm256_set1_ps(x); }
  static Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  static Floats negate(Floats a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f)); }
  static Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  // The first n of the lanes; y += a when accumulating.
  static void store(float* y, Floats a, std::int64_t n, bool accumulate) {
    if (n >= kRows) {
      _mm256_storeu_ps(y, accumulate ? _mm256_add_ps(_mm256_loadu_ps(y), a) : a);
      return;
    }
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lanes);
    _mm256_maskstore_ps(y, mask, accumulate ? _mm256_add_ps(_mm256_maskload_ps(y, mask), a) : a);
  }
};

}  // namespace
}  // namespace godwit::kernels
