// The system prompt and the messages of Anthropic's API as the messages that chat templates are written for
// (serve/chat_turn.h).
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "serve/json_fields.h"

namespace godwit::serve {

struct AnthropicConversation {
  Json messages = Json::array();
  std::vector<std::string> notes = {};  // what was left out, for the log
};

// Reads `system` and the required field `messages`. Consecutive turns of one role become one; the results of tools
// become messages of their own, before what else their turn says. Throws RequestError naming the block and the field.
AnthropicConversation read_anthropic_conversation(const JsonFields& in);

// A coding client heads its system prompt with a line that changes with every request, and nothing behind it would
// ever be found in the prompt cache. Leaves out the lines that begin with "x-anthropic-billing-header:".
std::string without_attribution(std::string_view system);

}  // namespace godwit::serve
