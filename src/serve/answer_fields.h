// Fields of all generation routes about where an answer ends and what it comes with.
#pragma once

#include "decode/generation.h"
#include "serve/json_fields.h"
#include "serve/served_model.h"

namespace godwit::serve {

inline constexpr int kMostStopTokens = 1024;

// Reads stop_token_ids, min_tokens, include_stop_str_in_output and priority. Throws RequestError. max_tokens
// is to be in `into` already.
void read_answer_fields(const JsonFields& in, const ServedModel& model, decode::GenerationRequest& into);

// Reads logprobs, true or the older number of alternatives, and top_logprobs beside it. Throws RequestError.
void read_logprobs(const JsonFields& in, decode::GenerationRequest& into);

}  // namespace godwit::serve
