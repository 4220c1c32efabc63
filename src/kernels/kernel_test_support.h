// Shared by the kernel tests: exact-size buffers (a sanitizer sees an overread), seeded numbers, equality of
// bits.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "kernels/select.h"

namespace godwit::kernels {

inline constexpr double kUnit = 0x1p-24;  // half the distance between neighbouring f32 around 1

// A heap buffer of exactly n elements whose view starts `offset` elements into an allocation that ends with
// it.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::int64_t n, std::int64_t offset = 0)
      : n_(n), data_(new T[static_cast<std::size_t>(n + offset)]()), view_(data_.get() + offset) {}
  T* data() { return view_; }
  const T* data() const { return view_; }
  std::int64_t size() const { return n_; }
  T& operator[](std::int64_t i) { return view_[i]; }
  const T& operator[](std::int64_t i) const { return view_[i]; }

 private:
  std::int64_t n_;
  std::unique_ptr<T[]> data_;
  T* view_;
};

class Numbers {
 public:
  explicit Numbers(std::uint32_t seed) : engine_(seed) {}
  float normal(float spread = 1.0f) { return std::normal_distribution<float>(0.0f, spread)(engine_); }
  int integer(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  std::byte byte() { return static_cast<std::byte>(integer(0, 255)); }
  void fill(Buffer<float>& out, float spread = 1.0f) {
    for (std::int64_t i = 0; i < out.size(); i++) out[i] = normal(spread);
  }

 private:
  std::mt19937 engine_;
};

// Equal patterns; any NaN equals any NaN (which payload survives an operation is not part of a kernel's
// contract).
inline bool same_bits(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

inline ::testing::AssertionResult same_bits(const Buffer<float>& a, const Buffer<float>& b) {
  for (std::int64_t i = 0; i < a.size(); i++)
    if (!same_bits(a[i], b[i]))
      return ::testing::AssertionFailure()
             << "element " << i << " of " << a.size() << ": " << a[i] << " is not " << b[i];
  return ::testing::AssertionSuccess();
}

template <class T>
bool same_bytes(const Buffer<T>& a, const Buffer<T>& b) {
  return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0;
}

}  // namespace godwit::kernels
