// What a chat request says about thinking.
#pragma once

#include <string_view>

#include "serve/chat_turn.h"
#include "serve/json_fields.h"

namespace godwit::serve {

// reasoning_effort, thinking_token_budget and its other name reasoning_budget. Throws RequestError.
ReasoningWish read_reasoning(const JsonFields& in);
// One level: none turns thinking off, the others reach the template. Throws RequestError naming `param`.
ReasoningWish reasoning_of_effort(std::string_view effort, std::string_view param);

}  // namespace godwit::serve
