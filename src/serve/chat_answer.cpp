#include "serve/chat_answer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "serve/request_error.h"

namespace godwit::serve {
ChatAnswer::ChatAnswer(std::shared_ptr<const LoadedModel> loaded, const ChatTurn& turn)
    : loaded_(std::move(loaded)), tools_(turn.tools), is_parallel_(turn.tool_choice.is_parallel) {
  if (turn.output) unserved_field("response_format", "structured output");
  stream_.emplace(loaded_->generator, loaded_->model, plan_turn(turn, loaded_->model));
  for (int i = 0; i < turn.choices; ++i) {
    const text::TurnStart start{.seed = seed().value_or(0) + static_cast<std::uint64_t>(i), .is_parallel = is_parallel_};
    choices_.push_back({.parser = text::TurnParser(model().turn_format, tools_, start)});
  }
}

std::optional<ChatDelta> ChatAnswer::next(const std::function<void()>& waiting) {
  for (;;) {
    std::optional<Delta> delta = stream_->next(waiting);
    if (!delta) return std::nullopt;
    ChatDelta taken = take(std::move(*delta));
    if (taken.is_first || taken.finish || !taken.pieces.empty() || !taken.logprobs.empty()) return taken;
  }
}

ChatDelta ChatAnswer::take(Delta delta) {
  Choice& choice = choices_.at(static_cast<std::size_t>(delta.index));
  ChatDelta out{.choice = delta.index, .is_first = delta.is_first, .stop_match = std::move(delta.stop_match)};
  const bool is_last = delta.finish != decode::FinishReason::none;
  if (!choice.is_ended) {
    out.logprobs = std::move(delta.logprobs);
    out.pieces = choice.parser.add(delta.id, delta.text);
    if (delta.id >= 0 && choice.parser.is_in_reasoning()) ++reasoning_tokens_;
    choice.is_ended = choice.parser.is_over();
    if (choice.is_ended && !is_last) stream_->end(delta.index);
    if (is_last) std::ranges::move(choice.parser.finish(), std::back_inserter(out.pieces));
  }
  for (const text::TurnPiece& piece : out.pieces) choice.calls += piece.kind == text::TurnPiece::Kind::call ? 1 : 0;
  if (!is_last) return out;
  const bool is_length = delta.finish == decode::FinishReason::length;
  out.finish = choice.calls > 0 && !is_length ? ChatFinish::tool_calls : is_length ? ChatFinish::length : ChatFinish::stop;
  return out;
}

Usage ChatAnswer::usage() const {
  Usage usage = stream_->usage();
  usage.reasoning_tokens = reasoning_tokens_;
  return usage;
}

}  // namespace godwit::serve
