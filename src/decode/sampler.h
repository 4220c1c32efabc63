// Chooses one token from a row of logits. Order: bias, penalties, top-k, top-p, min-p, XTC, temperature, draw
// (docs/sampling.md). Greedy rows stop after the penalties and take the largest logit, ties to the lowest id.
#pragma once

#include <cstdint>
#include <span>

#include "decode/candidates.h"
#include "decode/penalties.h"
#include "decode/sampling_params.h"

namespace godwit::decode {

class Sampler {
 public:
  // `params` is validated already. `choice` is the index among the answers of one request.
  Sampler(const SamplingParams& params, std::uint64_t seed, int choice);

  // Every token of the prompt, then of the answer, in order: what the penalties look at.
  void see_prompt(int token) { penalties_.see_prompt(token); }
  void see_answer(int token) { penalties_.see_answer(token); }

  // Greedy without bias or penalties: the model's own argmax decides and no logit needs to reach the host.
  bool is_plain_greedy() const;

  // The token at `position` of the sequence. A pure function of (params, seed, choice, tokens seen in the
  // window, position, logits). Throws Error{internal} for logits that hold NaN or +infinity, or nothing above
  // -infinity.
  // `mask`: one bit per id, 32 a word, set where the token may be chosen (TokenFilter); empty: all may. Barred ids fall out
  // behind bias and penalties, in front of what truncates.
  int choose(std::span<const float> logits, int position, std::span<const std::uint32_t> mask = {}) const;

  // What is left to draw from at `position`, before the temperature.
  Candidates candidates(std::span<const float> logits, int position, std::span<const std::uint32_t> mask = {}) const;

 private:
  static void bar(std::span<double> logits, std::span<const std::uint32_t> mask);
  int draw(const Candidates& candidates, int position) const;

  SamplingParams params_;
  std::uint64_t seed_;
  std::uint32_t choice_;
  Penalties penalties_;
};

}  // namespace godwit::decode
