#include "decode/request_check.h"

#include <algorithm>

#include "base/error.h"

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
}

}  // namespace godwit::decode
