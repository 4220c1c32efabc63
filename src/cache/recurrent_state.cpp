#include "cache/recurrent_state.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"
#include "cache/gated_delta.h"

namespace godwit::cache {

void RecurrentState::make_room() {
  if (in_round_) recorded_.reserve(recorded_.size() + 1);
}

void RecurrentState::advance(RecurrentRef memory, const RecurrentInputs& inputs) noexcept {
  memory_ = std::move(memory);
  if (in_round_) recorded_.push_back(inputs);
}

void RecurrentState::restore(RecurrentRef memory) noexcept { resolve(std::move(memory)); }

void RecurrentState::begin() noexcept {
  before_ = memory_;
  recorded_.clear();
  in_round_ = true;
}

RecurrentRef RecurrentState::replayed(const RecurrentNeed& need, NumericMode mode, int keep,
                                      ops::NativeRuntime* runtime) const {
  GODWIT_CHECK(in_round_, "a recurrent state is replayed outside a round");
  int left = keep;
  RecurrentRef memory = before_;
  for (const RecurrentInputs& inputs : recorded_) {
    const int tokens = std::min(left, inputs.mixed.shape(0));
    if (tokens <= 0) break;
    const GatedDeltaResult result = gated_delta(need, memory, slice_tokens(inputs, 0, tokens), mode, runtime);
    memory = std::make_shared<const RecurrentMemory>(RecurrentMemory{result.state, result.tail});
    mx::eval(result.state, result.tail);
    left -= tokens;
  }
  if (left != 0)
    fail(ErrorCode::invalid_argument, "round", "{} tokens to keep, which the round does not have", keep);
  return memory;
}

void RecurrentState::resolve(RecurrentRef memory) noexcept {
  memory_ = std::move(memory);
  before_.reset();
  recorded_.clear();
  in_round_ = false;
}

}  // namespace godwit::cache
