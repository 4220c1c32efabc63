// POST /v1/chat/completions, the way in: body -> typed request.
#pragma once

#include <string>
#include <vector>

#include "serve/chat_json.h"
#include "serve/chat_turn.h"
#include "serve/json_fields.h"

namespace godwit::serve {

struct ChatRequest {
  ChatTurn turn = {};
  ChatShape shape = {};
  bool stream = false;
  bool include_usage = false;
  std::vector<std::string> left_out = {};  // types of tools that are no functions
};

// Throws RequestError that names the field.
ChatRequest parse_chat_request(const Json& body, const ServedModel& model);

// chat_template_kwargs. Throws RequestError.
Json read_template_variables(const JsonFields& in);

}  // namespace godwit::serve
