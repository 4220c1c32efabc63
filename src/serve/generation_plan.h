// What one request asks of the engine: prompts x choices generations that differ in nothing but prompt and
// random numbers.
#pragma once

#include <vector>

#include "decode/generation.h"

namespace godwit::serve {

struct GenerationPlan {
  std::vector<std::vector<int>> prompts = {};  // at least one
  int choices = 1;                             // of each prompt
  decode::GenerationRequest common = {};       // prompt and choice unset; max_tokens 0: nothing is generated

  int size() const { return static_cast<int>(prompts.size()) * choices; }
  std::size_t prompt_of(int index) const { return static_cast<std::size_t>(index / choices); }
  // The request of prompt `index`, with all of its choices. The random numbers of an answer follow from the seed and its
  // place among the choices of its own prompt, so a batch of prompts equals as many single calls.
  decode::GenerationRequest request(std::size_t index) const;
  int prompt_tokens() const;  // every prompt once
};

}  // namespace godwit::serve
