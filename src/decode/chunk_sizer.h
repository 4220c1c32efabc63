// How much of other prompts a step may take while rows make tokens, from what steps have taken so far: a joiner shall
// not double the time between two tokens. `native`, where no bit depends on chunks.
#pragma once

#include <vector>

namespace godwit::decode {

class ChunkSizer {
 public:
  // A step of `makers` rows that made a token each and of `tokens` of prompts took `seconds`.
  void saw(int makers, int tokens, double seconds);
  // Tokens of prompts beside `makers` rows, > 0, the first of them at `position` of its prompt: what the step then takes
  // longer is about kShare of the step alone, but at least least_at(position).
  int tokens(int makers, int position) const;

  static constexpr double kShare = 0.75;
  static constexpr int kUnmeasured = 16;
  // A step reads all that is stored of a prompt, however few of its tokens it takes: as long as a token's arithmetic for
  // each kReadTokens or so. No more than half of what a joiner takes shall go into that.
  static constexpr int kLeast = 2, kReadTokens = 512;
  static constexpr int least_at(int position) { return kLeast + position / kReadTokens; }
  // Products take that many rows at once.
  static constexpr int kTileRows = 4;

 private:
  double seconds_alone(int makers) const;

  std::vector<double> alone_;  // by makers: seconds of their step, 0 where none was seen
  double per_token_ = 0;       // what a token of a prompt adds
};

}  // namespace godwit::decode
