// The certificate and key that a server shows to its clients.
#pragma once

#include <memory>
#include <string>

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace godwit::serve {

class TlsIdentity {
 public:
  // PEM files: the certificate with its chain behind it, and the key, without a passphrase. Throws Error{io}
  // or Error{corrupt_file} naming the file, and Error{invalid_argument} when the two do not belong together.
  TlsIdentity(const std::string& certificate_file, const std::string& key_file);

  // TLS 1.2 or newer. Usable from several threads; a connection takes a reference of its own.
  ssl_ctx_st* context() const { return context_.get(); }

 private:
  std::shared_ptr<ssl_ctx_st> context_;
};

}  // namespace godwit::serve
