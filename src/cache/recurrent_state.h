// What a recurrent layer remembers of one row. Private to cache.
//
// A memory is immutable: each Step makes a new one, so forks, snapshots and rounds share by reference. There
// is no token axis to cut; a round keeps the memory it began with and the inputs of its Steps, and going back
// runs the kept tokens again with the arithmetic of the forward.
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "base/mx.h"
#include "cache/state.h"
#include "ops/delta_layer.h"

namespace godwit::cache {

// Evaluated arrays. state [value_heads, value_dim, key_dim] f32; tail [kernel - 1, channels], f32 in
// `native`, else in the dtype of the inputs.
struct RecurrentMemory {
  mx::array state;
  mx::array tail;

  std::size_t bytes() const { return state.nbytes() + tail.nbytes(); }
};
using RecurrentRef = std::shared_ptr<const RecurrentMemory>;  // null: before the first token, all zeros

// Room for a memory of `native`, not initialised; and the pointers from one (null: zeros) into such room.
RecurrentMemory empty_memory(const RecurrentNeed& need);
ops::DeltaMemory moving(const RecurrentRef& from, RecurrentMemory& to);

// What moved a row in one Step: evaluated, that row's tokens alone. Null outside rounds in `native`.
using RecurrentMoves = std::variant<RecurrentInputs, std::shared_ptr<const ops::DeltaInputs>>;

class RecurrentState {
 public:
  const RecurrentRef& memory() const { return memory_; }
  std::size_t bytes() const { return memory_ ? memory_->bytes() : 0; }
  bool in_round() const { return in_round_; }

  // Room for one more advance(), which then cannot fail.
  void make_room();
  // What a published Step leaves. Inside a round what moved it is kept.
  void advance(RecurrentRef memory, RecurrentMoves moves) noexcept;
  // Replaces everything: a restored row.
  void restore(RecurrentRef memory) noexcept;

  // A round that was never resolved is forgotten.
  void begin() noexcept;
  // The memory after the first `keep` tokens of the round, evaluated: equal to what a Step over only those
  // leaves. Changes nothing. Error{invalid_argument} for fewer than 0 or more tokens than the round has.
  // `runtime` is for `native`; null: on this thread alone, same bits.
  RecurrentRef replayed(const RecurrentNeed& need, int keep, ops::NativeRuntime* runtime = nullptr) const;
  // Ends the round with that memory (commit: with memory()).
  void resolve(RecurrentRef memory) noexcept;

 private:
  RecurrentRef memory_;
  RecurrentRef before_;                   // at begin
  std::vector<RecurrentMoves> recorded_;  // of the Steps since then
  bool in_round_ = false;
};

}  // namespace godwit::cache
