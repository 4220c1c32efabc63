// Log-probabilities as reported to callers: log-softmax in double precision of the model's own f32 logits,
// before bias, penalties and temperature.
#pragma once

#include <span>
#include <vector>

#include "decode/generation.h"

namespace godwit::decode {

struct RowLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob>
      top;  // descending, ties to the lowest id; only finite values, so it may be shorter than asked
};

// Logits hold no NaN and at least one finite value; logits[chosen] is finite.
RowLogprobs row_logprobs(std::span<const float> logits, int chosen, int top_count);

}  // namespace godwit::decode
