// Where the endpoints live.
#pragma once

#include <span>
#include <string_view>

#include "serve/endpoints.h"

namespace godwit::serve {

struct Route {
  std::string_view method;
  std::string_view path;  // without /v1; ending in '/': every path below it, the rest goes to Request::rest
  Response (*handle)(const Request&, Context&);
  bool is_public = false;      // needs no API key
  bool is_generation = false;  // refused while draining
};

// Every path answers with and without /v1 in front.
std::span<const Route> routes();

}  // namespace godwit::serve
