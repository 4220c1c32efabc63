// The two hashes a hub names its blobs by: SHA-256 of the bytes (large files), or git's blob id, which is
// SHA-1 over "blob <size>\0" followed by the bytes (small files). Streaming, so a resumed download continues
// where it stopped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace godwit::hub {

enum class HashKind { sha256, git_sha1 };

class ContentHash {
 public:
  // `size` is the size of the whole content; git's id depends on it.
  ContentHash(HashKind kind, std::uint64_t size);
  ~ContentHash();
  ContentHash(ContentHash&&) noexcept;
  ContentHash& operator=(ContentHash&&) noexcept;

  void update(std::span<const std::byte> bytes);
  std::string hex_digest();  // once, at the end

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace godwit::hub
