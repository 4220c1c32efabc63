// Overflow-checked arithmetic for sizes that come from files and requests. Each throws Error{corrupt_file}
// that carries `what` (what was being computed, e.g. "model.gguf: bytes of tensor blk.0.attn_q.weight").
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace godwit {

template <std::unsigned_integral T>
T checked_add(T a, std::type_identity_t<T> b, std::string_view what) {
  T sum;
  if (__builtin_add_overflow(a, b, &sum))
    fail(ErrorCode::corrupt_file, "size", "{}: {} + {} overflows", what, a, b);
  return sum;
}

template <std::unsigned_integral T>
T checked_mul(T a, std::type_identity_t<T> b, std::string_view what) {
  T product;
  if (__builtin_mul_overflow(a, b, &product))
    fail(ErrorCode::corrupt_file, "size", "{}: {} * {} overflows", what, a, b);
  return product;
}

// Converts between integer types or throws when the value does not fit.
template <std::integral To, std::integral From>
To checked_cast(From value, std::string_view what) {
  if (!std::in_range<To>(value)) fail(ErrorCode::corrupt_file, "size", "{}: {} is out of range", what, value);
  return static_cast<To>(value);
}

}  // namespace godwit
