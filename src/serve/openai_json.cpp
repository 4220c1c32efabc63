#include "serve/openai_json.h"

#include <random>

#include "base/error.h"

namespace godwit::serve {
namespace {

template <typename Answer>
void add_extras_of(Json& json, const Answer& answer) {
  json["usage"] = usage_json(answer.usage());
  json["timings"] = timings_json(answer.timings());
  if (const auto seed = answer.seed()) json["seed"] = *seed;
}

double per_second(int count, double seconds) { return seconds > 0 ? count / seconds : 0.0; }

}  // namespace

std::string random_id(std::string_view prefix) {
  static constexpr std::string_view kAlphabet =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::random_device device;
  std::uniform_int_distribution<std::size_t> letter(0, kAlphabet.size() - 1);
  std::string id(prefix);
  for (int i = 0; i < 24; ++i) id += kAlphabet[letter(device)];
  return id;
}

Json finish_json(decode::FinishReason reason) {
  switch (reason) {
    case decode::FinishReason::none:
      return nullptr;
    case decode::FinishReason::stop:
      return "stop";
    case decode::FinishReason::length:
      return "length";
    case decode::FinishReason::cancelled:
      break;
  }
  fail(ErrorCode::internal, "serve", "a cancelled generation has no finish reason to show");
}

Json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}}};
}

Json timings_json(const decode::Timings& timings) {
  const int computed = timings.prompt_tokens - timings.cached_tokens;
  return {{"prompt_n", computed},
          {"prompt_ms", timings.prompt_seconds * 1000},
          {"prompt_per_second", per_second(computed, timings.prompt_seconds)},
          {"predicted_n", timings.completion_tokens},
          {"predicted_ms", timings.completion_seconds * 1000},
          {"predicted_per_second", per_second(timings.completion_tokens, timings.completion_seconds)},
          {"cache_n", timings.cached_tokens}};
}

void add_extras(Json& answer, const ChoiceStream& stream) { add_extras_of(answer, stream); }
void add_extras(Json& answer, const ChatAnswer& chat) { add_extras_of(answer, chat); }

Json answer_json(const AnswerHead& head, std::string_view object, Json choices) {
  return {{"id", head.id},
          {"object", object},
          {"created", head.created},
          {"model", head.model},
          {"system_fingerprint", head.fingerprint},
          {"choices", std::move(choices)}};
}

Json completion_choice_json(int index, const std::string& text, Json logprobs, decode::FinishReason finish) {
  return {{"index", index},
          {"text", text},
          {"logprobs", std::move(logprobs)},
          {"finish_reason", finish_json(finish)}};
}

}  // namespace godwit::serve
