// The tools of a request and how they may be called, in the spellings of OpenAI's APIs.
#pragma once

#include <string>
#include <vector>

#include "serve/chat_turn.h"
#include "serve/context.h"
#include "serve/http.h"
#include "serve/json_fields.h"

namespace godwit::serve {

inline constexpr std::size_t kMostTools = 1024;

struct ToolFields {
  std::vector<text::ToolSpec> tools = {};
  ToolChoice choice = {};
  std::vector<std::string> left_out =
      {};                  // types of tools that are no functions: the model never hears of them
  bool is_legacy = false;  // asked as `functions`: the answer has a `function_call`
};

// Chat: tools and tool_choice with a `function` object inside, or functions and function_call, their older
// names. Throws RequestError.
ToolFields read_chat_tools(const JsonFields& in);
// Responses: the same, flat.
ToolFields read_response_tools(const JsonFields& in);

// One function {name, description, parameters, strict}. Throws RequestError for names that are no
// [A-Za-z0-9_.:-]{1,64}.
text::ToolSpec read_function(const JsonFields& in);

// Says in the log which tools a request asked for in vain.
void note_left_out(const std::vector<std::string>& types, const Request& request, const Context& context);

}  // namespace godwit::serve
