// The forward passes of one row: prompt chunks that only fill the state, then one token at a time. Each step
// is planned, evaluated and published; one that throws leaves the row as it was before it. In `reference` the
// chunks are the oracle's; in `native` any chunks give the same bits.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "cache/chunks.h"
#include "cache/state.h"
#include "models/model_bundle.h"

namespace godwit::decode {

using cache::kNativeChunk;
using cache::kReferenceChunk;

// The token of the largest of `native` logits. Throws Error{internal} when they hold NaN or nothing above -infinity.
int native_argmax(const ops::NativeRuntime& runtime, std::span<const float> logits);

class RowRunner {
 public:
  // `bundle` must outlive the runner. Only on the thread that opened it.
  explicit RowRunner(const models::ModelBundle& bundle) : RowRunner(bundle, *bundle.store) {}
  // A row of another store over the same graph (ModelBundle::make_store), which must outlive the runner too.
  RowRunner(const models::ModelBundle& bundle, const cache::StateStore& store)
      : bundle_(bundle), store_(store), row_(store.create()) {}

  int position() const { return row_.position(); }
  // Steps that this runner has published.
  const ops::StepCounts& counts() const { return counts_; }
  const cache::Row& row() const { return row_; }
  // For steps that others plan over the row, and count here.
  cache::Row& row() { return row_; }
  void count_step(bool is_planned) {
    ++counts_.steps;
    counts_.planned += is_planned ? 1 : 0;
  }
  // Goes on from a row of the same store.
  void start_from(cache::Row row) { row_ = std::move(row); }
  // The most tokens that the next step takes of a prompt. It ends where the row turns to another codec.
  std::size_t chunk_tokens() const {
    return static_cast<std::size_t>(std::min(is_native() ? kNativeChunk : kReferenceChunk, row_.longest_span()));
  }
  // Stores a prompt chunk of at most chunk_tokens().
  void store(std::span<const int> tokens);
  // Logits of every token of the span, [tokens, vocabulary] f32.
  std::vector<float> logits(std::span<const int> tokens);
  // Hidden states behind the final norm of every token of the span, [tokens, hidden] f32, read in the chunks of a prompt.
  std::vector<float> hidden(std::span<const int> tokens);
  // The greedy choice after `token`: of the oracle's normalised logits in `reference`, of the raw ones in
  // `native`. Throws Error{internal} when the logits hold NaN or nothing above -infinity.
  int greedy(int token);

 private:
  bool is_native() const { return bundle_.mode == NumericMode::native; }
  template <typename Outputs>
  void run(std::span<const int> tokens, Outputs&& outputs);
  // The same over the logits [tokens, vocabulary]: one token by the recorded graph, where the bundle has one.
  template <typename Outputs>
  void run_to_logits(std::span<const int> tokens, Outputs&& outputs);
  // One native step: `use` is given the values that were wanted.
  template <typename Use>
  void run_native(std::span<const int> tokens, ops::StepOutput wanted, Use&& use);
  std::vector<float> native_logits(std::span<const int> tokens);
  int native_greedy(int token);

  const models::ModelBundle& bundle_;
  const cache::StateStore& store_;
  cache::Row row_;
  ops::StepCounts counts_;
};

}  // namespace godwit::decode
