// Repetition, presence and frequency penalties over the newest tokens of a request. Repetition looks at prompt
// and answer alike; presence and frequency count the answer's tokens alone, as OpenAI's API defines them.
#pragma once

#include <deque>
#include <unordered_map>

#include "decode/logit_row.h"
#include "decode/sampling_params.h"

namespace godwit::decode {

class Penalties {
 public:
  explicit Penalties(const SamplingParams& params);

  bool active() const { return active_; }
  void see_prompt(int token) { see({token, false}); }
  void see_answer(int token) { see({token, true}); }
  // For each distinct token of the window: l > 0 ? l / repetition : l * repetition; then, where the answer holds it
  // `made` > 0 times, l -= frequency * made + presence. Tokens outside the vocabulary are ignored.
  void apply(LogitRow& row) const;

 private:
  struct Seen {
    int token;
    bool is_made;
  };
  struct Counts {
    int all = 0, made = 0;
  };

  void see(Seen seen);

  double repetition_, presence_, frequency_;
  std::size_t window_;
  bool active_;
  std::deque<Seen> recent_;
  std::unordered_map<int, Counts> counts_;  // of recent_, kept in step with it
};

}  // namespace godwit::decode
