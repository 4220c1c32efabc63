// What is asked of the engine, and what comes back. Shared by cli and serve.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/kv_policy.h"
#include "decode/sampling_params.h"
#include "decode/token_filter.h"

namespace godwit::decode {

struct GenerationRequest {
  std::vector<int> prompt;  // token ids, at least one
  int max_tokens = -1;      // -1: to the end of the context
  SamplingParams sampling;
  int choices = 1;     // answers, each with random numbers of its own: those of the indices from `choice` on
  int choice = 0;
  int min_tokens = 0;  // what would end the answer may not come before so many tokens, and their text completes no stop string
  std::vector<std::string> stop;
  std::string stops_begin_after;      // stop strings count behind this text only (the end of reasoning); empty: at once
  std::string stops_wait_if;          // and that only in an answer that begins with this text; empty: in every one
  bool include_stop_text = false;     // the stop string is part of the answer
  std::vector<int> stop_token_ids;    // end the answer as the model's end ids do
  std::vector<int> shown_special_tokens;  // special ids whose text is part of the answer's: markers that a parser reads
  bool ignore_eos = false;
  int priority = 0;                              // lower: sooner
  std::string cache_salt;                        // what was computed of a prompt is shared among requests of equal salt alone
  std::optional<cache::KvPolicy> kv;             // absent: the engine's
  std::shared_ptr<const TokenConstraint> constraint;  // null: none
  bool logprobs = false;
  int top_logprobs = 0;  // 0..20
};

enum class FinishReason { none, stop, length, cancelled };

struct TokenLogprob {
  int id = 0;
  double logprob = 0;  // raw log-softmax of the f32 logits, before bias and penalties
};

// One sampled token. `text` is final text that became certain with it (empty while a character or a stop
// string is pending); the last event of a choice carries finish != none and whatever text was still held back.
struct TokenEvent {
  int choice = 0;  // whose it is, counted from 0 within the request
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
