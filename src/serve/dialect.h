// The APIs that the server speaks, and how each says that something went wrong.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "serve/http.h"
#include "serve/request_error.h"

namespace godwit::serve {

enum class Dialect { openai, anthropic, ollama };

// By the path without query and /v1: /messages… is Anthropic's, /api/… Ollama's, every other OpenAI's.
Dialect dialect_of(std::string_view path);

// What went wrong, in the terms of HTTP.
struct Failure {
  int status = 500;
  std::string message;
  ErrorFields fields;
};

// The one mapping of Error to a status.
Failure failure_of(const std::exception& error);

// OpenAI: {"error": {message, type, param, code}}. Anthropic: {"type": "error", "error": {type, message}, "request_id"}.
// Ollama: {"error": message}.
Json error_json(const Failure& failure, Dialect dialect, std::string_view request_id);
Response error_response(const Failure& failure, Dialect dialect, std::string_view request_id);
// The last event of a stream that broke.
void send_error(EventSink& sink, const Failure& failure, Dialect dialect, std::string_view request_id);

}  // namespace godwit::serve
