#include "serve/responses_request.h"

#include <algorithm>

#include "serve/answer_fields.h"
#include "serve/chat_request.h"
#include "serve/json_fields.h"
#include "serve/reasoning_fields.h"
#include "serve/request_error.h"
#include "serve/responses_input.h"
#include "serve/sampling_fields.h"
#include "serve/structured_output.h"
#include "serve/tool_fields.h"
#include "serve/unserved_fields.h"

namespace godwit::serve {
namespace {

Json or_default(const JsonFields& in, std::string_view name, Json absent) {
  const Json* value = in.find(name);
  return value ? *value : absent;
}

void read_limit(const JsonFields& in, decode::GenerationRequest& into) {
  into.max_tokens = in.count("max_output_tokens", 1).value_or(-1);
}

void read_included(const JsonFields& in, decode::GenerationRequest& into) {
  const Json* include = in.array("include");
  into.top_logprobs = static_cast<int>(in.integer("top_logprobs", 0, kMaxTopLogprobs).value_or(0));
  into.logprobs = into.top_logprobs > 0;
  if (!include) return;
  for (const Json& what : *include) {
    if (!what.is_string()) bad_field(in.path_of("include"), "needs strings, got {}", shown(what));
    into.logprobs |= what == "message.output_text.logprobs";
  }
}

ReasoningWish read_wish(const JsonFields& in) {
  ReasoningWish wish = read_reasoning(in);
  const Json* given = in.object("reasoning");
  if (!given) return wish;
  const JsonFields fields(*given, in.path_of("reasoning"));
  if (const auto effort = fields.string("effort")) {
    const int budget = wish.budget;
    wish = reasoning_of_effort(*effort, fields.path_of("effort"));
    wish.budget = budget;
  }
  return wish;
}

bool read_truncation(const JsonFields& in) {
  const std::string truncation = in.string("truncation").value_or("disabled");
  if (truncation != "auto" && truncation != "disabled")
    bad_field(in.path_of("truncation"), "must be auto or disabled, got {}", shown(Json(truncation)));
  return truncation == "auto";
}

Json read_echo(const JsonFields& in, const ResponsesRequest& request) {
  const decode::GenerationRequest& common = request.turn.common;
  static_cast<void>(in.object("metadata"));
  return {{"instructions", or_default(in, "instructions", nullptr)},
          {"max_output_tokens", or_default(in, "max_output_tokens", nullptr)},
          {"max_tool_calls", or_default(in, "max_tool_calls", nullptr)},
          {"parallel_tool_calls", in.boolean("parallel_tool_calls").value_or(true)},
          {"previous_response_id", or_default(in, "previous_response_id", nullptr)},
          {"prompt_cache_key", or_default(in, "prompt_cache_key", nullptr)},
          {"reasoning", or_default(in, "reasoning", {{"effort", nullptr}, {"summary", nullptr}})},
          {"safety_identifier", or_default(in, "safety_identifier", nullptr)},
          {"service_tier", or_default(in, "service_tier", "default")},
          {"store", request.is_stored},
          {"temperature", common.sampling.temperature},
          {"text", or_default(in, "text", {{"format", {{"type", "text"}}}})},
          {"tool_choice", or_default(in, "tool_choice", "auto")},
          {"tools", or_default(in, "tools", Json::array())},
          {"top_logprobs", common.top_logprobs},
          {"top_p", common.sampling.top_p},
          {"truncation", request.may_cut ? "auto" : "disabled"},
          {"user", or_default(in, "user", nullptr)},
          {"metadata", or_default(in, "metadata", Json::object())}};
}

class InputReader {
 public:
  InputReader(ResponseStore& store, std::int64_t now) : store_(store), now_(now) {}

  void read(const JsonFields& in, ResponsesRequest& into) const {
    Json items = Json::array();
    if (const auto id = in.string("previous_response_id")) {
      const auto record = store_.find(*id, now_);
      if (!record)
        throw RequestError(
            ErrorCode::not_found, fmt::format("there is no response {}", shown(Json(*id))),
            {.param = in.path_of("previous_response_id"), .code = "previous_response_not_found"});
      items = record->all_items();
      into.earlier = record->turns;
    }
    const Json* input = in.find("input");
    if (!input && items.empty()) bad_field(in.path_of("input"), "is required");
    const auto find_item = [this](std::string_view id) { return store_.find_item(id, now_); };
    if (input) into.items = read_items(*input, in.path_of("input"), find_item);
    items.insert(items.end(), into.items.begin(), into.items.end());
    Json messages = messages_of_items(items, into.items.size());
    if (const auto instructions = in.string("instructions"))
      messages.insert(messages.begin(), Json{{"role", "system"}, {"content", *instructions}});
    if (messages.empty()) bad_field(in.path_of("input"), "holds no message");
    into.turn.messages = std::move(messages);
  }

 private:
  ResponseStore& store_;
  std::int64_t now_;
};

bool is_system(const Json& message) { return message["role"] == "system" || message["role"] == "developer"; }

// A turn that can go begins with a message that is not the system's and takes the results of its calls with it. The last
// one stays.
bool begins_turn(const Json& messages, std::size_t at) {
  return !is_system(messages[at]) && (messages[at]["role"] != "tool" || at == 0 || is_system(messages[at - 1]));
}

std::size_t droppable_turns(const Json& messages) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) count += begins_turn(messages, i) ? 1 : 0;
  return count == 0 ? 0 : count - 1;
}

Json without_first_turns(const Json& messages, std::size_t count) {
  Json kept = Json::array();
  std::size_t begun = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    begun += begins_turn(messages, i) ? 1 : 0;
    if (is_system(messages[i]) || begun > count) kept.push_back(messages[i]);
  }
  return kept;
}

}  // namespace

ResponsesRequest parse_responses_request(const Json& body, const ServedModel& model, ResponseStore& store,
                                         std::int64_t now) {
  const JsonFields in(body);
  const CommonFields common = read_common_fields(in, model);

  ResponsesRequest request;
  request.stream = read_stream(in).stream;
  ChatTurn& turn = request.turn;
  turn.common.sampling = common.sampling;
  turn.common.stop = read_stop(in);
  turn.common.ignore_eos = common.ignore_eos;
  read_limit(in, turn.common);
  read_answer_fields(in, model, turn.common);
  read_included(in, turn.common);
  ToolFields tools = read_response_tools(in);
  turn.tools = std::move(tools.tools);
  turn.tool_choice = std::move(tools.choice);
  request.left_out = std::move(tools.left_out);
  turn.reasoning = read_wish(in);
  turn.output = read_structured_output(in, OutputFields::responses);
  turn.template_variables = read_template_variables(in);
  request.is_stored = in.boolean("store").value_or(true);
  request.may_cut = read_truncation(in);
  InputReader(store, now).read(in, request);
  request.echo = read_echo(in, request);
  refuse_unheeded_fields(in);
  return request;
}

void cut_to_context(ChatTurn& turn, const ServedModel& model) {
  const Json all = std::move(turn.messages);
  const auto fits = [&](std::size_t dropped) {
    turn.messages = without_first_turns(all, dropped);
    try {
      return render_turn(turn, model).size() < static_cast<std::size_t>(model.context_length);
    } catch (const RequestError& error) {
      if (error.code() == ErrorCode::context_overflow) return false;
      throw;
    }
  };
  if (fits(0)) return;
  // The fewest turns that must go: a chat with fewer turns is shorter.
  std::size_t kept_out = 0, enough = droppable_turns(all);
  while (enough - kept_out > 1) {
    const std::size_t middle = kept_out + (enough - kept_out) / 2;
    (fits(middle) ? enough : kept_out) = middle;
  }
  turn.messages = without_first_turns(all, enough);
}

}  // namespace godwit::serve
