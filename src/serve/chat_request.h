// POST /v1/chat/completions, the way in: body -> typed request.
#pragma once

#include <string>

#include "serve/chat_turn.h"

namespace godwit::serve {

struct ChatRequest {
  ChatTurn turn = {};
  bool stream = false;
  bool include_usage = false;
};

// Throws RequestError that names the field.
ChatRequest parse_chat_request(const Json& body, const ServedModel& model);

}  // namespace godwit::serve
