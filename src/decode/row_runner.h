// The forward passes of one row, in the oracle's plan: prompt chunks that only fill the state, then one token
// at a time. Each call plans, evaluates and publishes one step; if it throws, the row is as it was.
#pragma once

#include <span>
#include <vector>

#include "cache/state.h"
#include "models/model_bundle.h"

namespace godwit::decode {

class RowRunner {
 public:
  static constexpr int kChunkTokens = 2048;  // mlx-lm's prefill step

  // `bundle` must outlive the runner. Only on the thread that opened it.
  explicit RowRunner(const models::ModelBundle& bundle) : bundle_(bundle), row_(bundle.store->create()) {}

  int position() const { return row_.position(); }
  // Stores a prompt chunk; nothing but the state is evaluated.
  void store(std::span<const int> tokens);
  // Logits of every token of the span, [tokens, vocabulary] f32.
  std::vector<float> logits(std::span<const int> tokens);
  // The greedy choice after `token`. Throws Error{internal} when the logits hold NaN or nothing above
  // -infinity.
  int greedy(int token);

 private:
  template <typename Outputs>
  void run(std::span<const int> tokens, Outputs&& outputs);

  const models::ModelBundle& bundle_;
  cache::Row row_;
};

}  // namespace godwit::decode
