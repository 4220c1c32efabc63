// Forwards over several rows. In `native` the rows of a store are one step: the tokens of all of them share each read of
// the weights, and the head is computed for the tokens whose logits are wanted. In `reference` each row is a step of its
// own, one after another.
#pragma once

#include <exception>
#include <span>
#include <vector>

#include "decode/row_runner.h"
#include "models/model_bundle.h"

namespace godwit::decode {

// What one row feeds, and what is wanted behind the last of its tokens.
struct StepPart {
  enum class Wanted { nothing, argmax, logits };

  RowRunner* runner;
  std::span<const int> tokens;
  Wanted wanted = Wanted::nothing;

  // What came of it: an Error that belongs to this row, or a stored span and what was wanted.
  std::exception_ptr problem = nullptr;
  int argmax = -1;
  std::span<const float> logits = {};  // [vocabulary], until the next run
};

// A copy that shares nothing with the exception: each row's holder takes its own to its own thread.
std::exception_ptr copy_of(const std::exception& error);

class StepBatch {
 public:
  // `bundle` must outlive it. On the engine thread.
  explicit StepBatch(const models::ModelBundle& bundle) : bundle_(bundle) {}

  // Rows of `store`, each once. A `native` forward that fails is the problem of all its rows, which stay as they were; one
  // of `reference` that of its row.
  void run(const cache::StateStore& store, std::span<StepPart> parts);

 private:
  void run_native(const cache::StateStore& store, std::span<StepPart> parts);
  void hand_out(std::span<const float> values, std::span<StepPart> parts) const;
  void run_reference(StepPart& part, std::vector<float>& logits) const;

  const models::ModelBundle& bundle_;
  // Used again from step to step.
  std::vector<cache::RowSpan> spans_;
  std::vector<int> tokens_, chosen_;
  std::vector<std::vector<float>> logits_;  // `reference`
};

}  // namespace godwit::decode
