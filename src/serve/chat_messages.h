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

// Single steps of it, for APIs whose messages come in another shape. They throw RequestError naming the field.
// The field `messages`: an array of one to kMaxMessages.
const Json& need_messages(const JsonFields& in);
// The field `function` of a call, which has a name. `call` must outlive it.
JsonFields need_function(const JsonFields& call);
// The developer role is the system's where the template does not know it.
std::string template_role(const std::string& role, std::string_view template_source);
// A string, or parts with text, joined without a separator as templates that walk over parts print them.
// Other kinds of parts are refused by `param`.
std::string content_text(const Json& content, const std::string& param);
// Templates index into arguments; the wire carries them as a string of JSON. What is no object stays a
// string.
Json call_arguments(const std::string& text);

}  // namespace godwit::serve
