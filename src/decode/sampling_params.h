// How tokens are chosen. Plain values, validated once (validate() names the field and the value).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace godwit::decode {

struct SamplingParams {
  double temperature = 1.0;  // 0: greedy, ties to the lowest id
  int top_k = 0;             // 0 or -1: off
  double top_p = 1.0;
  double min_p = 0.0;
  double xtc_probability = 0.0;
  double xtc_threshold = 0.1;
  double repetition_penalty = 1.0;
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;
  int penalty_window = 64;  // newest tokens (prompt and answer) that the penalties look at; -1: all
  std::map<int, float> logit_bias = {};
  std::optional<std::uint64_t> seed = {};  // absent: drawn at submit and reported

  // Throws Error{invalid_argument}; `vocabulary` bounds logit_bias.
  void validate(int vocabulary) const;
  bool greedy() const { return temperature < 1e-5; }
};

}  // namespace godwit::decode
