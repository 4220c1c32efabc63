#include "decode/request_check.h"

#include <algorithm>

#include "base/error.h"
#include "decode/answer_builder.h"

namespace godwit::decode {
namespace {

// What bars tokens without a look at the logits must leave one to begin with. Later tokens are looked at where they come.
void check_first_token(const models::ModelBundle& bundle, const GenerationRequest& request) {
  const SamplingParams& asked = request.sampling;
  const bool has_bans =
      std::ranges::any_of(asked.logit_bias, [](const auto& bias) { return bias.second <= SamplingParams::kBan; });
  const bool has_mask = request.constraint && request.min_tokens > 0;
  if (!has_bans && !has_mask && asked.bad_words.empty() && !asked.allowed_ids) return;
  GenerationRequest first;
  first.sampling = {.temperature = 0, .logit_bias = asked.logit_bias, .bad_words = asked.bad_words,
                    .allowed_ids = asked.allowed_ids};
  first.min_tokens = request.min_tokens;
  first.stop_token_ids = request.stop_token_ids;
  first.ignore_eos = request.ignore_eos;
  first.constraint = request.constraint;
  AnswerBuilder answer(bundle, first, /*seed=*/0, /*choice=*/0, /*limit=*/1);
  if (answer.is_over_at_once()) return;
  answer.choose(std::vector<float>(static_cast<std::size_t>(bundle.vocabulary)));
}

}  // namespace

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
  if (request.choices < 1) fail(ErrorCode::invalid_argument, "request", "choices is {}", request.choices);
  if (request.min_tokens < 0) fail(ErrorCode::invalid_argument, "request", "min_tokens is {}", request.min_tokens);
  if (request.choice < 0) fail(ErrorCode::invalid_argument, "request", "choice is {}", request.choice);
  if (request.top_logprobs < 0 || request.top_logprobs > 20)
    fail(ErrorCode::invalid_argument, "request", "top_logprobs is {}: it must lie in [0, 20]",
         request.top_logprobs);
  if (request.top_logprobs > 0 && !request.logprobs)
    fail(ErrorCode::invalid_argument, "request", "top_logprobs is {} but logprobs is off",
         request.top_logprobs);
  const bool has_stop =
      std::any_of(request.stop.begin(), request.stop.end(), [](const auto& s) { return !s.empty(); });
  if (has_stop) static_cast<void>(bundle.need_tokenizer());  // stop strings are text
  check_first_token(bundle, request);
}

}  // namespace godwit::decode
