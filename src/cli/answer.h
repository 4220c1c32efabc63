// Follows one answer of the engine to its end, stopping it on Ctrl-C.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "cli/interrupt.h"
#include "decode/engine.h"

namespace godwit::cli {

struct Answer {
  std::string text;
  std::vector<int> tokens;
  std::vector<decode::TokenEvent> events;  // those with a token, kept when log-probabilities were asked for
  decode::FinishReason finish = decode::FinishReason::none;
  std::optional<std::string> stop_match;
  decode::Timings timings;
  std::uint64_t seed = 0;
};

// `show` receives each piece of text as it becomes certain. Throws what ended the job.
Answer follow(decode::Engine& engine, decode::GenerationRequest request, InterruptGuard& interrupts,
              const std::function<void(std::string_view)>& show);

// {text, tokens, prompt_tokens, finish_reason, timings, seed, math, logprobs when asked}: docs/cli.md. `text`
// is null for a model without a tokenizer.
Json to_json(const Answer& answer, const models::ModelBundle& model, bool logprobs);

}  // namespace godwit::cli
