// POST /v1/chat/completions, the way in: body -> typed request -> tokens.
#pragma once

#include <string>

#include "serve/generation_plan.h"
#include "serve/served_model.h"

namespace godwit::serve {

struct ChatRequest {
  GenerationPlan plan = {};
  bool stream = false;
  bool include_usage = false;
};

// Parses, renders the chat template and tokenizes. Throws RequestError for fields, Error{invalid_argument}
// with the template's own message when it refuses the chat, RequestError context_length_exceeded.
ChatRequest parse_chat_request(const std::string& body, const ServedModel& model);

}  // namespace godwit::serve
