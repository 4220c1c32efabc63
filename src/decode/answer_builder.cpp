#include "decode/answer_builder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "decode/logprobs.h"

namespace godwit::decode {

AnswerBuilder::AnswerBuilder(const models::ModelBundle& bundle, const GenerationRequest& request, std::uint64_t seed,
                             int choice, int limit)
    : bundle_(bundle),
      request_(request),
      choice_(choice),
      sampler_(request.sampling, seed, request.choice + choice),
      text_(bundle.tokenizer, request),
      filter_(request.constraint ? request.constraint->start() : nullptr),
      limit_(limit) {
  for (const int token : request.prompt) sampler_.see_prompt(token);
}

bool AnswerBuilder::is_plain() const {
  return sampler_.is_plain_greedy() && !request_.logprobs && !filter_ && !bars_ends();
}

AnswerBuilder::Choice AnswerBuilder::choose(std::span<const float> logits) {
  const int position = static_cast<int>(request_.prompt.size() + tokens_.size());
  Choice choice{.id = sampler_.choose(logits, position, mask(), masked_by())};
  if (!request_.logprobs) return choice;
  RowLogprobs row = row_logprobs(logits, choice.id, request_.top_logprobs);
  choice.logprob = row.chosen;
  choice.top_logprobs = std::move(row.top);
  return choice;
}

std::string_view AnswerBuilder::masked_by() const {
  if (!filter_) return "min_tokens";
  return bars_ends() ? "the form of the answer and min_tokens" : "the form of the answer";
}

std::span<const std::uint32_t> AnswerBuilder::mask() {
  const std::span<const std::uint32_t> wanted = filter_ ? filter_->mask() : std::span<const std::uint32_t>();
  return bars_ends() ? barring_ends(wanted) : wanted;
}

std::span<const std::uint32_t> AnswerBuilder::barring_ends(std::span<const std::uint32_t> mask) {
  const auto words = static_cast<std::size_t>(bundle_.vocabulary + 31) / 32;
  mask_.assign(mask.begin(), mask.end());
  mask_.resize(words, mask.empty() ? ~0u : 0u);
  const auto bar = [&](int id) {
    if (id >= 0 && id < bundle_.vocabulary) mask_[static_cast<std::size_t>(id) / 32] &= ~(1u << (id % 32));
  };
  if (!request_.ignore_eos) std::ranges::for_each(bundle_.end_ids, bar);
  std::ranges::for_each(request_.stop_token_ids, bar);
  return mask_;
}

TokenEvent AnswerBuilder::take(Choice choice) {
  GODWIT_CHECK(!finished_, "a token behind the end of an answer");
  if (ends_at(choice.id)) return end(FinishReason::stop);
  TokenEvent event;
  event.choice = choice_;
  event.id = choice.id;
  event.logprob = choice.logprob;
  event.top_logprobs = std::move(choice.top_logprobs);
  if (filter_) filter_->accept(choice.id);
  tokens_.push_back(choice.id);
  sampler_.see_answer(choice.id);
  text::StopStrings::Piece piece = text_.add(choice.id);
  event.text = std::move(piece.text);
  event.stop_match = std::move(piece.matched);
  if (event.stop_match || (filter_ && filter_->is_over())) return end(std::move(event), FinishReason::stop);
  if (static_cast<int>(tokens_.size()) == limit_) return end(std::move(event), FinishReason::length);
  return event;
}

bool AnswerBuilder::ends_at(int token) const {
  return (!request_.ignore_eos && bundle_.end_ids.contains(token)) ||
         std::ranges::find(request_.stop_token_ids, token) != request_.stop_token_ids.end();
}

// Adds what was held back. A stop string that is complete, now or by the held-back text, decides the reason.
TokenEvent AnswerBuilder::end(TokenEvent event, FinishReason reason) {
  if (!event.stop_match) {
    text::StopStrings::Piece rest = text_.finish();
    event.text += rest.text;
    event.stop_match = std::move(rest.matched);
  }
  event.choice = choice_;
  event.finish = event.stop_match ? FinishReason::stop : reason;
  finished_ = true;
  return event;
}

}  // namespace godwit::decode
