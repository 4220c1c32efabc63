// DRY ("don't repeat yourself"): a token that would go on with a run which the text has had already is made
// less likely, the more the longer that run is.
#pragma once

#include <map>
#include <unordered_set>
#include <vector>

#include "decode/sampling_params.h"

namespace godwit::decode {

class Dry {
 public:
  explicit Dry(const SamplingParams& params);

  bool is_active() const { return multiplier_ > 0 && base_ >= 1 && window_ != 0; }
  void see(int token) {
    if (is_active()) tokens_.push_back(token);
  }
  // What each token's logit loses. With L the length of the longest end of the text that came before,
  // followed by the token: multiplier * base^(L - allowed) where L >= allowed. Runs do not cross breakers,
  // and the exponent is at most what a float's exponential takes.
  std::map<int, double> penalties() const;

 private:
  double multiplier_, base_;
  int allowed_, window_;
  std::unordered_set<int> breakers_;
  std::vector<int> tokens_;
};

}  // namespace godwit::decode
