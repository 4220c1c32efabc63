#include "serve/tool_fields.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "serve/request_error.h"

namespace godwit::serve {
namespace {

constexpr std::size_t kMostNameLength = 64;

bool is_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == ':';
  };
  return !name.empty() && name.size() <= kMostNameLength && std::ranges::all_of(name, fits);
}

std::string need_string(const JsonFields& in, std::string_view name) {
  const auto value = in.string(name);
  if (!value) bad_field(in.path_of(name), "is required");
  return *value;
}

// Reads one API's spelling. Flat: {"type": "function", "name": …}; else the function is an object of its own.
class ToolReader {
 public:
  explicit ToolReader(bool is_flat) : is_flat_(is_flat) {}

  ToolFields read(const JsonFields& in) {
    if (const Json* tools = in.array("tools")) read_tools(*tools, in.path_of("tools"));
    if (const Json* choice = in.find("tool_choice")) read_choice(*choice, in.path_of("tool_choice"));
    out_.choice.is_parallel = in.boolean("parallel_tool_calls").value_or(true) && out_.choice.is_parallel;
    return std::move(out_);
  }

  void add(text::ToolSpec tool, const std::string& param) {
    if (find(tool.name)) bad_field(param, "names the function {} twice", shown(Json(tool.name)));
    out_.tools.push_back(std::move(tool));
  }

  void require_one(const std::string& name, const std::string& param) {
    if (!find(name)) bad_field(param, "names {}, which is none of the tools", shown(Json(name)));
    out_.choice.kind = ToolChoice::Kind::required;
    out_.choice.names = {name};
    out_.choice.is_parallel = false;
  }

  ToolFields& out() { return out_; }

 private:
  bool find(std::string_view name) const {
    return std::ranges::find(out_.tools, name, &text::ToolSpec::name) != out_.tools.end();
  }

  void read_tools(const Json& tools, const std::string& param) {
    if (tools.size() > kMostTools)
      bad_field(param, "may hold at most {} tools, got {}", kMostTools, tools.size());
    for (std::size_t i = 0; i < tools.size(); ++i) {
      const JsonFields tool(tools[i], fmt::format("{}[{}]", param, i));
      const std::string type = tool.string("type").value_or("function");
      if (type != "function") {
        out_.left_out.push_back(type);
        continue;
      }
      add(read_function(function_of(tool)), function_of(tool).path_of("name"));
    }
  }

  JsonFields function_of(const JsonFields& in) const {
    if (is_flat_) return in;
    const Json* function = in.object("function");
    if (!function) bad_field(in.path_of("function"), "is required");
    return JsonFields(*function, in.path_of("function"));
  }

  void read_choice(const Json& choice, const std::string& param) {
    if (choice.is_string()) return read_mode(choice.get<std::string>(), param);
    const JsonFields in(choice, param);
    const std::string type = need_string(in, "type");
    if (type == "function") {
      const JsonFields function = function_of(in);
      return require_one(need_string(function, "name"), function.path_of("name"));
    }
    if (type != "allowed_tools")
      bad_field(in.path_of("type"), "must be function or allowed_tools, got {}", shown(Json(type)));
    const Json* inner = is_flat_ ? &choice : in.object("allowed_tools");
    if (!inner) bad_field(in.path_of("allowed_tools"), "is required");
    read_allowed(JsonFields(*inner, is_flat_ ? param : in.path_of("allowed_tools")));
  }

  void read_mode(const std::string& mode, const std::string& param) {
    using enum ToolChoice::Kind;
    if (mode != "auto" && mode != "none" && mode != "required")
      bad_field(param, "must be auto, none, required or an object, got {}", shown(Json(mode)));
    if (mode == "required" && out_.tools.empty()) bad_field(param, "needs 'tools'");
    out_.choice.kind = mode == "auto" ? automatic : mode == "none" ? none : required;
  }

  void read_allowed(const JsonFields& in) {
    const std::string mode = in.string("mode").value_or("auto");
    if (mode != "auto" && mode != "required")
      bad_field(in.path_of("mode"), "must be auto or required, got {}", shown(Json(mode)));
    const Json* tools = in.array("tools");
    const std::string param = in.path_of("tools");
    if (!tools || tools->empty()) bad_field(param, "must name at least one tool");
    for (std::size_t i = 0; i < tools->size(); ++i) {
      const JsonFields tool((*tools)[i], fmt::format("{}[{}]", param, i));
      const JsonFields function = function_of(tool);
      const std::string name = need_string(function, "name");
      if (!find(name))
        bad_field(function.path_of("name"), "names {}, which is none of the tools", shown(Json(name)));
      out_.choice.names.push_back(name);
    }
    out_.choice.kind = mode == "auto" ? ToolChoice::Kind::automatic : ToolChoice::Kind::required;
  }

  bool is_flat_;
  ToolFields out_;
};

// The names from before there were tools: one call at most, and no ids.
ToolFields read_functions(const JsonFields& in, const Json& functions) {
  ToolReader reader(/*is_flat=*/true);
  const std::string param = in.path_of("functions");
  if (functions.size() > kMostTools)
    bad_field(param, "may hold at most {} functions, got {}", kMostTools, functions.size());
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const JsonFields function(functions[i], fmt::format("{}[{}]", param, i));
    reader.add(read_function(function), function.path_of("name"));
  }
  reader.out().is_legacy = true;
  reader.out().choice.is_parallel = false;
  in.ignore("parallel_tool_calls");  // there is one at most
  const Json* call = in.find("function_call");
  if (!call) return std::move(reader.out());
  const std::string call_param = in.path_of("function_call");
  if (call->is_object()) {
    const JsonFields named(*call, call_param);
    reader.require_one(need_string(named, "name"), named.path_of("name"));
  } else if (*call == "none") {
    reader.out().choice.kind = ToolChoice::Kind::none;
  } else if (*call != "auto") {
    bad_field(call_param, "must be auto, none or an object with a name, got {}", shown(*call));
  }
  return std::move(reader.out());
}

}  // namespace

text::ToolSpec read_function(const JsonFields& in) {
  text::ToolSpec tool;
  tool.name = need_string(in, "name");
  tool.description = in.string("description").value_or("");
  if (!is_name(tool.name))
    bad_field(in.path_of("name"), "must be 1 to {} letters, digits, '_', '-', '.' or ':', got {}",
              kMostNameLength, shown(Json(tool.name)));
  const Json* parameters = in.object("parameters");
  tool.parameters = parameters ? *parameters : Json{{"type", "object"}, {"properties", Json::object()}};
  tool.is_strict = in.boolean("strict").value_or(false);
  return tool;
}

ToolFields read_chat_tools(const JsonFields& in) {
  const Json* functions = in.array("functions");
  if (functions && in.has("tools") && in.find("tools"))
    bad_field(in.path_of("functions"), "is the older name of 'tools'; send one of them");
  if (functions && !functions->empty()) return read_functions(in, *functions);
  if (const Json* call = in.find("function_call"); call && *call != "none" && *call != "auto")
    bad_field(in.path_of("function_call"), "needs 'functions'");
  return ToolReader(/*is_flat=*/false).read(in);
}

ToolFields read_response_tools(const JsonFields& in) { return ToolReader(/*is_flat=*/true).read(in); }

void note_left_out(const std::vector<std::string>& types, const Request& request, const Context& context) {
  if (types.empty()) return;
  context.log.info("{}: tools that are no functions were left out: {}", request.id, fmt::join(types, ", "));
}

}  // namespace godwit::serve
