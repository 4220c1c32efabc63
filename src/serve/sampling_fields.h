// The fields that chat and text completions share: how tokens are chosen, when an answer ends, how many there
// are.
#pragma once

#include "decode/generation.h"
#include "serve/json_fields.h"
#include "serve/served_model.h"

namespace godwit::serve {

inline constexpr int kMaxStopStrings = 16;
inline constexpr int kMaxChoices = 16;
inline constexpr int kMaxTopLogprobs = 20;

// Everything of a request but its prompts, its token limit and its log-probabilities.
struct CommonFields {
  decode::SamplingParams sampling;
  std::vector<std::string> stop;
  bool ignore_eos = false;
  int choices = 1;  // n
  bool stream = false;
  bool include_usage = false;
};

// Reads the shared fields; what the request leaves out comes from the model's
// defaults. Throws RequestError.
CommonFields read_common_fields(const JsonFields& in, const ServedModel& model);

}  // namespace godwit::serve
