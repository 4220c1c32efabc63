#include "hub/content_hash.h"

#include <openssl/evp.h>

#include <array>

#include "base/error.h"

namespace godwit::hub {

struct ContentHash::Context {
  EVP_MD_CTX* md = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(md); }
};

ContentHash::ContentHash(HashKind kind, std::uint64_t size) : context_(std::make_unique<Context>()) {
  const EVP_MD* algorithm = kind == HashKind::sha256 ? EVP_sha256() : EVP_sha1();
  if (!context_->md || EVP_DigestInit_ex(context_->md, algorithm, nullptr) != 1)
    fail(ErrorCode::internal, "hub", "the digest could not be initialised");
  if (kind == HashKind::git_sha1) {
    const std::string head = fmt::format("blob {}", size);
    update(std::as_bytes(std::span(head.c_str(), head.size() + 1)));  // the zero byte belongs to it
  }
}
ContentHash::~ContentHash() = default;
ContentHash::ContentHash(ContentHash&&) noexcept = default;
ContentHash& ContentHash::operator=(ContentHash&&) noexcept = default;

void ContentHash::update(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(context_->md, bytes.data(), bytes.size()) != 1)
    fail(ErrorCode::internal, "hub", "hashing failed");
}

std::string ContentHash::hex_digest() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(context_->md, digest.data(), &size) != 1)
    fail(ErrorCode::internal, "hub", "finishing a hash failed");
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace godwit::hub
