// The JSON shapes of Ollama's API: plain functions from values to JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "serve/chat_answer.h"

namespace godwit::serve {

// "2026-11-30T12:00:00Z"
std::string rfc3339(std::int64_t unix_seconds);

// What one line of an answer holds.
struct OllamaPart {
  std::string content = {};
  std::string thinking = {};
  Json calls = Json::array();  // whole ones, their arguments as objects
  std::vector<LogprobEntry> logprobs = {};

  bool is_empty() const { return content.empty() && thinking.empty() && calls.empty() && logprobs.empty(); }
  void append(OllamaPart more);
};

// Cuts an answer into parts. A call is in the part in which its arguments end.
class OllamaParts {
 public:
  OllamaPart add(ChatDelta delta);

 private:
  void close_call(OllamaPart& into);

  std::optional<text::TurnPiece> open_;  // the call in the making; `text` is what there is of its arguments
};

enum class OllamaShape {
  chat,      // {"message": {"role", "content", …}}
  generate,  // {"response", …}
};

// What every line of one answer repeats.
struct OllamaHead {
  OllamaShape shape = OllamaShape::chat;
  std::string model;
  std::string created_at;
};

// A line with `done` false. `tokenizer` spells the log-probabilities.
Json ollama_line(const OllamaHead& head, const OllamaPart& part, const text::Tokenizer* tokenizer);

// What the last line says beside its part: the counts, and times in nanoseconds.
struct OllamaEnd {
  std::string reason;  // "stop", "length", "load", "unload"
  Usage usage = {};
  decode::Timings timings = {};
  double total_seconds = 0;
  double load_seconds = 0;
};
void finish_ollama_line(Json& line, const OllamaEnd& end);

}  // namespace godwit::serve
