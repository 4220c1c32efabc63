// What is asked of the engine, and what comes back. Shared by cli and serve.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decode/sampling_params.h"

namespace godwit::decode {

struct GenerationRequest {
  std::vector<int> prompt;  // token ids, at least one
  int max_tokens = -1;      // -1: to the end of the context
  SamplingParams sampling;
  int choice = 0;  // index among the n answers of one request: each has random numbers of its own
  std::vector<std::string> stop;
  bool ignore_eos = false;
  bool logprobs = false;
  int top_logprobs = 0;  // 0..20
};

enum class FinishReason { none, stop, length, cancelled };

struct TokenLogprob {
  int id = 0;
  double logprob = 0;  // raw log-softmax of the f32 logits, before bias and penalties
};

// One sampled token. `text` is final text that became certain with it (empty while a character or a stop
// string is pending); the last event of a job carries finish != none and whatever text was still held back.
struct TokenEvent {
  int id = -1;  // -1: no token in this event (only a finish)
  std::string text;
  std::optional<TokenLogprob> logprob;
  std::vector<TokenLogprob> top_logprobs;
  FinishReason finish = FinishReason::none;
  std::optional<std::string> stop_match;  // the stop string that ended the answer
};

// An end id stops the answer: it is neither reported as a token nor counted.
struct Timings {
  int prompt_tokens = 0;
  int cached_tokens = 0;
  int completion_tokens = 0;      // tokens reported in events
  double prompt_seconds = 0;      // to the logits of the first token
  double completion_seconds = 0;  // from there to the end
  int steps = 0;                  // forwards: one for each chunk of the prompt, one for each token made
  int planned_steps = 0;          // of those, served by the model's plan
};

}  // namespace godwit::decode
