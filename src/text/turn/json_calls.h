// Calls that are JSON objects with a name and arguments: {"name": "f", "arguments": {...}}, one or a list, between
// tags (Hermes, Qwen, LongCat, Nemotron Nano, Granite, old Mistral) or bare (Llama 3, the generic form).
#pragma once

#include "text/turn/call_reader.h"

namespace godwit::text {

struct JsonCallSyntax {
  Marker open = {};   // empty: the object stands by itself
  Marker close = {};  // empty: none
  bool known_only = false;  // an object whose name is no tool's is content
  bool is_generic = false;  // {"tool_call": ...}, {"tool_calls": [...]} or {"response": "..."}
};

CallReaderMaker json_calls(JsonCallSyntax syntax);

}  // namespace godwit::text
