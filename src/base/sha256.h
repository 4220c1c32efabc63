// SHA-256 over OpenSSL: streaming, and whole files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace godwit {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  // 64 lower-case hexadecimal digits. The object may not be used afterwards.
  std::string hex_digest();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string sha256_of(std::string_view text);

// Hashes a file in 1 MiB pieces; `progress` (may be empty) receives the bytes done so far. Throws Error{io,
// not_found}.
std::string sha256_of_file(const std::filesystem::path& path,
                           const std::function<void(std::uint64_t)>& progress = {});

}  // namespace godwit
