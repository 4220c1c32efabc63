// Repetition, presence and frequency penalties over the newest tokens of a request, prompt and answer alike.
#pragma once

#include <deque>
#include <span>
#include <unordered_map>

#include "decode/sampling_params.h"

namespace godwit::decode {

class Penalties {
 public:
  explicit Penalties(const SamplingParams& params);

  bool active() const { return active_; }
  void see(int token);
  // For each distinct token of the window: l > 0 ? l / repetition : l * repetition; then
  // l -= frequency * count + presence. Tokens outside the vocabulary are ignored.
  void apply(std::span<double> logits) const;

 private:
  double repetition_, presence_, frequency_;
  std::size_t window_;
  bool active_;
  std::deque<int> recent_;
  std::unordered_map<int, int> counts_;  // of recent_, kept in step with it
};

}  // namespace godwit::decode
