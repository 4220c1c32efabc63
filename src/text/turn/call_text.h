// Calls as a model of each format writes them: for the history of chats where the template writes none, and as the
// inverse of the parser.
#pragma once

#include <span>
#include <string>

#include "text/turn/turn_format.h"

namespace godwit::text {

struct WrittenCall {
  std::string name;
  Json arguments = Json::object();
  std::string id = {};  // in formats that show it
};

std::string call_text(ToolFormat format, std::span<const WrittenCall> calls);
// JSON with a space behind each comma and colon, as Python writes it and models learned it.
std::string spaced_json(const Json& value);

}  // namespace godwit::text
