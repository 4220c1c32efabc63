#include "serve/responses_input.h"

#include <algorithm>
#include <array>
#include <map>

#include "serve/chat_messages.h"
#include "serve/json_fields.h"
#include "serve/openai_json.h"
#include "serve/request_error.h"

namespace godwit::serve {
namespace {

constexpr std::array<std::string_view, 4> kRoles = {"system", "developer", "user", "assistant"};

std::string need_string(const JsonFields& in, std::string_view name) {
  const auto value = in.string(name);
  if (!value) bad_field(in.path_of(name), "is required");
  return *value;
}

void check_message(const JsonFields& in) {
  const std::string role = need_string(in, "role");
  if (std::ranges::find(kRoles, role) == kRoles.end())
    bad_field(in.path_of("role"), "must be one of system, developer, user, assistant, got {}",
              shown(Json(role)));
  const Json* content = in.find("content");
  if (!content) bad_field(in.path_of("content"), "is required");
  static_cast<void>(content_text(*content, in.path_of("content")));
}

void check_call(const JsonFields& in) {
  static_cast<void>(need_string(in, "call_id"));
  static_cast<void>(need_string(in, "name"));
  static_cast<void>(need_string(in, "arguments"));
}

void check_output(const JsonFields& in) {
  static_cast<void>(need_string(in, "call_id"));
  const Json* output = in.find("output");
  if (!output) bad_field(in.path_of("output"), "is required");
  static_cast<void>(content_text(*output, in.path_of("output")));
}

std::string text_of_parts(const Json& item, const char* name) {
  std::string text;
  const auto parts = item.find(name);
  if (parts == item.end() || !parts->is_array()) return text;
  for (const Json& part : *parts)
    if (part.is_object() && part.contains("text") && part["text"].is_string())
      text += part["text"].get<std::string>();
  return text;
}

struct ItemType {
  std::string_view name;
  void (*check)(const JsonFields&);
  std::string_view id_prefix;
};

constexpr std::array kTypes = {
    ItemType{"message", check_message, "msg_"},
    ItemType{"function_call", check_call, "fc_"},
    ItemType{"function_call_output", check_output, "fco_"},
    ItemType{"reasoning", [](const JsonFields&) {}, "rs_"},
};

Json read_item(const Json& given, const std::string& param, const FindItem& find_item) {
  const JsonFields in(given, param);
  const std::string name = in.string("type").value_or("message");
  if (name == "item_reference") {
    const std::string id = need_string(in, "id");
    if (auto item = find_item(id)) return *item;
    throw RequestError(ErrorCode::not_found, fmt::format("there is no item {}", shown(Json(id))),
                       {.param = in.path_of("id"), .code = "item_not_found"});
  }
  const auto type = std::ranges::find(kTypes, name, &ItemType::name);
  if (type == kTypes.end())
    bad_field(in.path_of("type"),
              "must be message, function_call, function_call_output, reasoning or item_reference, got {}",
              shown(Json(name)));
  type->check(in);
  Json item = given;
  item["type"] = name;
  if (!in.string("id")) item["id"] = random_id(type->id_prefix);
  return item;
}

// Builds the messages one item at a time.
class Conversation {
 public:
  void add(const Json& item, const std::string& param) {
    const std::string& type = item["type"].get_ref<const std::string&>();
    if (type == "reasoning")
      add_reasoning(item);
    else if (type == "message")
      add_message(item, param);
    else if (type == "function_call")
      add_call(item);
    else
      add_output(item, param);
  }

  Json take() { return std::move(messages_); }

 private:
  void add_reasoning(const Json& item) {
    const std::string text = text_of_parts(item, "content");
    reasoning_ += text.empty() ? text_of_parts(item, "summary") : text;
  }

  void add_message(const Json& item, const std::string& param) {
    const std::string role = item["role"];
    Json message{{"role", role}, {"content", content_text(item["content"], param + ".content")}};
    if (role == "assistant") attach_reasoning(message);
    messages_.push_back(std::move(message));
  }

  void add_call(const Json& item) {
    const bool joins = !messages_.empty() && messages_.back()["role"] == "assistant" && reasoning_.empty();
    if (!joins) {
      Json message{{"role", "assistant"}, {"content", ""}};
      attach_reasoning(message);
      messages_.push_back(std::move(message));
    }
    const auto id = item["call_id"].get<std::string>();
    names_[id] = item["name"];
    Json function{{"name", item["name"]},
                  {"arguments", call_arguments(item["arguments"].get<std::string>())}};
    messages_.back()["tool_calls"].push_back(
        {{"id", id}, {"type", "function"}, {"function", std::move(function)}});
  }

  void add_output(const Json& item, const std::string& param) {
    const auto id = item["call_id"].get<std::string>();
    const auto name = names_.find(id);
    if (name == names_.end())
      bad_field(param + ".call_id", "names {}, which no function_call has", shown(Json(id)));
    messages_.push_back({{"role", "tool"},
                         {"content", content_text(item["output"], param + ".output")},
                         {"name", name->second},
                         {"tool_call_id", id}});
  }

  void attach_reasoning(Json& message) {
    if (!reasoning_.empty()) message["reasoning_content"] = std::exchange(reasoning_, "");
  }

  Json messages_ = Json::array();
  std::string reasoning_;
  std::map<std::string, Json> names_;  // of the functions called, by the id of the call
};

}  // namespace

Json read_items(const Json& input, const std::string& param, const FindItem& find_item) {
  if (input.is_string()) {
    const Json part{{"type", "input_text"}, {"text", input}};
    return Json::array({{{"type", "message"},
                         {"role", "user"},
                         {"content", Json::array({part})},
                         {"id", random_id("msg_")}}});
  }
  if (!input.is_array()) bad_field(param, "must be a string or an array of items, got {}", shown(input));
  if (input.size() > kMostItems)
    bad_field(param, "may hold at most {} items, got {}", kMostItems, input.size());
  Json items = Json::array();
  for (std::size_t i = 0; i < input.size(); ++i)
    items.push_back(read_item(input[i], fmt::format("{}[{}]", param, i), find_item));
  return items;
}

Json messages_of_items(const Json& items, std::size_t own) {
  Conversation conversation;
  const std::size_t first = items.size() - own;
  for (std::size_t i = 0; i < items.size(); ++i)
    conversation.add(items[i], i < first ? "previous_response_id" : fmt::format("input[{}]", i - first));
  return conversation.take();
}

}  // namespace godwit::serve
