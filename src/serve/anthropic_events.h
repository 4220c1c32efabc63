// Anthropic's stream of events, made of the pieces of a chat's answer. A whole message is these events added up, so that
// both say the same.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/json.h"
#include "serve/chat_answer.h"

namespace godwit::serve {

// input_tokens is what the prompt cache did not have.
Json anthropic_usage_json(const Usage& usage);

// Blocks come one after another, numbered from 0; each is started, filled and stopped. An event's "type" is its name.
class AnthropicEvents {
 public:
  using Emit = std::function<void(const Json& event)>;
  explicit AnthropicEvents(Emit emit) : emit_(std::move(emit)) {}

  void start(const std::string& id, const std::string& model, const Usage& usage);
  void add(const text::TurnPiece& piece);
  void finish(const std::string& stop_reason, const std::optional<std::string>& stop_sequence, const Usage& usage);

 private:
  enum class Block { none, text, thinking, tool };

  void add_text(const std::string& text);
  void open(Block kind, Json block);
  void fill(Json delta);
  void close();

  Emit emit_;
  Block open_ = Block::none;
  int index_ = -1;             // of the newest block
  bool has_arguments_ = false;  // of the open call
  std::string thought_;        // of the open block
  std::string blank_;          // white space that no text has followed yet: a block of nothing else is not worth having
};

// Adds events up to the message that they describe.
class AnthropicMessage {
 public:
  void add(const Json& event);
  const Json& json() const { return message_; }

 private:
  Json message_;
  std::string arguments_;  // of the newest block
};

}  // namespace godwit::serve
