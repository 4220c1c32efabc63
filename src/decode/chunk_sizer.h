// How much of other prompts a step may take while rows make tokens, from what steps have taken so far: a joiner shall
// not double the time between two tokens. `native`, where no bit depends on chunks.
#pragma once

#include <vector>

namespace godwit::decode {

class ChunkSizer {
 public:
  // A step of `makers` rows that made a token each and of `tokens` of prompts took `seconds`.
  void saw(int makers, int tokens, double seconds);
  // Tokens of prompts beside `makers` rows, > 0: what the step then takes longer is about kShare of the step alone.
  int tokens(int makers) const;

  static constexpr double kShare = 0.75;
  static constexpr int kLeast = 8, kUnmeasured = 16;

 private:
  double seconds_alone(int makers) const;

  std::vector<double> alone_;  // by makers: seconds of their step, 0 where none was seen
  double per_token_ = 0;       // what a token of a prompt adds
};

}  // namespace godwit::decode
