// The messages of a chat request, checked and brought to the shape that chat templates are written for: text
// content as one string, tool-call arguments as objects, roles that the template knows.
#pragma once

#include "base/json.h"
#include "serve/json_fields.h"

namespace godwit::serve {

inline constexpr std::size_t kMaxMessages = 100'000;

// Reads the required field `messages`. `template_source` decides whether the developer role is passed on or
// becomes the system role. Throws RequestError naming the message and the field.
Json read_messages(const JsonFields& in, std::string_view template_source);

}  // namespace godwit::serve
