#include "decode/generation_loop.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "decode/logprobs.h"

namespace godwit::decode {

void validate_prompt(const models::ModelBundle& bundle, std::span<const int> prompt, int answer) {
  if (prompt.empty())
    fail(ErrorCode::invalid_argument, "request", "the prompt is empty: at least one token is needed");
  for (const int id : prompt) {
    if (id < 0 || id >= bundle.vocabulary)
      fail(ErrorCode::invalid_argument, "request", "the prompt holds token {}: the vocabulary has {} tokens",
           id, bundle.vocabulary);
  }
  if (prompt.size() + static_cast<std::size_t>(answer) > static_cast<std::size_t>(bundle.context_length))
    fail(ErrorCode::context_overflow, "request",
         "this model's maximum context length is {} tokens; the prompt has {} tokens and the answer needs at "
         "least {}",
         bundle.context_length, prompt.size(), answer);
}

void validate_request(const models::ModelBundle& bundle, const GenerationRequest& request) {
  validate_prompt(bundle, request.prompt, /*answer=*/1);
  request.sampling.validate(bundle.vocabulary);
  if (request.max_tokens < -1)
    fail(ErrorCode::invalid_argument, "request",
         "max_tokens is {}: at least 0 is needed, or -1 for the rest of the context", request.max_tokens);
  if (request.choice < 0) fail(ErrorCode::invalid_argument, "request", "choice is {}", request.choice);
  if (request.choices < 1) fail(ErrorCode::invalid_argument, "request", "choices is {}", request.choices);
  if (request.top_logprobs < 0 || request.top_logprobs > 20)
    fail(ErrorCode::invalid_argument, "request", "top_logprobs is {}: it must lie in [0, 20]",
         request.top_logprobs);
  if (request.top_logprobs > 0 && !request.logprobs)
    fail(ErrorCode::invalid_argument, "request", "top_logprobs is {} but logprobs is off",
         request.top_logprobs);
  const bool has_stop =
      std::any_of(request.stop.begin(), request.stop.end(), [](const auto& s) { return !s.empty(); });
  if (has_stop) static_cast<void>(bundle.need_tokenizer());  // stop strings are text
}

GenerationLoop::GenerationLoop(const models::ModelBundle& bundle, const GenerationRequest& request,
                               std::uint64_t seed, PromptCache* cache)
    : bundle_(bundle),
      request_(request),
      cache_(cache),
      runner_(bundle),
      sampler_(request.sampling, seed, request.choice),
      text_(bundle.tokenizer, request.stop),
      limit_(bundle.context_length - static_cast<int>(request.prompt.size())),
      last_token_(request.prompt.back()) {
  if (request.max_tokens >= 0) limit_ = std::min(limit_, request.max_tokens);
  for (const int token : request.prompt) sampler_.see_prompt(token);
  timings_.prompt_tokens = static_cast<int>(request.prompt.size());
}

std::optional<TokenEvent> GenerationLoop::advance() {
  GODWIT_CHECK(!finished_);
  if (limit_ == 0) return end({}, FinishReason::length);
  if (!looked_up_) look_up();
  const std::span<const int> prompt(request_.prompt);
  const auto done = static_cast<std::size_t>(runner_.position());
  if (done + 1 < prompt.size()) {
    runner_.store(
        prompt.subspan(done, std::min<std::size_t>(prompt.size() - 1 - done, runner_.chunk_tokens())));
    if (cache_) cache_->keep_prompt(runner_.row(), prompt);
    return std::nullopt;
  }

  TokenEvent event;
  const int token = next_token(event);
  count_time();
  if (is_end(token)) return end({}, FinishReason::stop);
  event.id = token;
  last_token_ = token;
  answer_.push_back(token);
  sampler_.see_answer(token);
  ++timings_.completion_tokens;
  text::StopStrings::Piece piece = text_.add(token);
  event.text = std::move(piece.text);
  event.stop_match = std::move(piece.matched);
  if (event.stop_match || timings_.completion_tokens == limit_)
    return end(std::move(event), FinishReason::length);
  return event;
}

void GenerationLoop::look_up() {
  looked_up_ = true;
  if (!cache_) return;
  if (std::optional<cache::Row> row = cache_->find(request_.prompt)) runner_.start_from(std::move(*row));
  timings_.cached_tokens = runner_.position();
}

int GenerationLoop::next_token(TokenEvent& event) {
  if (sampler_.is_plain_greedy() && !request_.logprobs) return runner_.greedy(last_token_);
  const std::vector<float> logits = runner_.logits({&last_token_, 1});
  const int token = sampler_.choose(logits, runner_.position());
  if (request_.logprobs) {
    RowLogprobs row = row_logprobs(logits, token, request_.top_logprobs);
    event.logprob = row.chosen;
    event.top_logprobs = std::move(row.top);
  }
  return token;
}

bool GenerationLoop::is_end(int token) const {
  return !request_.ignore_eos && bundle_.end_ids.contains(token);
}

// Adds what was held back. A stop string that is complete, now or by the held-back text, decides the reason.
TokenEvent GenerationLoop::end(TokenEvent event, FinishReason reason) {
  if (!event.stop_match) {
    text::StopStrings::Piece rest = text_.finish();
    event.text += rest.text;
    event.stop_match = std::move(rest.matched);
  }
  event.finish = event.stop_match ? FinishReason::stop : reason;
  finished_ = true;
  return event;
}

TokenEvent GenerationLoop::cancel() { return end({}, FinishReason::cancelled); }

void GenerationLoop::remember() {
  const auto held = static_cast<std::size_t>(runner_.position());
  if (!cache_ || held < request_.prompt.size()) return;  // chunks of a prompt are kept as they come
  std::vector<int> tokens = request_.prompt;
  tokens.insert(tokens.end(), answer_.begin(), answer_.end());
  cache_->keep_answer(runner_.row(), std::span(tokens).first(held));
}

void GenerationLoop::count_time() {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - mark_).count();
  (prompt_done_ ? timings_.completion_seconds : timings_.prompt_seconds) += seconds;
  prompt_done_ = true;
  mark_ = now;
  timings_.steps = static_cast<int>(runner_.counts().steps);
  timings_.planned_steps = static_cast<int>(runner_.counts().planned);
}

}  // namespace godwit::decode
