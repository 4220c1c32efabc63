#include "serve/ollama_messages.h"

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "serve/chat_messages.h"
#include "serve/request_error.h"

namespace godwit::serve {
namespace {

constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};

class MessageReader {
 public:
  Json read(const JsonFields& in) {
    const auto role = in.string("role");
    if (!role) bad_field(in.path_of("role"), "is required");
    if (std::ranges::find(kRoles, *role) == kRoles.end())
      bad_field(in.path_of("role"), "must be one of system, user, assistant, tool, got {}", shown(Json(*role)));
    if (const Json* images = in.array("images"); images && !images->empty())
      unserved_field(in.path_of("images"), "an image");
    Json message{{"role", *role}, {"content", in.string("content").value_or("")}};
    if (const auto thinking = in.string("thinking")) message["reasoning_content"] = *thinking;
    const Json* calls = in.array("tool_calls");
    if (calls && !calls->empty()) message["tool_calls"] = read_calls(*calls, in.path_of("tool_calls"));
    if (*role == "tool") answer_call(in, message);
    return message;
  }

 private:
  Json read_calls(const Json& calls, const std::string& param) {
    Json out = Json::array();
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const JsonFields call(calls[i], fmt::format("{}[{}]", param, i));
      const JsonFields function = need_function(call);
      const std::string name = *function.string("name");
      const Json* arguments = function.object("arguments");
      const std::string id = call.string("id").value_or(fmt::format("call_{}", count_++));
      open_.emplace_back(name, id);
      out.push_back({{"id", id},
                     {"type", "function"},
                     {"function", {{"name", name}, {"arguments", arguments ? *arguments : Json::object()}}}});
    }
    return out;
  }

  void answer_call(const JsonFields& in, Json& message) {
    auto name = in.string("tool_name");
    if (!name) name = in.string("name");
    const auto id = in.string("tool_call_id");
    auto call = std::ranges::find_if(open_, [&](const auto& one) {
      return id ? one.second == *id : !name || one.first == *name;
    });
    if (call != open_.end()) {
      if (!name) name = call->first;
      message["tool_call_id"] = call->second;
      open_.erase(call);
    } else if (id) {
      message["tool_call_id"] = *id;
    }
    if (name) message["name"] = *name;
  }

  std::deque<std::pair<std::string, std::string>> open_;  // calls without a result: name and id
  int count_ = 0;
};

}  // namespace

Json read_ollama_messages(const Json& messages, const std::string& param) {
  if (messages.size() > kMaxMessages)
    bad_field(param, "may hold at most {} messages, got {}", kMaxMessages, messages.size());
  MessageReader reader;
  Json out = Json::array();
  for (std::size_t i = 0; i < messages.size(); ++i)
    out.push_back(reader.read(JsonFields(messages[i], fmt::format("{}[{}]", param, i))));
  return out;
}

}  // namespace godwit::serve
