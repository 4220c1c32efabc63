// How an engine shares itself among those who ask. docs/scheduler.md.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "decode/prompt_cache_options.h"

namespace godwit::decode {

struct EngineOptions {
  EngineOptions() = default;
  // An engine with this prompt cache and everything else as it comes.
  EngineOptions(PromptCacheOptions prompts) : cache(std::move(prompts)) {}

  PromptCacheOptions cache;
  int max_rows = 16;              // answers that are made at the same time
  std::size_t queue_limit = 64;   // requests that may wait; those past it are Error{overloaded}
  // Bytes of keys, values and recurrent memories, those of the prompt cache included. Absent: three quarters of what is
  // free when the model is open.
  std::optional<std::size_t> memory_bytes;
  // `native`: the most tokens of prompts that a step takes while other rows make tokens. Absent: as many as take about
  // as long as the step without them.
  std::optional<int> prefill_tokens;
  std::size_t event_limit = 4096;       // events that wait for a reader; past it the row pauses
  std::optional<double> stall_seconds;  // a pause as long as this ends the answer as cancelled; absent: none does
  // Tokens between two records of an answer in the folder of the prompt cache, from which an equal request goes on after
  // a restart. 0: none.
  int checkpoint_every = 0;
};

}  // namespace godwit::decode
