// Mirostat (Basu et al., ICLR 2021): holds the surprise of what is drawn near a target, by a bound that
// learns.
#pragma once

#include "decode/candidates.h"
#include "decode/sampling_params.h"

namespace godwit::decode {

class Mirostat {
 public:
  explicit Mirostat(const SamplingParams& params)
      : version_(params.mirostat),
        tau_(params.mirostat_tau),
        eta_(params.mirostat_eta),
        level_(2 * params.mirostat_tau) {}

  bool is_active() const { return version_ != 0; }
  // Version 1: the k largest, k from the level and from Zipf's exponent of the 100 likeliest. Version 2: what
  // surprises by at most the level.
  void truncate(Candidates& candidates, std::size_t vocabulary) const;
  // The level is a function of what was drawn and how likely it was: chosen() says so, see() learns it once
  // the token became part of the answer, so that a choice which is made again counts once.
  void chosen(const Candidates& candidates, int id);
  void see(int id);

  // For an answer that is taken up again without its logits.
  double level() const { return level_; }
  void set_level(double level) { level_ = level; }

 private:
  int version_;
  double tau_, eta_, level_;
  int pending_ = -1;
  double surprise_ = 0;  // of pending_, in bits
};

}  // namespace godwit::decode
