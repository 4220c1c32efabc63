#include "serve/chat_messages.h"

#include <algorithm>
#include <array>

#include "serve/request_error.h"

namespace godwit::serve {
namespace {

constexpr std::array<std::string_view, 6> kRoles = {"system",    "developer", "user",
                                                    "assistant", "tool",      "function"};
constexpr std::array<std::string_view, 3> kTextParts = {"text", "input_text", "output_text"};
constexpr std::array<std::string_view, 7> kMediaParts = {
    "image_url", "input_audio", "file", "input_image", "input_file", "video_url", "audio_url"};

std::string read_role(const JsonFields& message) {
  const auto role = message.string("role");
  const std::string param = message.path_of("role");
  if (!role) bad_field(param, "is required");
  if (std::ranges::find(kRoles, *role) == kRoles.end())
    bad_field(param, "must be one of system, developer, user, assistant, tool, function, got {}",
              shown(Json(*role)));
  return *role;
}

std::string text_of_part(const Json& part, const std::string& param) {
  if (part.is_string()) return part.get<std::string>();
  const JsonFields in(part, param);
  const auto type = in.string("type");
  if (!type) bad_field(in.path_of("type"), "is required");
  if (std::ranges::find(kMediaParts, *type) != kMediaParts.end())
    unserved_field(param, fmt::format("a part of type {}", *type));
  const bool is_refusal = *type == "refusal";
  if (!is_refusal && std::ranges::find(kTextParts, *type) == kTextParts.end())
    bad_field(in.path_of("type"), "must be text, got {}", shown(Json(*type)));
  const std::string_view name = is_refusal ? "refusal" : "text";
  const auto text = in.string(name);
  if (!text) bad_field(in.path_of(name), "is required");
  return *text;
}

std::string read_content(const JsonFields& message, bool may_be_absent) {
  const Json* content = message.find("content");
  const std::string param = message.path_of("content");
  // An absent content would print as "None" in a template that does not expect it.
  if (!content && may_be_absent) return "";
  if (!content) bad_field(param, "is required");
  return content_text(*content, param);
}

Json read_tool_calls(const Json& calls, const std::string& param) {
  Json out = Json::array();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const JsonFields call(calls[i], fmt::format("{}[{}]", param, i));
    need_function(call);
    Json copy = calls[i];
    Json& arguments = copy["function"]["arguments"];
    if (arguments.is_string()) arguments = call_arguments(arguments.get<std::string>());
    if (arguments.is_null()) arguments = Json::object();
    out.push_back(std::move(copy));
  }
  return out;
}

class MessageReader {
 public:
  Json read(const JsonFields& in) {
    const std::string role = read_role(in);
    Json message{{"role", role}};
    // An explicit null is tolerated everywhere: SDKs send it for "nothing to say".
    const bool is_present = in.has("content");
    message["content"] = read_content(in, is_present || role == "assistant");
    for (const auto* name : {"name", "tool_call_id"})
      if (const auto value = in.string(name)) message[name] = *value;
    for (const auto* name : {"reasoning", "reasoning_content"})
      if (const auto value = in.string(name)) message["reasoning_content"] = *value;
    const Json* calls = in.array("tool_calls");
    if (calls && !calls->empty()) message["tool_calls"] = read_tool_calls(*calls, in.path_of("tool_calls"));
    read_older_names(in, message);
    return message;
  }

 private:
  // A call and its result from before there were tools become what templates know.
  void read_older_names(const JsonFields& in, Json& message) {
    if (const Json* call = in.object("function_call"); call && !message.contains("tool_calls")) {
      const Json calls = Json::array({{{"type", "function"}, {"function", *call}}});
      message["tool_calls"] = read_tool_calls(calls, in.path_of("function_call"));
      message["tool_calls"][0]["id"] = id_ = fmt::format("call_{}", ++count_);
    }
    if (message["role"] != "function") return;
    message["role"] = "tool";
    message["tool_call_id"] = id_;
  }

  std::string id_;  // of the newest call by the older name
  int count_ = 0;
};

}  // namespace

std::string content_text(const Json& content, const std::string& param) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) bad_field(param, "must be a string or an array of parts, got {}", shown(content));
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i)
    text += text_of_part(content[i], fmt::format("{}[{}]", param, i));
  return text;
}

Json call_arguments(const std::string& text) {
  try {
    Json parsed = parse_json(text, "arguments");
    if (parsed.is_object()) return parsed;
  } catch (const Error&) {  // models write what is no JSON; templates get it as it is
  }
  return text;
}

const Json& need_messages(const JsonFields& in) {
  const Json* messages = in.array("messages");
  const std::string param = in.path_of("messages");
  if (!messages) bad_field(param, "is required");
  if (messages->empty()) bad_field(param, "must hold at least one message");
  if (messages->size() > kMaxMessages)
    bad_field(param, "may hold at most {} messages, got {}", kMaxMessages, messages->size());
  return *messages;
}

JsonFields need_function(const JsonFields& call) {
  const Json* given = call.object("function");
  if (!given) bad_field(call.path_of("function"), "is required");
  const JsonFields function(*given, call.path_of("function"));
  if (!function.string("name")) bad_field(function.path_of("name"), "is required");
  return function;
}

Json read_messages(const JsonFields& in) {
  const Json& messages = need_messages(in);
  const std::string param = in.path_of("messages");
  Json out = Json::array();
  MessageReader reader;
  for (std::size_t i = 0; i < messages.size(); ++i)
    out.push_back(reader.read(JsonFields(messages[i], fmt::format("{}[{}]", param, i))));
  return out;
}

}  // namespace godwit::serve
