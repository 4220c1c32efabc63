// A cursor over untrusted little-endian bytes. Reading past the end throws Error{corrupt_file} naming the
// file, what was being read, and where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.h"

namespace godwit::checkpoint {

class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string origin)
      : bytes_(bytes), origin_(std::move(origin)) {}

  std::size_t position() const { return position_; }
  std::size_t remaining() const { return bytes_.size() - position_; }
  const std::string& origin() const { return origin_; }

  template <typename T>
  T take(std::string_view what) {
    static_assert(std::is_arithmetic_v<T>);
    need(sizeof(T), what);
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  // u64 length, then that many bytes, which are good as long as the bytes that are read.
  std::string_view take_text(std::string_view what) {
    const auto length = take<std::uint64_t>(what);
    need(length, what);
    const auto* const text = reinterpret_cast<const char*>(bytes_.data() + position_);
    position_ += static_cast<std::size_t>(length);
    return {text, static_cast<std::size_t>(length)};
  }
  std::string take_string(std::string_view what) { return std::string(take_text(what)); }

  // A count of items that take at least `item_bytes` each: one that cannot fit the rest of the file is
  // refused before anything is allocated for it.
  std::size_t take_count(std::size_t item_bytes, std::string_view what) {
    const auto count = take<std::uint64_t>(what);
    if (count > remaining() / item_bytes)
      fail(ErrorCode::corrupt_file, "gguf", "{}: {} is {}, more than the {} bytes left can hold", origin_,
           what, count, remaining());
    return static_cast<std::size_t>(count);
  }

 private:
  void need(std::uint64_t bytes, std::string_view what) const {
    if (bytes > remaining())
      fail(ErrorCode::corrupt_file, "gguf",
           "{}: the file ends at byte {} while reading {} ({} bytes wanted at {})", origin_, bytes_.size(),
           what, bytes, position_);
  }

  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
  std::string origin_;
};

}  // namespace godwit::checkpoint
