// The messages of a chat, as the chat template wants them.
#pragma once

#include <string>

#include "base/json.h"

namespace godwit::cli {

class Conversation {
 public:
  // An empty text means no system message.
  explicit Conversation(std::string system) : system_(std::move(system)) {}

  void set_system(std::string text) { system_ = std::move(text); }
  void add_user(const std::string& text) { turns_.push_back({{"role", "user"}, {"content", text}}); }
  void add_assistant(const std::string& text) {
    turns_.push_back({{"role", "assistant"}, {"content", text}});
  }
  // Takes back the user's last turn: it got no answer.
  void drop_last() { turns_.erase(turns_.size() - 1); }
  void reset() { turns_ = Json::array(); }

  Json messages() const {
    Json all = Json::array();
    if (!system_.empty()) all.push_back({{"role", "system"}, {"content", system_}});
    for (const Json& turn : turns_) all.push_back(turn);
    return all;
  }

 private:
  std::string system_;
  Json turns_ = Json::array();
};

}  // namespace godwit::cli
