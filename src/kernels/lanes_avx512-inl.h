// Sixteen f32 lanes as one AVX-512 register. lanes_scalar-inl.h says what each name means.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/level.h"
#include "kernels/transpose_avx2-inl.h"

#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512VL__) || !defined(__AVX512DQ__)
#error "this header belongs into files built with the flags of the avx512 level"
#endif

namespace godwit::kernels {
namespace {

struct Avx512Lanes {
  static constexpr Level kLevel = Level::avx512;
  static constexpr int kTileRows = 4;
  static constexpr int kTileVectors = 4;
  __m512 v;

  static Avx512Lanes set1(float x) { return {_mm512_set1_ps(x)}; }
  static Avx512Lanes zero() { return {_mm512_setzero_ps()}; }
  static Avx512Lanes iota() { return {_mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)}; }
  static Avx512Lanes load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Avx512Lanes load_f16(const std::uint16_t* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  static Avx512Lanes load_bf16(const std::uint16_t* p) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
  }
  static __m128i join(std::uint64_t low, std::uint64_t high) {
    return _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
  }
  static Avx512Lanes from_u8(std::uint64_t low, std::uint64_t high) {
    const __m128i bytes = join(low, high);
    return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))};
  }
  static Avx512Lanes from_i8(std::uint64_t low, std::uint64_t high) {
    const __m128i bytes = join(low, high);
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
  }
  template <int kBits>
  static Avx512Lanes lookup(const float* table, std::uint64_t low, std::uint64_t high) {
    const __m512i wide = _mm512_cvtepu8_epi32(join(low, high));
    if constexpr (kBits > 5) return {_mm512_i32gather_ps(wide, table, 4)};
    if constexpr (kBits == 5)
      return {_mm512_permutex2var_ps(_mm512_loadu_ps(table), wide, _mm512_loadu_ps(table + 16))};
    return {_mm512_permutexvar_ps(wide, _mm512_loadu_ps(table))};
  }
  static float half(std::uint16_t x) { return _cvtsh_ss(x); }
  static void transpose(const float* from, std::int64_t from_stride, float* to, std::int64_t to_stride) {
    transpose_avx2(from, from_stride, to, to_stride);
  }
  static __mmask16 below(std::int64_t n) { return static_cast<__mmask16>((1u << n) - 1u); }
  static Avx512Lanes load_first(const float* p, std::int64_t n) {
    return {_mm512_maskz_loadu_ps(below(n), p)};
  }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  void store_first(float* p, std::int64_t n) const { _mm512_mask_storeu_ps(p, below(n), v); }
  void store_int8(std::int8_t* p) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(v)));
  }
  float first() const { return _mm512_cvtss_f32(v); }

  friend Avx512Lanes operator+(Avx512Lanes a, Avx512Lanes b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend Avx512Lanes operator-(Avx512Lanes a, Avx512Lanes b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend Avx512Lanes operator*(Avx512Lanes a, Avx512Lanes b) { return {_mm512_mul_ps(a.v, b.v)}; }
  friend Avx512Lanes operator/(Avx512Lanes a, Avx512Lanes b) { return {_mm512_div_ps(a.v, b.v)}; }
  static Avx512Lanes fma(Avx512Lanes a, Avx512Lanes b, Avx512Lanes c) {
    return {_mm512_fmadd_ps(a.v, b.v, c.v)};
  }
  static Avx512Lanes max(Avx512Lanes a, Avx512Lanes b) { return {_mm512_max_ps(a.v, b.v)}; }
  static Avx512Lanes min(Avx512Lanes a, Avx512Lanes b) { return {_mm512_min_ps(a.v, b.v)}; }
  static Avx512Lanes abs(Avx512Lanes a) { return {_mm512_andnot_ps(_mm512_set1_ps(-0.0f), a.v)}; }
  static Avx512Lanes negate(Avx512Lanes a) { return {_mm512_xor_ps(_mm512_set1_ps(-0.0f), a.v)}; }
  static Avx512Lanes sqrt(Avx512Lanes a) { return {_mm512_sqrt_ps(a.v)}; }
  static Avx512Lanes where_less(Avx512Lanes a, Avx512Lanes b, Avx512Lanes yes, Avx512Lanes no) {
    return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), no.v, yes.v)};
  }
  static Avx512Lanes where_set(std::uint32_t bits, Avx512Lanes yes, Avx512Lanes no) {
    return {_mm512_mask_blend_ps(static_cast<__mmask16>(bits), no.v, yes.v)};
  }
  static Avx512Lanes power_of_two(Avx512Lanes a) {
    const __m512i shifted = _mm512_slli_epi32(_mm512_castps_si512(a.v), 23);
    return {_mm512_castsi512_ps(_mm512_add_epi32(shifted, _mm512_set1_epi32(0x3f800000)))};
  }
  float sum() const {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  float maximum() const {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
};

}  // namespace
}  // namespace godwit::kernels
