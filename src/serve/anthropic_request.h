// POST /v1/messages and /v1/messages/count_tokens, the way in: body -> typed request.
#pragma once

#include <string>
#include <vector>

#include "serve/chat_turn.h"

namespace godwit::serve {

struct AnthropicRequest {
  ChatTurn turn = {};
  bool stream = false;
  bool only_fills_cache = false;        // max_tokens 0: the prompt is read and nothing is answered
  std::vector<std::string> notes = {};  // what was left out, for the log
};

// Throws RequestError that names the field. An absent max_tokens is 4096.
AnthropicRequest parse_anthropic_request(const Json& body, const ServedModel& model);

}  // namespace godwit::serve
