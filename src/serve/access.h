// Who may ask: Host and Origin rules against web pages that reach for a local server, CORS grants, API keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serve/http.h"

namespace godwit::serve {

struct AccessRules {
  bool is_loopback = true;  // bound to loopback: Host must name this machine, foreign origins may not POST
  std::vector<std::string> host_names;  // further names that Host may hold
  std::vector<std::string> origins;     // further origins that get a CORS grant; "*": all
  std::vector<std::string> key_hashes;  // SHA-256 of the API keys; empty: no key is needed

  void add_key(std::string_view key);
};

// Each throws RequestError: 400 (HTTP/1.1 without Host), 403, 401.
void check_host(const Request& request, const AccessRules& rules);
void check_origin(const Request& request, const AccessRules& rules);
// The key may come as "Authorization: Bearer", "x-api-key" or "api-key".
void check_key(const Request& request, const AccessRules& rules);

// Whether pages of this origin may read answers: loopback origins and the configured ones.
bool is_granted(std::string_view origin, const AccessRules& rules);
void add_cors_headers(const Request& request, const AccessRules& rules, Response& response);
// 204 to a browser's OPTIONS.
Response preflight(const Request& request, const AccessRules& rules);

// "localhost", "*.localhost", 127.0.0.0/8 and ::1, with or without brackets; no port.
bool is_loopback_name(std::string_view name);
// The name in a Host value: "[::1]:8080" -> "::1".
std::string_view host_name(std::string_view host);

}  // namespace godwit::serve
