#include "serve/tls_identity.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <filesystem>

#include "base/error.h"

namespace godwit::serve {
namespace {

std::string last_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason ? reason : "unknown";
}

void check_file(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error))
    fail(ErrorCode::io, "tls", "{}: there is no such file", file);
}

// OpenSSL would ask at the terminal.
int no_passphrase(char*, int, int, void*) { return 0; }

}  // namespace

TlsIdentity::TlsIdentity(const std::string& certificate_file, const std::string& key_file)
    : context_(SSL_CTX_new(TLS_server_method()), SSL_CTX_free) {
  check_file(certificate_file);
  check_file(key_file);
  SSL_CTX* context = context_.get();
  if (!context) fail(ErrorCode::internal, "tls", "OpenSSL has no context: {}", last_reason());
  ERR_clear_error();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_default_passwd_cb(context, no_passphrase);
  if (SSL_CTX_use_certificate_chain_file(context, certificate_file.c_str()) != 1)
    fail(ErrorCode::corrupt_file, "tls", "{}: no usable certificate: {}", certificate_file, last_reason());
  if (SSL_CTX_use_PrivateKey_file(context, key_file.c_str(), SSL_FILETYPE_PEM) != 1)
    fail(ErrorCode::corrupt_file, "tls", "{}: no usable key: {}", key_file, last_reason());
  if (SSL_CTX_check_private_key(context) != 1)
    fail(ErrorCode::invalid_argument, "tls", "{} is not the key of {}", key_file, certificate_file);
}

}  // namespace godwit::serve
