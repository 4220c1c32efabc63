// How tokens are chosen. Plain values, validated once (validate() names the field and the value).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "decode/sampler_order.h"

namespace godwit::decode {

struct SamplingParams {
  static constexpr float kBan = -100;  // a bias at or below it bars the token

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
  double typical_p = 1.0;                  // 1: off
  double top_n_sigma = -1.0;               // 0 and below: off
  double dynatemp_range = 0.0;             // 0: the temperature as it is
  double dynatemp_exponent = 1.0;
  double dry_multiplier = 0.0;  // 0: off
  double dry_base = 1.75;
  int dry_allowed_length = 2;
  int dry_window = -1;                 // newest tokens that DRY looks at; -1: all, 0: off
  std::vector<int> dry_breakers = {};  // tokens that no repeated run crosses
  int mirostat = 0;                    // 1 or 2: in place of what truncates
  double mirostat_tau = 5.0;           // surprise to hold, in bits
  double mirostat_eta = 0.1;           // how fast the bound learns
  std::vector<std::vector<int>> bad_words = {};  // whose last token may not come behind the others of the answer
  std::optional<std::vector<int>> allowed_ids = {};
  SamplerOrder order = default_sampler_order();

  // Throws Error{invalid_argument}; `vocabulary` bounds the token ids.
  void validate(int vocabulary) const;
  bool greedy() const { return temperature < 1e-5; }
};

}  // namespace godwit::decode
