#include "serve/chat_answer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "serve/request_error.h"
#include "serve/structured_output.h"
#include "text/turn/call_grammar.h"

namespace godwit::serve {
namespace {

bool is_empty(const ChatDelta& delta) {
  return !delta.is_first && !delta.finish && delta.ids.empty() && delta.pieces.empty() &&
         delta.logprobs.empty();
}

bool has_strict(const std::vector<text::ToolSpec>& tools) {
  return std::ranges::any_of(tools, [](const text::ToolSpec& tool) { return tool.is_strict; });
}

OutputWish calls_wish(const ChatTurn& turn, const std::vector<text::ToolSpec>& tools, text::CallWish wish,
                      const ServedModel& model, const text::JsonInstead& instead = {}) {
  try {
    return {{.kind = text::GrammarKind::lark,
             .text = text::call_grammar(model.turn_format, tools, wish, turn.tool_choice.is_parallel, instead)},
            "tools"};
  } catch (const Error& e) {
    if (e.code() != ErrorCode::invalid_argument) throw;
    throw RequestError(ErrorCode::invalid_argument, fmt::format("'tools' cannot be followed: {}", e.what()),
                       {.param = "tools", .code = "invalid_value"});
  }
}

// Calls, or content of the form that was asked for. Only JSON can stand in the grammar of calls.
std::shared_ptr<const text::CompiledGrammar> calls_or_output(const ChatTurn& turn,
                                                             const std::vector<text::ToolSpec>& tools,
                                                             const ServedModel& model) {
  const auto& [spec, param] = *turn.output;
  const bool is_json = spec.kind == text::GrammarKind::json_object || spec.kind == text::GrammarKind::json_schema;
  if (!is_json || !text::may_have_json_instead(model.turn_format))
    unserved_field(param, "this form of the output beside tools that may be called");
  static_cast<void>(compile_output(model, *turn.output));  // what is wrong with it is not the tools' fault
  const Json schema = spec.kind == text::GrammarKind::json_object ? Json{{"type", "object"}} : parse_json(spec.text, param);
  return compile_output(model, calls_wish(turn, tools, text::CallWish::forced, model, schema));
}

// The content's form, or that of the calls, or both.
std::shared_ptr<const text::CompiledGrammar> grammar_of(const ChatTurn& turn,
                                                        const std::vector<text::ToolSpec>& tools,
                                                        const ServedModel& model) {
  const bool is_forced = turn.tool_choice.kind == ToolChoice::Kind::required;
  if (is_forced && !tools.empty()) return compile_output(model, calls_wish(turn, tools, text::CallWish::forced, model));
  if (turn.output) return tools.empty() ? compile_output(model, *turn.output) : calls_or_output(turn, tools, model);
  if (tools.empty() || !has_strict(tools)) return nullptr;
  return compile_output(model, calls_wish(turn, tools, text::CallWish::free, model));
}

// Free text up to the end of the reasoning, where the answer may have some.
ReasoningBefore reasoning_before(const ChatTurn& turn, const text::TurnFormat& format, bool is_in_reasoning) {
  const bool is_off = !is_in_reasoning && (turn.reasoning.is_on == false || turn.continues_final_message);
  if (format.reasoning_close.empty() || is_off) return {};
  return {.open = format.reasoning_open,
          .close = format.reasoning_close,
          .start = is_in_reasoning ? decode::ReasoningStart::open : decode::ReasoningStart::may_open,
          .budget = turn.reasoning.budget};
}

// Stop strings are of the content: what the model thinks ends nothing.
void hold_stops(const ChatTurn& turn, const text::TurnFormat& format, bool is_in_reasoning,
                decode::GenerationRequest& into) {
  if (into.stop.empty() || reasoning_before(turn, format, is_in_reasoning).close.empty()) return;
  into.stops_begin_after = format.reasoning_close;
  if (!is_in_reasoning) into.stops_wait_if = format.reasoning_open;
}

}  // namespace

ChatAnswer::ChatAnswer(std::shared_ptr<const LoadedModel> loaded, const ChatTurn& turn)
    : loaded_(std::move(loaded)), tools_(callable_tools(turn)), is_parallel_(turn.tool_choice.is_parallel) {
  const text::TurnFormat& format = model().turn_format;
  GenerationPlan plan = plan_turn(turn, model());
  const bool is_in_reasoning = begins_in_reasoning(turn, model(), plan.prompts[0]);
  plan.common.shown_special_tokens = format.hidden_tokens;
  grammar_ = grammar_of(turn, tools_, model());
  plan.common.constraint = constraint_of(model(), grammar_, reasoning_before(turn, format, is_in_reasoning));
  hold_stops(turn, format, is_in_reasoning, plan.common);
  stream_.emplace(loaded_->generator, model(), std::move(plan));
  for (int i = 0; i < turn.choices; ++i) {
    const text::TurnStart start{.is_in_reasoning = is_in_reasoning,
                                .seed = seed().value_or(0) + static_cast<std::uint64_t>(i),
                                .is_parallel = is_parallel_};
    choices_.push_back({.parser = text::TurnParser(format, tools_, start)});
  }
}

std::optional<ChatDelta> ChatAnswer::next(const std::function<void()>& waiting) {
  for (;;) {
    std::optional<Delta> delta = stream_->next(waiting);
    if (!delta) return std::nullopt;
    ChatDelta taken = take(std::move(*delta));
    if (!is_empty(taken)) return taken;
  }
}

void ChatAnswer::read(Delta& delta, Choice& choice, ChatDelta& into) {
  const bool is_last = delta.finish != decode::FinishReason::none;
  if (delta.id >= 0) into.ids.push_back(delta.id);
  into.pieces = choice.parser.add(delta.id, delta.text);
  const bool is_in_reasoning = choice.parser.is_in_reasoning();
  if (delta.id >= 0 && is_in_reasoning) ++reasoning_tokens_;
  choice.is_ended = choice.parser.is_over();
  if (choice.is_ended && !is_last) stream_->end(delta.index);
  if (is_last) std::ranges::move(choice.parser.finish(), std::back_inserter(into.pieces));
  if (has_logprobs())
    into.logprobs = choice.logprobs.take(delta.text, std::move(delta.logprobs), into.pieces, is_in_reasoning);
  for (const text::TurnPiece& piece : into.pieces)
    choice.calls += piece.kind == text::TurnPiece::Kind::call ? 1 : 0;
}

ChatDelta ChatAnswer::take(Delta delta) {
  Choice& choice = choices_.at(static_cast<std::size_t>(delta.index));
  ChatDelta out{.choice = delta.index, .is_first = delta.is_first, .stop_match = std::move(delta.stop_match)};
  if (!choice.is_ended) read(delta, choice, out);
  if (delta.finish == decode::FinishReason::none) return out;
  const bool is_length = delta.finish == decode::FinishReason::length;
  out.finish = is_length ? ChatFinish::length : choice.calls > 0 ? ChatFinish::tool_calls : ChatFinish::stop;
  return out;
}

Usage ChatAnswer::usage() const {
  Usage usage = stream_->usage();
  usage.reasoning_tokens = reasoning_tokens_;
  return usage;
}

}  // namespace godwit::serve
