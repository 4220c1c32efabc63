// Calls into the Rust library from C++: owned buffers, and a failed status as Error.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "text/ffi.h"

namespace godwit::text {

// A buffer of the Rust side, freed on scope exit.
class RustBytes {
 public:
  RustBytes() = default;
  ~RustBytes() { godwit_bytes_free(bytes_); }
  RustBytes(const RustBytes&) = delete;
  RustBytes& operator=(const RustBytes&) = delete;

  GodwitBytes* out() { return &bytes_; }
  std::string_view view() const { return {reinterpret_cast<const char*>(bytes_.data), bytes_.size}; }

 private:
  GodwitBytes bytes_{nullptr, 0};
};

// Runs `call(GodwitBytes* error)`; a status other than ok is Error{its code} "[tag] origin: message".
template <typename Call>
void rust_call(std::string_view tag, std::string_view origin, Call&& call) {
  RustBytes error;
  const GodwitStatus status = std::forward<Call>(call)(error.out());
  if (status == godwit_ok) return;
  ErrorCode code = ErrorCode::internal;
  if (status == godwit_invalid_argument) code = ErrorCode::invalid_argument;
  if (status == godwit_corrupt) code = ErrorCode::corrupt_file;
  if (status == godwit_overloaded) code = ErrorCode::overloaded;
  fail(code, tag, "{}: {}", origin, error.view());
}

}  // namespace godwit::text
