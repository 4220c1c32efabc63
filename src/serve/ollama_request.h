// POST /api/chat and /api/generate, the way in: body -> typed request.
#pragma once

#include <optional>
#include <string>

#include "serve/chat_turn.h"
#include "serve/context.h"
#include "serve/json_fields.h"

namespace godwit::serve {

struct OllamaRequest {
  ChatTurn turn = {};
  std::optional<std::string> raw_prompt = {};  // a prompt without a template; `turn` then holds the rest of the request
  bool stream = true;
  bool asks_nothing = false;  // no messages, no prompt: the model is to be loaded
  std::optional<double> keep_alive = {};  // seconds that the model stays once it is idle; negative: for good
};

// Whether a body has no prompt (or messages) and a keep_alive of 0: the model is to be let go, and not loaded first.
bool only_unloads(const Json& body, std::string_view content_field);
// The model that a request means; nothing is loaded. Throws RequestError 404.
ModelEntry find_ollama_entry(const std::string& name, Context& context);

// Throw RequestError that names the field.
OllamaRequest parse_ollama_chat(const Json& body, const ServedModel& model);
OllamaRequest parse_ollama_generate(const Json& body, const ServedModel& model);

// The `model` (or `name`) of a body without a tag of ":latest", which says nothing.
std::string ollama_model_name(const Json& body);

// A number of seconds or a duration as Go writes it ("5m", "1h30m", "-1"); nullopt: absent.
std::optional<double> read_keep_alive(const JsonFields& in);

}  // namespace godwit::serve
