// Shared by the tests of recurrent layers: seeded inputs and equality of bits.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/mx_ops.h"
#include "cache/gated_delta.h"
#include "cache/native_recurrent.h"
#include "kernels/select.h"
#include "support/native_recur.h"
#include "support/random_array.h"

namespace godwit::cache {

inline RecurrentNeed recurrent_need(int key_heads, int value_heads, int key_dim, int value_dim, int kernel) {
  return {.key_heads = key_heads,
          .value_heads = value_heads,
          .key_dim = key_dim,
          .value_dim = value_dim,
          .channels = 2 * key_heads * key_dim + value_heads * value_dim,
          .kernel = kernel};
}

using testing_support::random_array;

// The first tokens of one sequence per seed; the weights are those of seed 0.
inline RecurrentInputs recurrent_inputs(const RecurrentNeed& need, int tokens, unsigned seed,
                                        mx::Dtype dtype = mx::float32) {
  const auto cast = [&](const mx::array& x) { return mx::astype(x, dtype); };
  return {.mixed = cast(random_array({tokens, need.channels}, 100 * seed + 1)),
          .conv_weight = cast(random_array({need.channels, need.kernel}, 2, 0.5f)),
          .decay = cast(random_array({tokens, need.value_heads}, 100 * seed + 3)),
          .update = cast(random_array({tokens, need.value_heads}, 100 * seed + 4)),
          .a_log = random_array({need.value_heads}, 5),
          .dt_bias = cast(random_array({need.value_heads}, 6))};
}

inline bool same_bits(const mx::array& a, const mx::array& b) {
  mx::array left = mx::contiguous(a), right = mx::contiguous(b);
  mx::eval(left, right);
  return left.dtype() == right.dtype() && left.shape() == right.shape() &&
         std::memcmp(left.data<char>(), right.data<char>(), left.nbytes()) == 0;
}

inline bool same_memory(const RecurrentRef& a, const RecurrentRef& b) {
  if (!a || !b) return !a && !b;
  return same_bits(a->state, b->state) && same_bits(a->tail, b->tail);
}

// The next span of one row in `native` mode: its outputs.
inline mx::array native_span(ops::NativeRuntime& runtime, const RecurrentNeed& need, RecurrentState& state,
                             const RecurrentInputs& inputs, bool publish = true) {
  const NativeRecurrent::Part part{&state, inputs.mixed.shape(0)};
  ops::DeltaLayer memories;
  NativeRecurrent layer(need, 0, memories, {&part, 1});
  mx::array out = testing_support::native_recur(runtime, need, memories, inputs);
  publish ? layer.publish() : layer.abandon();
  return out;
}

// Spans of these lengths, one after another, from nothing: the outputs one under the other, and the memory.
struct Forward {
  mx::array out;
  RecurrentRef memory;
};
inline Forward forward(const RecurrentNeed& need, const RecurrentInputs& inputs, const std::vector<int>& spans) {
  std::vector<mx::array> outs;
  RecurrentRef memory;
  int begin = 0;
  for (const int tokens : spans) {
    const GatedDeltaResult result = gated_delta(need, memory, slice_tokens(inputs, begin, begin + tokens));
    mx::eval(result.out, result.state, result.tail);
    memory = std::make_shared<const RecurrentMemory>(RecurrentMemory{result.state, result.tail});
    outs.push_back(result.out);
    begin += tokens;
  }
  return {mx::concatenate(outs, 0), memory};
}
inline Forward native_forward(ops::NativeRuntime& runtime, const RecurrentNeed& need, const RecurrentInputs& inputs,
                              const std::vector<int>& spans) {
  std::vector<mx::array> outs;
  RecurrentState state;
  int begin = 0;
  for (const int tokens : spans) {
    outs.push_back(native_span(runtime, need, state, slice_tokens(inputs, begin, begin + tokens)));
    begin += tokens;
  }
  return {mx::concatenate(outs, 0), state.memory()};
}
inline Forward forward(const RecurrentNeed& need, const RecurrentInputs& inputs, const std::vector<int>& spans,
                       NumericMode mode) {
  if (mode == NumericMode::reference) return forward(need, inputs, spans);
  ops::NativeRuntime runtime(kernels::best_level(), 1);
  return native_forward(runtime, need, inputs, spans);
}

}  // namespace godwit::cache
