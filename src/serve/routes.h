// Where the endpoints live.
#pragma once

#include <span>
#include <string_view>

#include "serve/endpoints.h"

namespace godwit::serve {

struct Route {
  std::string_view method;
  // Without /v1. One that ends in '/' behind a name takes every path below it; the rest goes to
  // Request::rest.
  std::string_view path;
  Response (*handle)(const Request&, Context&);
  bool is_public = false;      // needs no API key
  bool is_generation = false;  // refused while draining
  bool is_admin = false;       // needs a key, or without keys a client on this machine
};

// Every path answers with and without /v1 in front.
std::span<const Route> routes();

}  // namespace godwit::serve
