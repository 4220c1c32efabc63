// The messages of a chat request, checked and brought to the shape that chat templates are written for: text
// content as one string, tool-call arguments as objects.
#pragma once

#include "base/json.h"
#include "serve/json_fields.h"

namespace godwit::serve {

inline constexpr std::size_t kMaxMessages = 100'000;

// Reads the required field `messages`. The developer role stays what it is: text/turn/normalise_chat.h knows what the
// template makes of it. Throws RequestError naming the message and the field.
Json read_messages(const JsonFields& in);

// Single steps of it, for APIs whose messages come in another shape. They throw RequestError naming the field.
// The field `messages`: an array of one to kMaxMessages.
const Json& need_messages(const JsonFields& in);
// The field `function` of a call, which has a name. `call` must outlive it.
JsonFields need_function(const JsonFields& call);
// A string, or parts with text, joined without a separator as templates that walk over parts print them.
// Other kinds of parts are refused by `param`.
std::string content_text(const Json& content, const std::string& param);
// Templates index into arguments; the wire carries them as a string of JSON. What is no object stays a
// string.
Json call_arguments(const std::string& text);

}  // namespace godwit::serve
