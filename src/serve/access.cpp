#include "serve/access.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>

#include <algorithm>

#include "base/sha256.h"
#include "serve/request_error.h"

namespace godwit::serve {
namespace {

// Hashes have one length, so the comparison says nothing about the key, not even how long it is.
bool matches_any(std::string_view key, const std::vector<std::string>& hashes) {
  const std::string hash = sha256_of(key);
  bool found = false;
  for (const auto& known : hashes) found |= CRYPTO_memcmp(hash.data(), known.data(), hash.size()) == 0;
  return found;
}

bool is_named(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::any_of(names, [&](const auto& known) { return equal_without_case(known, name); });
}

std::string_view origin_host(std::string_view origin) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme)) return host_name(origin.substr(scheme.size()));
  return "";
}

}  // namespace

void AccessRules::add_key(std::string_view key) { key_hashes.push_back(sha256_of(key)); }

std::string_view host_name(std::string_view host) {
  if (host.starts_with('[')) {
    const auto end = host.find(']');
    return end == std::string_view::npos ? host : host.substr(1, end - 1);
  }
  return host.substr(0, host.find(':'));
}

bool is_loopback_name(std::string_view name) {
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  constexpr std::string_view kSuffix = ".localhost";
  if (equal_without_case(name, "localhost") || name == "::1") return true;
  if (name.size() > kSuffix.size() && equal_without_case(name.substr(name.size() - kSuffix.size()), kSuffix))
    return true;
  in_addr address = {};
  return inet_pton(AF_INET, std::string(name).c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

void check_host(const Request& request, const AccessRules& rules) {
  const auto host = request.headers.find("Host");
  if (!host && request.is_http_1_0) return;
  if (!host)
    throw RequestError(ErrorCode::invalid_argument, "the Host header is missing", {.code = "missing_host"});
  if (!rules.is_loopback) return;
  const std::string_view name = host_name(*host);
  if (is_loopback_name(name) || is_named(rules.host_names, name)) return;
  throw RequestError(
      ErrorCode::invalid_argument,
      fmt::format("this server answers for its own machine only, not for the host '{}'", *host),
      {.code = "host_not_allowed", .status = 403});
}

bool is_granted(std::string_view origin, const AccessRules& rules) {
  if (is_named(rules.origins, "*") || is_named(rules.origins, origin)) return true;
  const std::string_view host = origin_host(origin);
  return !host.empty() && is_loopback_name(host);
}

void check_origin(const Request& request, const AccessRules& rules) {
  const auto origin = request.headers.find("Origin");
  if (!origin || !rules.is_loopback || is_granted(*origin, rules)) return;
  throw RequestError(ErrorCode::invalid_argument,
                     fmt::format("pages of '{}' may not use this server; see --cors-origins", *origin),
                     {.code = "origin_not_allowed", .status = 403});
}

void check_key(const Request& request, const AccessRules& rules) {
  if (rules.key_hashes.empty()) return;
  constexpr std::string_view kBearer = "Bearer ";
  std::string_view key;
  const auto authorization = request.headers.find("Authorization");
  if (authorization && authorization->size() > kBearer.size() &&
      equal_without_case(authorization->substr(0, kBearer.size()), kBearer))
    key = authorization->substr(kBearer.size());
  for (const auto* name : {"x-api-key", "api-key"})
    if (key.empty()) key = request.headers.find(name).value_or("");
  if (!key.empty() && matches_any(key, rules.key_hashes)) return;
  throw RequestError(ErrorCode::invalid_argument,
                     key.empty() ? "an API key is required" : "the API key is not valid",
                     {.code = "invalid_api_key", .status = 401});
}

void add_cors_headers(const Request& request, const AccessRules& rules, Response& response) {
  const auto origin = request.headers.find("Origin");
  if (!origin) return;
  response.headers.add("Vary", "Origin");
  if (!is_granted(*origin, rules)) return;
  response.headers.add("Access-Control-Allow-Origin", std::string(*origin));
  response.headers.add("Access-Control-Expose-Headers", "x-request-id, retry-after, request-id");
}

Response preflight(const Request& request, const AccessRules& rules) {
  Response response{.status = 204};
  const auto origin = request.headers.find("Origin");
  if (!origin || !is_granted(*origin, rules)) return response;
  response.headers.add("Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS");
  if (const auto wanted = request.headers.find("Access-Control-Request-Headers"))
    response.headers.add("Access-Control-Allow-Headers", std::string(*wanted));
  response.headers.add("Access-Control-Max-Age", "86400");
  return response;
}

}  // namespace godwit::serve
