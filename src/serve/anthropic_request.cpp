#include "serve/anthropic_request.h"

#include <algorithm>
#include <array>

#include "serve/answer_fields.h"
#include "serve/anthropic_messages.h"
#include "serve/chat_request.h"
#include "serve/json_fields.h"
#include "serve/request_error.h"
#include "serve/sampling_fields.h"
#include "serve/structured_output.h"
#include "serve/unserved_fields.h"

namespace godwit::serve {
namespace {

constexpr int kDefaultMaxTokens = 4096;
constexpr std::int64_t kLeastBudget = 1024;
constexpr std::array<std::string_view, 5> kEfforts = {"low", "medium", "high", "xhigh", "max"};

std::string need_string(const JsonFields& in, std::string_view name) {
  auto value = in.string(name);
  if (!value || value->empty()) bad_field(in.path_of(name), "is required");
  return std::move(*value);
}

// Tools that Anthropic's own servers run have a type and no schema: nobody here can run them.
void read_tools(const JsonFields& in, AnthropicRequest& into) {
  const Json* tools = in.array("tools");
  if (!tools) return;
  for (std::size_t i = 0; i < tools->size(); ++i) {
    const JsonFields tool((*tools)[i], fmt::format("{}[{}]", in.path_of("tools"), i));
    const std::string name = need_string(tool, "name");
    const auto type = tool.string("type");
    const Json* schema = tool.object("input_schema");
    if (!schema && type && *type != "custom") {
      into.notes.push_back(fmt::format("'{}' is left out: {} is a tool of the server", tool.path_of("type"),
                                       shown(Json(*type))));
      continue;
    }
    if (!schema) bad_field(tool.path_of("input_schema"), "is required");
    if (std::ranges::find(into.turn.tools, name, &text::ToolSpec::name) != into.turn.tools.end())
      bad_field(tool.path_of("name"), "is the name of another tool, too: {}", shown(Json(name)));
    into.turn.tools.push_back(
        {.name = name, .description = tool.string("description").value_or(""), .parameters = *schema});
    Json& parameters = into.turn.tools.back().parameters;
    if (!parameters.contains("type")) parameters["type"] = "object";  // templates print it
  }
}

void read_tool_choice(const JsonFields& in, ChatTurn& turn) {
  const Json* given = in.object("tool_choice");
  if (!given) return;
  const JsonFields choice(*given, in.path_of("tool_choice"));
  const std::string type = need_string(choice, "type");
  ToolChoice& wanted = turn.tool_choice;
  wanted.is_parallel = !choice.boolean("disable_parallel_tool_use").value_or(false);
  if (type == "auto") return;
  if (type == "none") {
    wanted.kind = ToolChoice::Kind::none;
    return;
  }
  if (type != "any" && type != "tool")
    bad_field(choice.path_of("type"), "must be one of auto, any, tool, none, got {}", shown(Json(type)));
  wanted.kind = ToolChoice::Kind::required;
  if (turn.tools.empty()) bad_field(choice.path_of("type"), "asks for a call, and the request has no tool to call");
  if (type == "any") return;
  const std::string name = need_string(choice, "name");
  if (std::ranges::find(turn.tools, name, &text::ToolSpec::name) == turn.tools.end())
    bad_field(choice.path_of("name"), "names no tool of the request: {}", shown(Json(name)));
  wanted.names = {name};
}

// Absent: a model thinks when it was asked to.
ReasoningWish read_thinking(const JsonFields& in) {
  const Json* given = in.object("thinking");
  if (!given) return {.is_on = false};
  const JsonFields thinking(*given, in.path_of("thinking"));
  const std::string type = need_string(thinking, "type");
  if (type == "disabled") return {.is_on = false};
  if (type == "enabled") {
    const auto budget = thinking.count("budget_tokens", kLeastBudget);
    if (!budget) bad_field(thinking.path_of("budget_tokens"), "is required");
    return {.is_on = true, .budget = *budget};
  }
  if (type != "adaptive" && type != "between_tools")
    bad_field(thinking.path_of("type"), "must be one of enabled, disabled, adaptive, between_tools, got {}", shown(Json(type)));
  return {.is_on = true};
}

// `output_config` {effort, format}, and the older `output_format`.
void read_output(const JsonFields& in, ChatTurn& turn) {
  turn.output = read_structured_output(in, OutputFields::anthropic);
  const Json* given = in.object("output_config");
  if (!given) return;
  const JsonFields config(*given, in.path_of("output_config"));
  const auto effort = config.string("effort");
  if (!effort) return;
  if (std::ranges::find(kEfforts, *effort) == kEfforts.end())
    bad_field(config.path_of("effort"), "must be one of low, medium, high, xhigh, max, got {}", shown(Json(*effort)));
  turn.reasoning.effort = *effort;
}

void read_limits(const JsonFields& in, AnthropicRequest& into) {
  const int limit = in.count("max_tokens", 0).value_or(kDefaultMaxTokens);
  into.only_fills_cache = limit == 0;
  // The prompt goes to the cache with its first answer token.
  into.turn.common.max_tokens = std::max(limit, 1);
}

// A last message of the assistant is the beginning of the answer.
void check_prefill(AnthropicRequest& into) {
  const Json& last = into.turn.messages.back();
  if (last["role"] != "assistant") return;
  if (last.contains("tool_calls"))
    bad_field("messages", "ends with a tool_use that has no tool_result");
  into.turn.continues_final_message = true;
  into.turn.adds_generation_prompt = false;
}

}  // namespace

AnthropicRequest parse_anthropic_request(const Json& body, const ServedModel& model) {
  const JsonFields in(body);
  static_cast<void>(in.number("temperature", 0, 1));  // the others' bounds are those of every API
  const CommonFields common = read_common_fields(in, model);
  AnthropicRequest out;
  out.stream = read_stream(in).stream;
  out.turn.common.sampling = common.sampling;
  static_cast<void>(in.array("stop_sequences"));  // a string alone is refused
  out.turn.common.stop = read_stop(in, "stop_sequences");
  out.turn.common.ignore_eos = common.ignore_eos;
  read_limits(in, out);
  read_answer_fields(in, model, out.turn.common);

  AnthropicConversation conversation = read_anthropic_conversation(in);
  out.turn.messages = std::move(conversation.messages);
  out.notes = std::move(conversation.notes);
  check_prefill(out);
  read_tools(in, out);
  read_tool_choice(in, out.turn);
  out.turn.reasoning = read_thinking(in);
  read_output(in, out.turn);
  out.turn.template_variables = read_template_variables(in);
  in.ignore("context_management");
  refuse_unheeded_fields(in);
  return out;
}

}  // namespace godwit::serve
