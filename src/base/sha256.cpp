#include "base/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <vector>

#include "base/error.h"

namespace godwit {

struct Sha256::Context {
  EVP_MD_CTX* md = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(md); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  if (!context_->md || EVP_DigestInit_ex(context_->md, EVP_sha256(), nullptr) != 1)
    fail(ErrorCode::internal, "sha256", "the digest could not be initialised");
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(context_->md, bytes.data(), bytes.size()) != 1)
    fail(ErrorCode::internal, "sha256", "update failed");
}

std::string Sha256::hex_digest() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(context_->md, digest.data(), &size) != 1)
    fail(ErrorCode::internal, "sha256", "finishing failed");
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

std::string sha256_of(std::string_view text) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.hex_digest();
}

std::string sha256_of_file(const std::filesystem::path& path,
                           const std::function<void(std::uint64_t)>& progress) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    fail(std::filesystem::exists(path) ? ErrorCode::io : ErrorCode::not_found, "sha256", "{}: cannot open",
         path.string());
  Sha256 hash;
  std::vector<char> buffer(1 << 20);
  std::uint64_t done = 0;
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto count = static_cast<std::size_t>(in.gcount());
    hash.update(std::as_bytes(std::span(buffer.data(), count)));
    done += count;
    if (progress) progress(done);
  }
  if (in.bad()) fail(ErrorCode::io, "sha256", "{}: read failed after {} bytes", path.string(), done);
  return hash.hex_digest();
}

}  // namespace godwit
