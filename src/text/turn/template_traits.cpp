#include "text/turn/template_traits.h"

#include <initializer_list>
#include <optional>

#include "base/error.h"

namespace godwit::text {
namespace {

Json message(const char* role, const char* content) { return {{"role", role}, {"content", content}}; }

Json call(const char* name, Json arguments, const char* id) {
  return {{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", std::move(arguments)}}}};
}

Json called(Json calls) {
  Json out = message("assistant", "");
  out["tool_calls"] = std::move(calls);
  return out;
}

Json result(const char* content, const char* name, const char* id) {
  Json out = message("tool", content);
  out["name"] = name;
  out["tool_call_id"] = id;
  return out;
}

Json probe_tool(bool is_described) {
  Json function{{"name", "probe_tool"}};
  if (is_described) function["description"] = "probe_words";
  function["parameters"] = {
      {"type", "object"},
      {"properties", {{"probe_key", {{"type", "string"}, {"description", "probe_about"}}}}},
      {"required", {"probe_key"}}};
  return Json::array({{{"type", "function"}, {"function", std::move(function)}}});
}

class Probes {
 public:
  explicit Probes(const ChatTemplate& chat_template) : template_(chat_template) {}

  // Whether all of `words` come out.
  Support of(Json messages, std::initializer_list<std::string_view> words, Json tools = nullptr) const {
    try {
      const std::string text = template_.render({.messages = std::move(messages), .tools = std::move(tools)});
      for (const std::string_view word : words)
        if (text.find(word) == std::string::npos) return Support::dropped;
      return Support::shown;
    } catch (const Error&) {
      return Support::refused;
    }
  }

 private:
  const ChatTemplate& template_;
};

void probe_calls(TemplateTraits& traits, const Probes& probes) {
  const Json user = message("user", "probe_user"), tool = probe_tool(true);
  const Json object{{"probe_key", "probe_value"}}, text = "{\"probe_key\": \"probe_value\"}";
  const Json done = result("probe_result", "probe_tool", "callprob1");
  const auto one = [&](const Json& arguments, std::initializer_list<std::string_view> words) {
    return probes.of({user, called({call("probe_tool", arguments, "callprob1")}), done}, words, tool);
  };
  // The name stands in the list of tools as well: the value tells.
  const auto shows = [&](const Json& arguments) {  // some templates want the result of each call, some know none
    const Support alone = probes.of({user, called({call("probe_tool", arguments, "callprob1")})}, {"probe_value"}, tool);
    return alone == Support::shown ? alone : one(arguments, {"probe_value"});
  };
  traits.calls = shows(object);
  if (traits.calls != Support::shown && shows(text) == Support::shown) {
    traits.calls = Support::shown;
    traits.needs_text_arguments = true;
  }
  const Json& arguments = traits.needs_text_arguments ? text : object;
  traits.results = one(arguments, {"probe_result"});
  Json other{{"probe_key", "probe_second"}};
  if (traits.needs_text_arguments) other = "{\"probe_key\": \"probe_second\"}";
  traits.many_calls = probes.of({user,
                                 called({call("probe_tool", arguments, "callprob1"), call("probe_tool", other, "callprob2")}),
                                 done, result("probe_answer", "probe_tool", "callprob2")},
                                {"probe_value", "probe_second"}, tool);
}

}  // namespace

TemplateTraits template_traits(const ChatTemplate& chat_template) {
  const Probes probes(chat_template);
  TemplateTraits traits;
  const std::string& source = chat_template.source();
  traits.knows_developer = source.find("developer") != std::string::npos;
  traits.needs_types = source.find("| upper") != std::string::npos || source.find("|upper") != std::string::npos;
  const Json user = message("user", "probe_user"), answer = message("assistant", "probe_answer");
  if (probes.of({user}, {"probe_user"}) != Support::shown) return traits;  // it speaks of something else than text
  traits.system = probes.of({message("system", "probe_first"), user}, {"probe_first", "probe_user"});
  traits.late_system = probes.of({message("system", "probe_first"), user, answer, message("system", "probe_late"),
                                  message("user", "probe_next")},
                                 {"probe_first", "probe_user", "probe_late", "probe_next"});
  traits.two_users = probes.of({user, message("user", "probe_next")}, {"probe_user", "probe_next"});
  traits.tools = probes.of({user}, {"probe_tool", "probe_user"}, probe_tool(true));
  if (traits.tools == Support::shown)
    traits.needs_descriptions = probes.of({user}, {"probe_tool"}, probe_tool(false)) != Support::shown;
  probe_calls(traits, probes);
  return traits;
}

}  // namespace godwit::text
