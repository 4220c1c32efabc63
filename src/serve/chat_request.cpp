#include "serve/chat_request.h"

#include <algorithm>
#include <array>
#include <limits>

#include "serve/chat_messages.h"
#include "serve/json_fields.h"
#include "serve/request_error.h"
#include "serve/sampling_fields.h"
#include "serve/unserved_fields.h"

namespace godwit::serve {
namespace {

constexpr std::size_t kMostVariables = 1024;  // each joins the others by a search through them
constexpr std::array<std::string_view, 7> kEfforts = {"none", "minimal", "low", "medium",
                                                      "high", "xhigh",   "max"};

ReasoningWish read_reasoning(const JsonFields& in) {
  const auto effort = in.string("reasoning_effort");
  if (!effort) return {};
  if (std::ranges::find(kEfforts, *effort) == kEfforts.end())
    bad_field(in.path_of("reasoning_effort"),
              "must be one of none, minimal, low, medium, high, xhigh, max, got {}", shown(Json(*effort)));
  if (*effort == "none") return {.is_on = false};
  return {.effort = *effort};
}

// The template's own keyword arguments.
Json read_template_variables(const JsonFields& in) {
  Json extra = Json::object();
  const Json* given = in.object("chat_template_kwargs");
  if (!given) return extra;
  if (given->size() > kMostVariables)
    bad_field(in.path_of("chat_template_kwargs"), "may hold at most {} variables, got {}", kMostVariables,
              given->size());
  for (const auto& [name, value] : given->items()) {
    if (name == "messages" || name == "tools")
      bad_field(in.path_of("chat_template_kwargs"), "may not set '{}'", name);
    extra[name] = value;
  }
  return extra;
}

void read_logprobs(const JsonFields& in, decode::GenerationRequest& request) {
  const Json* wanted = in.find("logprobs");
  if (wanted && wanted->is_number()) {  // the legacy form: how many alternatives
    request.logprobs = true;
    request.top_logprobs = static_cast<int>(*in.integer("logprobs", 0, kMaxTopLogprobs));
  } else {
    request.logprobs = in.boolean("logprobs").value_or(false);
  }
  const auto top = in.integer("top_logprobs", 0, kMaxTopLogprobs);
  if (top.value_or(0) > 0 && !request.logprobs)
    bad_field(in.path_of("top_logprobs"), "needs \"logprobs\": true, got {}", *top);
  if (top) request.top_logprobs = static_cast<int>(*top);
}

int read_max_tokens(const JsonFields& in) {
  constexpr int kMost = std::numeric_limits<int>::max();
  // Both are checked; the newer name wins.
  const auto older = in.integer("max_tokens", 1);
  const auto newer = in.integer("max_completion_tokens", 1);
  const auto limit = newer ? newer : older;
  return limit ? static_cast<int>(std::min<std::int64_t>(*limit, kMost)) : -1;
}

}  // namespace

ChatRequest parse_chat_request(const Json& body, const ServedModel& model) {
  const JsonFields in(body);
  const CommonFields common = read_common_fields(in, model);
  refuse_unserved_fields(in);

  ChatRequest chat{.stream = common.stream, .include_usage = common.include_usage};
  ChatTurn& turn = chat.turn;
  turn.choices = common.choices;
  turn.common.sampling = common.sampling;
  turn.common.stop = common.stop;
  turn.common.ignore_eos = common.ignore_eos;
  turn.common.max_tokens = read_max_tokens(in);
  read_logprobs(in, turn.common);

  turn.messages = read_messages(in, model.need_chat_template().source());
  turn.adds_generation_prompt = in.boolean("add_generation_prompt").value_or(true);
  turn.reasoning = read_reasoning(in);
  turn.template_variables = read_template_variables(in);
  return chat;
}

}  // namespace godwit::serve
