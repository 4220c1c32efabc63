// Fields of other servers and of later versions that would change the answer. Ignoring them would break a
// contract in silence, so they are refused unless they hold the value that asks for nothing.
#pragma once

#include <span>
#include <string_view>

#include "serve/json_fields.h"

namespace godwit::serve {

struct Unserved {
  std::string_view name;
  std::string_view what;
  // A JSON array of further values that ask for nothing, beside null, false, "", [] and {}.
  std::string_view neutral = "[]";
  bool is_on_by_itself = false;  // false asks for something, true for nothing
};

// Of one route, beside those of all.
std::span<const Unserved> unserved_in_chat();
std::span<const Unserved> unserved_in_completions();
std::span<const Unserved> unserved_in_responses();

// Throws RequestError (400, code unsupported_parameter) naming the field.
void refuse_unserved_fields(const JsonFields& in, std::span<const Unserved> of_route = {});

}  // namespace godwit::serve
