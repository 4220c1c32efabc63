#include "serve/anthropic_messages.h"

#include <map>
#include <optional>
#include <utility>

#include "serve/chat_messages.h"
#include "serve/request_error.h"

namespace godwit::serve {
namespace {

constexpr std::string_view kAttribution = "x-anthropic-billing-header:";

std::string need_string(const JsonFields& in, std::string_view name) {
  auto value = in.string(name);
  if (!value) bad_field(in.path_of(name), "is required");
  return std::move(*value);
}

// Blocks and turns that become one text: a line each.
void append_line(std::string& text, std::string_view more) {
  if (!text.empty() && !more.empty()) text += '\n';
  text += more;
}

class ConversationReader {
 public:
  AnthropicConversation read(const JsonFields& in) {
    read_system(in);
    const Json& messages = need_messages(in);
    const std::string param = in.path_of("messages");
    for (std::size_t i = 0; i < messages.size(); ++i)
      read_message(JsonFields(messages[i], fmt::format("{}[{}]", param, i)));
    return std::move(out_);
  }

 private:
  // Calls `take(block, type)` for each block; a string is one block of text.
  template <typename Take>
  void for_each_block(const JsonFields& in, std::string_view name, Take take) {
    const Json* content = in.find(name);
    const std::string param = in.path_of(name);
    if (!content) return;
    if (content->is_string()) {
      const Json block{{"type", "text"}, {"text", *content}};
      return take(JsonFields(block, param), "text");
    }
    if (!content->is_array()) bad_field(param, "must be a string or an array of blocks, got {}", shown(*content));
    for (std::size_t i = 0; i < content->size(); ++i) {
      const JsonFields block((*content)[i], fmt::format("{}[{}]", param, i));
      take(block, need_string(block, "type"));
    }
  }

  void read_system(const JsonFields& in) {
    std::string system;
    for_each_block(in, "system", [&](const JsonFields& block, const std::string& type) {
      if (const auto text = text_of(block, type)) append_line(system, without_attribution(*text));
    });
    if (!system.empty()) out_.messages.push_back({{"role", "system"}, {"content", system}});
  }

  void read_message(const JsonFields& in) {
    const std::string role = need_string(in, "role");
    if (!in.has("content")) bad_field(in.path_of("content"), "is required");
    if (role == "assistant") return read_assistant(in);
    if (role == "user") return read_user(in);
    if (role == "system") return read_late_system(in);
    bad_field(in.path_of("role"), "must be one of user, assistant, system, got {}", shown(Json(role)));
  }

  void read_late_system(const JsonFields& in) {
    std::string text;
    for_each_block(in, "content", [&](const JsonFields& block, const std::string& type) {
      if (const auto more = text_of(block, type)) append_line(text, without_attribution(*more));
    });
    add({{"role", "system"}, {"content", text}});
  }

  void read_user(const JsonFields& in) {
    std::string text;
    bool has_results = false;
    for_each_block(in, "content", [&](const JsonFields& block, const std::string& type) {
      if (type == "tool_result") {
        has_results = true;
        out_.messages.push_back(tool_message(block));
      } else if (const auto more = text_of(block, type)) {
        append_line(text, *more);
      }
    });
    if (!text.empty() || !has_results) add({{"role", "user"}, {"content", text}});
  }

  Json tool_message(const JsonFields& block) {
    const std::string id = need_string(block, "tool_use_id");
    std::string text;
    for_each_block(block, "content", [&](const JsonFields& part, const std::string& type) {
      if (const auto more = text_of(part, type)) append_line(text, *more);
    });
    // No template has a place for it.
    if (block.boolean("is_error").value_or(false)) text = "Error: " + text;
    Json message{{"role", "tool"}, {"content", text}};
    if (const auto called = called_.find(id); called != called_.end()) message["name"] = called->second;
    message["tool_call_id"] = id;
    return message;
  }

  void read_assistant(const JsonFields& in) {
    std::string text, reasoning;
    Json calls = Json::array();
    for_each_block(in, "content", [&](const JsonFields& block, const std::string& type) {
      if (type == "tool_use")
        calls.push_back(tool_call(block));
      else if (type == "thinking")
        reasoning += need_string(block, "thinking");
      else if (type == "redacted_thinking")
        static_cast<void>(block);  // nobody here can read it
      else if (const auto more = text_of(block, type))
        text += *more;  // as the model wrote it
    });
    Json message{{"role", "assistant"}, {"content", text}};
    if (!reasoning.empty()) message["reasoning_content"] = reasoning;
    if (!calls.empty()) message["tool_calls"] = std::move(calls);
    add(std::move(message));
  }

  Json tool_call(const JsonFields& block) {
    const std::string id = need_string(block, "id");
    const std::string name = need_string(block, "name");
    const Json* input = block.object("input");
    called_[id] = name;
    return {{"id", id},
            {"type", "function"},
            {"function", {{"name", name}, {"arguments", input ? *input : Json::object()}}}};
  }

  // The text of any other block; nullopt: it has none and is left out.
  std::optional<std::string> text_of(const JsonFields& block, const std::string& type) {
    if (type == "text") return need_string(block, "text");
    if (type == "image") unserved_field(block.path_of("type"), "a block of type image");
    if (type == "document") return document_text(block);
    if (type == "search_result") return search_result_text(block);
    if (const Json* text = block.find("text"); text && text->is_string()) return text->get<std::string>();
    out_.notes.push_back(fmt::format("'{}' is left out: a block of type {}", block.path_of("type"), shown(Json(type))));
    return std::nullopt;
  }

  std::string document_text(const JsonFields& block) {
    const Json* given = block.object("source");
    if (!given) bad_field(block.path_of("source"), "is required");
    const JsonFields source(*given, block.path_of("source"));
    const std::string type = need_string(source, "type");
    std::string text;
    for (const auto* heading : {"title", "context"})
      if (const auto line = block.string(heading)) append_line(text, *line);
    if (type == "text")
      append_line(text, need_string(source, "data"));
    else if (type == "content")
      for_each_block(source, "content", [&](const JsonFields& part, const std::string& kind) {
        if (const auto more = text_of(part, kind)) append_line(text, *more);
      });
    else
      unserved_field(source.path_of("type"), fmt::format("a document of type {}", shown(Json(type))));
    return text;
  }

  std::string search_result_text(const JsonFields& block) {
    std::string text;
    for (const auto* heading : {"title", "source"})
      if (const auto line = block.string(heading)) append_line(text, *line);
    for_each_block(block, "content", [&](const JsonFields& part, const std::string& type) {
      if (const auto more = text_of(part, type)) append_line(text, *more);
    });
    return text;
  }

  // Turns of one role in a row are one turn.
  void add(Json message) {
    if (out_.messages.empty() || out_.messages.back()["role"] != message["role"])
      return out_.messages.push_back(std::move(message));
    Json& last = out_.messages.back();
    auto& content = last["content"].get_ref<std::string&>();
    const auto& more = message["content"].get_ref<const std::string&>();
    if (message["role"] != "assistant") return append_line(content, more);
    content += more;
    if (message.contains("reasoning_content"))
      last["reasoning_content"] = last.value("reasoning_content", "") + message["reasoning_content"].get<std::string>();
    if (!message.contains("tool_calls")) return;
    if (!last.contains("tool_calls")) last["tool_calls"] = Json::array();
    for (Json& call : message["tool_calls"]) last["tool_calls"].push_back(std::move(call));
  }

  AnthropicConversation out_;
  std::map<std::string, std::string> called_;  // the tool of each call, by the id of the call
};

}  // namespace

std::string without_attribution(std::string_view system) {
  std::string kept;
  while (!system.empty()) {
    const std::size_t length = std::min(system.find('\n'), system.size() - 1) + 1;
    if (!system.starts_with(kAttribution)) kept += system.substr(0, length);
    system.remove_prefix(length);
  }
  return kept;
}

AnthropicConversation read_anthropic_conversation(const JsonFields& in) { return ConversationReader().read(in); }

}  // namespace godwit::serve
