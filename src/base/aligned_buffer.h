// Uninitialised memory that starts on a cache line: what kernels read and write in whole vectors.
#pragma once

#include <cstddef>
#include <memory>

namespace godwit {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t bytes)
      : lines_(std::make_unique_for_overwrite<Line[]>((bytes + sizeof(Line) - 1) / sizeof(Line))),
        bytes_(bytes) {}

  std::byte* data() { return reinterpret_cast<std::byte*>(lines_.get()); }
  const std::byte* data() const { return reinterpret_cast<const std::byte*>(lines_.get()); }
  std::size_t size() const { return bytes_; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::unique_ptr<Line[]> lines_;
  std::size_t bytes_ = 0;
};

}  // namespace godwit
