// What one choice of a chat answer has come to: the sum of its deltas.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "serve/chat_answer.h"

namespace godwit::serve {

struct ChatCall {
  std::string id;
  std::string name;
  std::string arguments = {};  // JSON text
};

struct ChatMessage {
  std::string content = {};
  std::string reasoning = {};
  std::vector<ChatCall> calls = {};
  std::vector<LogprobEntry> logprobs = {};
  std::vector<int> ids = {};
  std::optional<ChatFinish> finish = {};

  // The deltas of one choice, in order.
  void add(ChatDelta delta);
};

}  // namespace godwit::serve
