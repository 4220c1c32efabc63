// Chooses one token from a row of logits: bias, then the samplers in the order of the parameters, with the mask between
// those that move logits and those that truncate, then the draw (docs/sampling.md). Greedy rows stop in front of what
// truncates and take the largest logit, ties to the lowest id.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "decode/candidates.h"
#include "decode/dry.h"
#include "decode/logit_row.h"
#include "decode/mirostat.h"
#include "decode/penalties.h"
#include "decode/sampling_params.h"

namespace godwit::decode {

class Sampler {
 public:
  // `params` is validated already. `choice` is the index among the answers of one request.
  Sampler(const SamplingParams& params, std::uint64_t seed, int choice);

  // Every token of the prompt, then of the answer, in order: what penalties, DRY and words that may not come look at.
  void see_prompt(int token);
  void see_answer(int token);

  // Greedy and nothing moves or bars a logit: the model's own argmax decides and no logit needs to reach the host.
  bool is_plain_greedy() const;

  // The token at `position` of the sequence. A pure function of (params, seed, choice, tokens seen in the
  // window, position, logits) and, with mirostat, of the logits before. Throws Error{internal} for logits that
  // hold NaN or +infinity, or nothing above -infinity, and Error{invalid_argument} where all tokens are barred.
  // `mask`: one bit per id, 32 a word, set where the token may be chosen (TokenFilter); empty: all may. Barred ids fall out
  // behind bias and penalties, in front of what truncates. `masked_by` names it in that error.
  int choose(std::span<const float> logits, int position, std::span<const std::uint32_t> mask = {},
             std::string_view masked_by = "a mask");

  // What is left to draw from at `position`; logits are divided by the temperature.
  Candidates candidates(std::span<const float> logits, int position, std::span<const std::uint32_t> mask = {},
                        std::string_view masked_by = "a mask") const;

  // What mirostat has learned, for an answer that is taken up again without the logits of its past.
  double mirostat_level() const { return mirostat_.level(); }
  void set_mirostat_level(double level) { mirostat_.set_level(level); }

  // Up to here top-k is found in one pass over the logits instead of among candidates for all of them.
  static constexpr int kMostAtOnce = 1024;

 private:
  LogitRow adjusted(std::span<const float> logits, std::span<const std::uint32_t> mask,
                    std::string_view masked_by) const;
  void bar_words(LogitRow& row) const;
  bool is_on(SamplerStage stage) const;
  void apply(SamplerStage stage, Candidates& candidates, int position) const;
  int draw(const Candidates& candidates, int position) const;

  SamplingParams params_;
  std::uint64_t seed_;
  std::uint32_t choice_;
  Penalties penalties_;
  Dry dry_;
  Mirostat mirostat_;
  SamplerOrder stages_;      // those that truncate or scale, and do something
  std::vector<int> answer_;  // where words may not come
};

}  // namespace godwit::decode
