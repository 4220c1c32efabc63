// How a model writes what is not plain content in its turn: reasoning and calls of tools. docs/tools.md.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "text/tokenizer.h"

namespace godwit::text {

// A function that the model may call. `parameters` is a JSON schema of an object.
struct ToolSpec {
  std::string name;
  std::string description = {};
  Json parameters = Json::object();
  bool is_strict = false;  // arguments are to be held to the schema even where the model may choose not to call
};

enum class ToolFormat {
  none,
  hermes,  // <tool_call>{"name": …, "arguments": {…}}</tool_call>
};

struct TurnFormat {
  ToolFormat tools = ToolFormat::none;
  std::string reasoning_open = {};  // "<think>"; empty: the model has no reasoning of its own
  std::string reasoning_close = {};
};

// What the template's text says by the markers it writes.
TurnFormat turn_format_of(std::string_view template_source, const Tokenizer& tokenizer);

}  // namespace godwit::text
