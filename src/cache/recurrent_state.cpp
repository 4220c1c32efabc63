#include "cache/recurrent_state.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"
#include "cache/gated_delta.h"
#include "kernels/select.h"
#include "ops/gated_delta.h"

namespace godwit::cache {
namespace {

using DeltaInputsRef = std::shared_ptr<const ops::DeltaInputs>;

int tokens_of(const RecurrentMoves& moves) {
  if (const auto* inputs = std::get_if<RecurrentInputs>(&moves)) return inputs->mixed.shape(0);
  return static_cast<int>(std::get<DeltaInputsRef>(moves)->tokens);
}

RecurrentRef moved(const RecurrentNeed& need, const RecurrentRef& from, const RecurrentInputs& inputs, int tokens) {
  const GatedDeltaResult result = gated_delta(need, from, slice_tokens(inputs, 0, tokens));
  mx::eval(result.state, result.tail);
  return std::make_shared<const RecurrentMemory>(RecurrentMemory{result.state, result.tail});
}

RecurrentRef moved(const RecurrentNeed& need, const RecurrentRef& from, const ops::DeltaInputs& inputs, int tokens,
                   ops::NativeRuntime& runtime) {
  auto memory = std::make_shared<RecurrentMemory>(empty_memory(need));
  ops::gated_delta_span(runtime, *inputs.weights, moving(from, *memory),
                        {.mixed = inputs.mixed.data(),
                         .decay = inputs.decay.data(),
                         .update = inputs.update.data(),
                         .out = nullptr,
                         .tokens = tokens});
  runtime.scratch.reset();
  return memory;
}

RecurrentRef moved(const RecurrentNeed& need, const RecurrentRef& from, const DeltaInputsRef& inputs, int tokens,
                   ops::NativeRuntime* runtime) {
  if (runtime) return moved(need, from, *inputs, tokens, *runtime);
  ops::NativeRuntime own(kernels::best_level(), 1);
  return moved(need, from, *inputs, tokens, own);
}

// Memory that a kernel writes.
mx::array room(const mx::Shape& shape) {
  std::size_t count = 1;
  for (const int extent : shape) count *= static_cast<std::size_t>(extent);
  return mx::array(mx::allocator::malloc(count * sizeof(float)), shape, mx::float32);
}

}  // namespace

RecurrentMemory empty_memory(const RecurrentNeed& need) {
  return {.state = room({need.value_heads, need.value_dim, need.key_dim}),
          .tail = room({need.kernel - 1, need.channels})};
}

ops::DeltaMemory moving(const RecurrentRef& from, RecurrentMemory& to) {
  return {.state = from ? from->state.data<float>() : nullptr,
          .tail = from ? from->tail.data<float>() : nullptr,
          .next_state = to.state.data<float>(),
          .next_tail = to.tail.data<float>()};
}

void RecurrentState::make_room() {
  if (in_round_) recorded_.reserve(recorded_.size() + 1);
}

void RecurrentState::advance(RecurrentRef memory, RecurrentMoves moves) noexcept {
  memory_ = std::move(memory);
  if (in_round_) recorded_.push_back(std::move(moves));
}

void RecurrentState::restore(RecurrentRef memory) noexcept { resolve(std::move(memory)); }

void RecurrentState::begin() noexcept {
  before_ = memory_;
  recorded_.clear();
  in_round_ = true;
}

RecurrentRef RecurrentState::replayed(const RecurrentNeed& need, int keep, ops::NativeRuntime* runtime) const {
  GODWIT_CHECK(in_round_, "a recurrent state is replayed outside a round");
  int left = keep;
  RecurrentRef memory = before_;
  for (const RecurrentMoves& moves : recorded_) {
    const int tokens = std::min(left, tokens_of(moves));
    if (tokens <= 0) break;
    if (const auto* inputs = std::get_if<RecurrentInputs>(&moves))
      memory = moved(need, memory, *inputs, tokens);
    else
      memory = moved(need, memory, std::get<DeltaInputsRef>(moves), tokens, runtime);
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
