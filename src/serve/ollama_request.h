// POST /api/chat and /api/generate, the way in: body -> typed request.
#pragma once

#include <optional>
#include <string>

#include "serve/chat_turn.h"
#include "serve/json_fields.h"

namespace godwit::serve {

struct OllamaRequest {
  ChatTurn turn = {};
  std::optional<std::string> raw_prompt = {};  // a prompt without a template; `turn` then holds the rest of the request
  bool stream = true;
  bool asks_nothing = false;  // no messages, no prompt: the model is to be loaded, or unloaded with a keep_alive of 0
  std::optional<double> keep_alive = {};  // seconds that the model stays once it is idle; negative: for good
};

// Throw RequestError that names the field.
OllamaRequest parse_ollama_chat(const Json& body, const ServedModel& model);
OllamaRequest parse_ollama_generate(const Json& body, const ServedModel& model);

// The `model` (or `name`) of a body without a tag of ":latest", which says nothing.
std::string ollama_model_name(const Json& body);

// A number of seconds or a duration as Go writes it ("5m", "1h30m", "-1"); nullopt: absent.
std::optional<double> read_keep_alive(const JsonFields& in);

}  // namespace godwit::serve
