// Log-probabilities of a prompt's own tokens, as `echo` with `logprobs` reports them (evaluation harnesses
// score answers that way, with max_tokens 0).
#pragma once

#include <vector>

#include "serve/generator.h"
#include "serve/logprobs.h"
#include "serve/served_model.h"

namespace godwit::serve {

// One entry per prompt token; the first has no value. Entry t > 0 holds the raw log-softmax of the logits
// behind token t - 1, and the `top` likeliest tokens there (ties to the lowest id). Runs the prompt through
// the engine; blocks. Throws RequestError when the logits of so long a prompt would not fit a fixed budget.
std::vector<LogprobEntry> prompt_logprobs(Generator& generator, const ServedModel& model,
                                          const std::vector<int>& prompt, int top);

}  // namespace godwit::serve
