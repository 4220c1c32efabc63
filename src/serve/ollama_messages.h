// The messages of Ollama's API in the form that chat templates are written for (serve/chat_turn.h).
#pragma once

#include <string>

#include "serve/json_fields.h"

namespace godwit::serve {

// Calls get ids where they have none, and results of tools those of the calls that they answer: by name, else in order.
// Throws RequestError naming the message and the field.
Json read_ollama_messages(const Json& messages, const std::string& param);

}  // namespace godwit::serve
