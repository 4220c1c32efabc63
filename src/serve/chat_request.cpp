#include "serve/chat_request.h"

#include "serve/answer_fields.h"
#include "serve/chat_messages.h"
#include "serve/json_fields.h"
#include "serve/reasoning_fields.h"
#include "serve/request_error.h"
#include "serve/sampling_fields.h"
#include "serve/structured_output.h"
#include "serve/tool_fields.h"
#include "serve/unserved_fields.h"

namespace godwit::serve {
namespace {

constexpr std::size_t kMostVariables = 1024;  // each joins the others by a search through them

int read_max_tokens(const JsonFields& in) {
  // Both are checked; the newer name wins.
  const auto older = in.count("max_tokens", 1);
  const auto newer = in.count("max_completion_tokens", 1);
  return newer.value_or(older.value_or(-1));
}

// The last message of an assistant is the beginning of the answer, unless the request says otherwise.
void read_continuation(const JsonFields& in, ChatTurn& turn) {
  const auto adds_prompt = in.boolean("add_generation_prompt");
  const auto continues = in.boolean("continue_final_message");
  if (adds_prompt.value_or(false) && continues.value_or(false))
    bad_field(in.path_of("continue_final_message"), "contradicts \"add_generation_prompt\": true");
  const Json& last = turn.messages.back();
  const bool is_answer = last["role"] == "assistant" && !last.contains("tool_calls");
  if (continues.value_or(false) && !is_answer)
    bad_field(in.path_of("continue_final_message"), "needs an assistant's text as the last message");
  turn.continues_final_message = continues.value_or(is_answer && !adds_prompt);
  turn.adds_generation_prompt = adds_prompt.value_or(true);
}

void read_tools(const JsonFields& in, ChatRequest& chat) {
  ToolFields fields = read_chat_tools(in);
  chat.turn.tools = std::move(fields.tools);
  chat.turn.tool_choice = std::move(fields.choice);
  chat.shape.is_legacy = fields.is_legacy;
  chat.left_out = std::move(fields.left_out);
}

}  // namespace

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

ChatRequest parse_chat_request(const Json& body, const ServedModel& model) {
  const JsonFields in(body);
  const CommonFields common = read_common_fields(in, model);

  const StreamFields wire = read_stream(in);
  ChatRequest chat{.stream = wire.stream, .include_usage = wire.include_usage};
  ChatTurn& turn = chat.turn;
  turn.choices = read_choices(in);
  turn.common.sampling = common.sampling;
  turn.common.stop = read_stop(in);
  turn.common.ignore_eos = common.ignore_eos;
  turn.common.max_tokens = read_max_tokens(in);
  read_answer_fields(in, model, turn.common);
  read_logprobs(in, turn.common);
  turn.output = read_structured_output(in, OutputFields::openai);

  turn.messages = read_messages(in);
  read_continuation(in, turn);
  read_tools(in, chat);
  turn.reasoning = read_reasoning(in);
  turn.template_variables = read_template_variables(in);
  if (const Json* documents = in.array("documents"); documents && !documents->empty())
    turn.documents = *documents;
  chat.shape.shows_reasoning = in.boolean("include_reasoning").value_or(true);
  chat.shape.returns_token_ids = in.boolean("return_token_ids").value_or(false);
  refuse_unheeded_fields(in);
  return chat;
}

}  // namespace godwit::serve
