// Sixteen f32 lanes as two AVX2 registers. lanes_scalar-inl.h says what each name means.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/level.h"
#include "kernels/transpose_avx2-inl.h"

#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__) || defined(__AVX512F__)
#error "this header belongs into files built with the flags of the avx2 level"
#endif

namespace godwit::kernels {
namespace {

struct Avx2Lanes {
  static constexpr Level kLevel = Level::avx2;
  static constexpr int kTileRows = 2;
  static constexpr int kTileVectors = 2;
  __m256 low, high;

  static Avx2Lanes set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static Avx2Lanes zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Avx2Lanes iota() {
    return {_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_setr_ps(8, 9, 10, 11, 12, 13, 14, 15)};
  }
  static Avx2Lanes load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static Avx2Lanes load_f16(const std::uint16_t* p) {
    const __m128i* q = reinterpret_cast<const __m128i*>(p);
    return {_mm256_cvtph_ps(_mm_loadu_si128(q)), _mm256_cvtph_ps(_mm_loadu_si128(q + 1))};
  }
  static __m256 widen_bf16(__m128i x) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
  }
  static Avx2Lanes load_bf16(const std::uint16_t* p) {
    const __m128i* q = reinterpret_cast<const __m128i*>(p);
    return {widen_bf16(_mm_loadu_si128(q)), widen_bf16(_mm_loadu_si128(q + 1))};
  }
  static __m128i join(std::uint64_t low, std::uint64_t high) {
    return _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
  }
  static Avx2Lanes from_u8(std::uint64_t low, std::uint64_t high) {
    const __m128i bytes = join(low, high);
    return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)))};
  }
  static Avx2Lanes from_i8(std::uint64_t low, std::uint64_t high) {
    const __m128i bytes = join(low, high);
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
  }
  template <int kBits>
  static __m256 lookup_eight(const float* table, __m256i codes) {
    if constexpr (kBits > 4) return _mm256_i32gather_ps(table, codes, 4);
    const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), codes);
    if constexpr (kBits < 4) return low;
    // The permutation looks at three bits; the fourth, moved to the sign, chooses between the halves.
    const __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), codes);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28)));
  }
  template <int kBits>
  static Avx2Lanes lookup(const float* table, std::uint64_t low, std::uint64_t high) {
    const __m128i bytes = join(low, high);
    return {lookup_eight<kBits>(table, _mm256_cvtepu8_epi32(bytes)),
            lookup_eight<kBits>(table, _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)))};
  }
  static float half(std::uint16_t x) { return _cvtsh_ss(x); }
  static void transpose(const float* from, std::int64_t from_stride, float* to, std::int64_t to_stride) {
    transpose_avx2(from, from_stride, to, to_stride);
  }
  // All ones in the lanes below n of eight.
  static __m256i below(std::int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Avx2Lanes load_first(const float* p, std::int64_t n) {
    return {_mm256_maskload_ps(p, below(n)),
            n > 8 ? _mm256_maskload_ps(p + 8, below(n - 8)) : _mm256_setzero_ps()};
  }
  void store(float* p) const {
    _mm256_storeu_ps(p, low);
    _mm256_storeu_ps(p + 8, high);
  }
  void store_first(float* p, std::int64_t n) const {
    _mm256_maskstore_ps(p, below(n), low);
    if (n > 8) _mm256_maskstore_ps(p + 8, below(n - 8), high);
  }
  void store_int8(std::int8_t* p) const {
    // packs works inside 128-bit halves, so the middle quarters change places afterwards.
    const __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(low), _mm256_cvtps_epi32(high));
    const __m256i ordered = _mm256_permute4x64_epi64(words, 0xd8);
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  }
  float first() const { return _mm256_cvtss_f32(low); }

  friend Avx2Lanes operator+(Avx2Lanes a, Avx2Lanes b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  friend Avx2Lanes operator-(Avx2Lanes a, Avx2Lanes b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }
  friend Avx2Lanes operator*(Avx2Lanes a, Avx2Lanes b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  friend Avx2Lanes operator/(Avx2Lanes a, Avx2Lanes b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
  }
  static Avx2Lanes fma(Avx2Lanes a, Avx2Lanes b, Avx2Lanes c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static Avx2Lanes max(Avx2Lanes a, Avx2Lanes b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
  }
  static Avx2Lanes min(Avx2Lanes a, Avx2Lanes b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
  }
  static Avx2Lanes abs(Avx2Lanes a) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high)};
  }
  static Avx2Lanes negate(Avx2Lanes a) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_xor_ps(sign, a.low), _mm256_xor_ps(sign, a.high)};
  }
  static Avx2Lanes sqrt(Avx2Lanes a) { return {_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)}; }
  static Avx2Lanes where_less(Avx2Lanes a, Avx2Lanes b, Avx2Lanes yes, Avx2Lanes no) {
    return {_mm256_blendv_ps(no.low, yes.low, _mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ)),
            _mm256_blendv_ps(no.high, yes.high, _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ))};
  }
  static __m256 choose(std::uint32_t bits, __m256 yes, __m256 no) {
    const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i own = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), each);
    return _mm256_blendv_ps(no, yes, _mm256_castsi256_ps(_mm256_cmpeq_epi32(own, each)));
  }
  static Avx2Lanes where_set(std::uint32_t bits, Avx2Lanes yes, Avx2Lanes no) {
    return {choose(bits, yes.low, no.low), choose(bits >> 8, yes.high, no.high)};
  }
  static __m256 exponent(__m256 a) {
    const __m256i one = _mm256_set1_epi32(0x3f800000);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_slli_epi32(_mm256_castps_si256(a), 23), one));
  }
  static Avx2Lanes power_of_two(Avx2Lanes a) { return {exponent(a.low), exponent(a.high)}; }
  float sum() const {
    const __m256 eight = _mm256_add_ps(low, high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  float maximum() const {
    const __m256 eight = _mm256_max_ps(low, high);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
};

}  // namespace
}  // namespace godwit::kernels
