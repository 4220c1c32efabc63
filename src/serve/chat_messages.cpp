#include "serve/chat_messages.h"

#include <algorithm>
#include <array>

#include "serve/request_error.h"

namespace godwit::serve {
namespace {

constexpr std::array<std::string_view, 6> kRoles = {"system",    "developer", "user",
                                                    "assistant", "tool",      "function"};

std::string read_role(const JsonFields& message, std::string_view template_source) {
  const auto role = message.string("role");
  const std::string param = message.path_of("role");
  if (!role) bad_field(param, "is required");
  if (std::ranges::find(kRoles, *role) == kRoles.end())
    bad_field(param, "must be one of system, developer, user, assistant, tool, function, got {}",
              shown(Json(*role)));
  const bool knows_developer = template_source.find("developer") != std::string_view::npos;
  return *role == "developer" && !knows_developer ? "system" : *role;
}

std::string text_of_part(const Json& part, const std::string& param) {
  if (part.is_string()) return part.get<std::string>();
  const JsonFields in(part, param);
  const auto type = in.string("type");
  if (!type) bad_field(in.path_of("type"), "is required");
  if (*type == "image_url" || *type == "input_audio" || *type == "file")
    unserved_field(param, fmt::format("a part of type {}", *type));
  if (*type != "text" && *type != "refusal")
    bad_field(in.path_of("type"), "must be text, got {}", shown(Json(*type)));
  const auto text = in.string(*type);
  if (!text) bad_field(in.path_of(*type), "is required");
  return *text;
}

// Parts are joined without a separator, as templates that walk over parts print them.
std::string read_content(const JsonFields& message, bool may_be_absent) {
  const Json* content = message.find("content");
  const std::string param = message.path_of("content");
  // An absent content would print as "None" in a template that does not expect it.
  if (!content && may_be_absent) return "";
  if (!content) bad_field(param, "is required");
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array())
    bad_field(param, "must be a string or an array of parts, got {}", shown(*content));
  std::string text;
  for (std::size_t i = 0; i < content->size(); ++i)
    text += text_of_part((*content)[i], fmt::format("{}[{}]", param, i));
  return text;
}

// Templates index into arguments; the wire carries them as a string of JSON. What does not parse stays a
// string.
Json read_tool_calls(const Json& calls, const std::string& param) {
  Json out = Json::array();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const JsonFields call(calls[i], fmt::format("{}[{}]", param, i));
    if (!call.object("function")) bad_field(call.path_of("function"), "is required");
    Json copy = calls[i];
    Json& arguments = copy["function"]["arguments"];
    if (arguments.is_string()) {
      Json parsed = Json::parse(arguments.get_ref<const std::string&>(), nullptr, /*allow_exceptions=*/false);
      if (parsed.is_object()) arguments = std::move(parsed);
    }
    out.push_back(std::move(copy));
  }
  return out;
}

Json read_message(const JsonFields& in, std::string_view template_source) {
  const std::string role = read_role(in, template_source);
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
  return message;
}

}  // namespace

Json read_messages(const JsonFields& in, std::string_view template_source) {
  const Json* messages = in.array("messages");
  const std::string param = in.path_of("messages");
  if (!messages) bad_field(param, "is required");
  if (messages->empty()) bad_field(param, "must hold at least one message");
  if (messages->size() > kMaxMessages)
    bad_field(param, "may hold at most {} messages, got {}", kMaxMessages, messages->size());
  Json out = Json::array();
  for (std::size_t i = 0; i < messages->size(); ++i)
    out.push_back(read_message(JsonFields((*messages)[i], fmt::format("{}[{}]", param, i)), template_source));
  return out;
}

}  // namespace godwit::serve
