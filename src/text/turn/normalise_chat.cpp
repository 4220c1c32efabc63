#include "text/turn/normalise_chat.h"

#include "text/turn/call_text.h"
#include "text/turn/tool_list.h"

namespace godwit::text {
namespace {

bool has_role(const Json& message, std::string_view role) {
  return message.is_object() && message.contains("role") && message["role"] == role;
}

bool has_calls(const Json& message) {
  const auto calls = message.find("tool_calls");
  return calls != message.end() && calls->is_array() && !calls->empty();
}

// Parts of text as one string; with other parts the list stays.
void join_parts(Json& content) {
  if (content.is_null()) content = "";
  if (!content.is_array()) return;
  std::string text;
  for (const Json& part : content) {
    if (part.is_string())
      text += part.get_ref<const std::string&>();
    else if (part.is_object() && part.contains("text") && part["text"].is_string())
      text += part["text"].get_ref<const std::string&>();
    else
      return;
  }
  content = text;
}

Json arguments_for(const Json& arguments, bool as_text) {
  if (as_text) return arguments.is_string() ? arguments : Json(spaced_json(arguments));
  if (!arguments.is_string()) return arguments.is_null() ? Json::object() : arguments;
  Json parsed = Json::parse(arguments.get_ref<const std::string&>(), nullptr, false);
  return parsed.is_object() ? parsed : arguments.get_ref<const std::string&>().empty() ? Json::object() : arguments;
}

void append_text(Json& content, const std::string& text) {
  if (content.is_string() && !content.get_ref<const std::string&>().empty())
    content = content.get<std::string>() + "\n\n" + text;
  else if (content.is_array())
    content.push_back({{"type", "text"}, {"text", "\n\n" + text}});
  else
    content = text;
}

std::string text_of(const Json& content) { return content.is_string() ? content.get<std::string>() : dump_json(content); }

class Normaliser {
 public:
  Normaliser(const TemplateTraits& traits, const TurnFormat& format, const NormaliseOptions& options)
      : traits_(traits), format_(format), options_(options) {}

  Json messages(const Json& given) {
    Json out = Json::array();
    for (const Json& message : given) {
      if (!message.is_object()) return given;  // the template may know what to do with it
      Json plain = simple(message);
      if (has_calls(plain) && traits_.calls != Support::shown) write_calls(plain);
      if (has_role(plain, "tool") && traits_.results != Support::shown) plain = shown_result(plain);
      out.push_back(std::move(plain));
    }
    if (traits_.many_calls != Support::shown) out = one_call_each(out);
    if (must_change(traits_.late_system)) out = late_systems_first(out);
    if (must_change(traits_.system)) out = systems_in_users(out);
    return must_change(traits_.two_users) ? joined_users(out) : out;
  }

 private:
  // What is dropped is lost, what is refused is told.
  bool must_change(Support support) const {
    return support == Support::dropped || (support == Support::refused && options_.merges_refused);
  }

  Json simple(const Json& given) const {
    Json message = given;
    if (has_role(message, "developer") && !traits_.knows_developer) message["role"] = "system";
    join_parts(message["content"]);
    if (!has_calls(message)) return message;
    for (Json& call : message["tool_calls"])
      if (call.is_object() && call.contains("function") && call["function"].is_object())
        call["function"]["arguments"] =
            arguments_for(call["function"].value("arguments", Json()), traits_.needs_text_arguments);
    return message;
  }

  void write_calls(Json& message) const {
    std::vector<WrittenCall> calls;
    for (const Json& call : message["tool_calls"]) {
      const Json function = call.is_object() ? call.value("function", Json::object()) : Json::object();
      calls.push_back({text_of(function.value("name", Json(""))),
                       arguments_for(function.value("arguments", Json()), false), ""});
    }
    append_text(message["content"], call_text(format_.tools, calls));
    message.erase("tool_calls");
  }

  Json shown_result(const Json& message) const {
    return {{"role", "user"}, {"content", "<tool_response>\n" + text_of(message["content"]) + "\n</tool_response>"}};
  }

  // [a: f, g] [f's result] [g's result] becomes [a: f] [f's result] [: g] [g's result].
  Json one_call_each(const Json& given) const {
    Json out = Json::array();
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!has_calls(given[i]) || given[i]["tool_calls"].size() == 1) {
        out.push_back(given[i]);
        continue;
      }
      std::size_t end = i + 1;
      while (end < given.size() && has_role(given[end], "tool")) ++end;
      split_calls(given, i, end, out);
      i = end - 1;
    }
    return out;
  }

  void split_calls(const Json& given, std::size_t at, std::size_t end, Json& out) const {
    std::vector<bool> is_taken(end, false);
    bool is_first = true;
    for (const Json& call : given[at]["tool_calls"]) {
      Json one = given[at];
      one["tool_calls"] = Json::array({call});
      if (!is_first) one["content"] = "";
      is_first = false;
      out.push_back(std::move(one));
      for (std::size_t i = at + 1; i < end; ++i)
        if (!is_taken[i] && given[i].value("tool_call_id", Json()) == call.value("id", Json(0))) {
          is_taken[i] = true;
          out.push_back(given[i]);
        }
    }
    for (std::size_t i = at + 1; i < end; ++i)
      if (!is_taken[i]) out.push_back(given[i]);
  }

  static Json late_systems_first(const Json& given) {
    Json out = Json::array(), late = Json::array();
    for (const Json& message : given)
      (has_role(message, "system") && !out.empty() ? late : out).push_back(message);
    if (late.empty()) return out;
    if (!has_role(out[0], "system")) out.insert(out.begin(), Json{{"role", "system"}, {"content", ""}});
    for (const Json& message : late) append_text(out[0]["content"], text_of(message["content"]));
    return out;
  }

  // In front of what the user says next.
  static Json systems_in_users(const Json& given) {
    Json out = Json::array();
    std::string waiting;
    for (const Json& message : given) {
      if (has_role(message, "system")) {
        waiting += (waiting.empty() ? "" : "\n\n") + text_of(message["content"]);
        continue;
      }
      Json next = message;
      if (has_role(message, "user") && !waiting.empty()) {
        if (next["content"].is_string())
          next["content"] = waiting + "\n\n" + next["content"].get<std::string>();
        else
          next["content"].insert(next["content"].begin(), Json{{"type", "text"}, {"text", waiting + "\n\n"}});
        waiting.clear();
      }
      out.push_back(std::move(next));
    }
    if (!waiting.empty()) out.push_back({{"role", "user"}, {"content", waiting}});
    return out;
  }

  static Json joined_users(const Json& given) {
    Json out = Json::array();
    for (const Json& message : given) {
      const bool joins = has_role(message, "user") && !out.empty() && has_role(out.back(), "user");
      if (joins && out.back()["content"].is_string() && message["content"].is_string())
        append_text(out.back()["content"], message["content"].get<std::string>());
      else
        out.push_back(message);
    }
    return out;
  }

  const TemplateTraits& traits_;
  const TurnFormat& format_;
  const NormaliseOptions& options_;
};

// In the system message, or in front of what the user says where the template shows none.
void describe_tools(ChatInput& input, const TemplateTraits& traits) {
  const std::string prompt = generic_tool_prompt(input.tools);
  input.tools = nullptr;
  Json& messages = input.messages;
  const bool has_system = !messages.empty() && (has_role(messages[0], "system") || has_role(messages[0], "developer"));
  if (has_system) {
    join_parts(messages[0]["content"]);
    append_text(messages[0]["content"], prompt);
  } else if (traits.system == Support::shown || messages.empty() || !has_role(messages[0], "user")) {
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", prompt}});
  } else {
    join_parts(messages[0]["content"]);
    Json content = prompt;
    append_text(content, text_of(messages[0]["content"]));
    messages[0]["content"] = std::move(content);
  }
}

}  // namespace

bool asks_generically(const TemplateTraits& traits) { return traits.tools != Support::shown; }

ChatInput normalise_chat(ChatInput input, const TemplateTraits& traits, const TurnFormat& format,
                         const NormaliseOptions& options) {
  if (!input.messages.is_array()) return input;
  const bool has_tools = input.tools.is_array() && !input.tools.empty();
  if (has_tools && asks_generically(traits)) {
    describe_tools(input, traits);
  } else if (has_tools) {
    input.tools = complete_tools(input.tools, traits.needs_descriptions, traits.needs_types);
  }
  input.messages = Normaliser(traits, format, options).messages(input.messages);
  return input;
}

}  // namespace godwit::text
