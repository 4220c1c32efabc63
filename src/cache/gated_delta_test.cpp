// A gated delta layer over one row. What it computes is compared with mlx-lm and with double precision in
// tests/recurrent; here: how spans may be cut.
#include "cache/gated_delta.h"

#include "base/error.h"
#include "cache/recurrent_test_support.h"
#include "kernels/select.h"
#include "ops/native_runtime.h"

namespace godwit::cache {
namespace {

const RecurrentNeed kNeeds[] = {recurrent_need(2, 4, 16, 8, 4), recurrent_need(1, 3, 20, 5, 2),
                                recurrent_need(1, 1, 32, 16, 1)};

std::vector<std::vector<int>> cuts_of_eleven() {
  return {{11}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {2, 9}, {3, 1, 7}, {10, 1}, {5, 2, 2, 2}};
}

TEST(GatedDelta, NativeBitsDependNeitherOnTheCutNorOnThreadsOrLevel) {
  for (const RecurrentNeed& need : kNeeds) {
    const RecurrentInputs inputs = recurrent_inputs(need, 11, 1);
    const Forward want = forward(need, inputs, {11}, NumericMode::native);
    for (const kernels::Level level : kernels::runnable_levels())
      for (const int threads : {1, 3}) {
        ops::NativeRuntime runtime(level, threads);
        for (const std::vector<int>& spans : cuts_of_eleven()) {
          const Forward got = native_forward(runtime, need, inputs, spans);
          EXPECT_TRUE(same_bits(got.out, want.out)) << kernels::level_name(level);
          EXPECT_TRUE(same_memory(got.memory, want.memory)) << kernels::level_name(level);
        }
      }
  }
}

// Longer than what the scratch takes at once.
TEST(GatedDelta, ALongNativeSpanEqualsItsHalves) {
  const RecurrentNeed need = kNeeds[0];
  const RecurrentInputs inputs = recurrent_inputs(need, 600, 2);
  ops::NativeRuntime runtime(kernels::best_level(), 2);
  const Forward whole = native_forward(runtime, need, inputs, {600});
  const Forward halves = native_forward(runtime, need, inputs, {299, 301});
  EXPECT_TRUE(same_bits(whole.out, halves.out));
  EXPECT_TRUE(same_memory(whole.memory, halves.memory));
}

// Not promised, but so on MLX's CPU back end: each output of the convolution and each norm is computed alone.
TEST(GatedDelta, ReferenceBitsDoNotDependOnTheCutOnTheCpu) {
  for (const RecurrentNeed& need : kNeeds)
    for (const mx::Dtype dtype : {mx::float32, mx::bfloat16, mx::float16}) {
      const RecurrentInputs inputs = recurrent_inputs(need, 11, 3, dtype);
      const Forward want = forward(need, inputs, {11}, NumericMode::reference);
      EXPECT_EQ(want.out.dtype(), dtype);
      EXPECT_EQ(want.memory->state.dtype(), mx::float32);
      EXPECT_EQ(want.memory->tail.dtype(), dtype);
      for (const std::vector<int>& spans : cuts_of_eleven()) {
        const Forward got = forward(need, inputs, spans, NumericMode::reference);
        EXPECT_TRUE(same_bits(got.out, want.out));
        EXPECT_TRUE(same_memory(got.memory, want.memory));
      }
    }
}

TEST(GatedDelta, TheTailIsTheNewestInputsEvenBehindASpanShorterThanTheKernel) {
  const RecurrentNeed need = recurrent_need(1, 1, 16, 16, 4);
  const RecurrentInputs inputs = recurrent_inputs(need, 6, 4);
  const mx::array padded = mx::concatenate({mx::zeros({3, need.channels}), inputs.mixed}, 0);
  for (const NumericMode mode : {NumericMode::reference, NumericMode::native})
    for (const std::vector<int>& spans :
         std::vector<std::vector<int>>{{1}, {2}, {1, 1}, {1, 2}, {3, 1}, {2, 4}}) {
      int tokens = 0;
      for (const int span : spans) tokens += span;
      const Forward got = forward(need, inputs, spans, mode);
      EXPECT_TRUE(same_bits(got.memory->tail, mx::slice(padded, {tokens, 0}, {tokens + 3, need.channels})));
    }
}

// GGUF files hold -exp(a_log).
TEST(GatedDelta, ARateInPlaceOfItsLogarithmGivesTheSameBits) {
  const RecurrentNeed need = kNeeds[0];
  for (const mx::Dtype dtype : {mx::float32, mx::bfloat16}) {
    RecurrentInputs inputs = recurrent_inputs(need, 9, 12, dtype);
    const Forward want = forward(need, inputs, {4, 5}, NumericMode::reference);
    const Forward near = forward(need, inputs, {4, 5}, NumericMode::native);
    inputs.a_log = mx::negative(mx::exp(inputs.a_log));
    EXPECT_FALSE(same_bits(forward(need, inputs, {4, 5}, NumericMode::reference).out, want.out));
    inputs.a_log_is_rate = true;
    const Forward got = forward(need, inputs, {4, 5}, NumericMode::reference);
    EXPECT_TRUE(same_bits(got.out, want.out));
    EXPECT_TRUE(same_memory(got.memory, want.memory));
    // The logarithm's own rounding moves the decay by a few ulp of its exponent, over nine tokens.
    const mx::array off =
        mx::abs(forward(need, inputs, {4, 5}, NumericMode::native).memory->state - near.memory->state);
    EXPECT_LT(mx::max(off).item<float>(),
              9 * 16 * 0x1p-24f * (1 + mx::max(mx::abs(near.memory->state)).item<float>()));
  }
}

TEST(GatedDelta, TheMemoryItStartsFromStaysAsItIs) {
  const RecurrentNeed need = kNeeds[0];
  const RecurrentInputs inputs = recurrent_inputs(need, 8, 5);
  for (const NumericMode mode : {NumericMode::reference, NumericMode::native}) {
    const RecurrentRef memory = forward(need, inputs, {4}, mode).memory;
    const RecurrentMemory before{mx::copy(memory->state), mx::copy(memory->tail)};
    mx::eval(before.state, before.tail);
    const auto go_on = [&] {
      const RecurrentInputs rest = slice_tokens(inputs, 4, 8);
      if (mode == NumericMode::reference) {
        const GatedDeltaResult result = gated_delta(need, memory, rest);
        mx::eval(result.out, result.state, result.tail);
        return std::pair(result.out, result.state);
      }
      ops::NativeRuntime runtime(kernels::best_level(), 1);
      RecurrentState state;
      state.restore(memory);
      const mx::array out = native_span(runtime, need, state, rest);
      return std::pair(out, state.memory()->state);
    };
    const auto once = go_on(), again = go_on();
    EXPECT_TRUE(same_bits(once.first, again.first) && same_bits(once.second, again.second));
    EXPECT_TRUE(same_bits(memory->state, before.state) && same_bits(memory->tail, before.tail));
  }
}

TEST(GatedDelta, RefusesOtherShapesThanItsNeed) {
  const RecurrentNeed need = kNeeds[0];
  const RecurrentInputs good = recurrent_inputs(need, 3, 6);
  const auto refused = [&](auto&& spoil) {
    RecurrentInputs inputs = good;
    spoil(inputs);
    EXPECT_THROW(gated_delta(need, nullptr, inputs), Error);
  };
  refused([](RecurrentInputs& in) { in.mixed = mx::zeros({3, 7}); });
  refused([](RecurrentInputs& in) { in.conv_weight = mx::expand_dims(in.conv_weight, 2); });
  refused([](RecurrentInputs& in) { in.decay = mx::zeros({2, 4}); });
  refused([](RecurrentInputs& in) { in.update = mx::zeros({3, 3}); });
  refused([](RecurrentInputs& in) { in.a_log = mx::zeros({1}); });
  refused([&](RecurrentInputs& in) { in = slice_tokens(good, 0, 0); });
  RecurrentNeed odd = need;
  odd.channels += 1;
  EXPECT_THROW(gated_delta(odd, nullptr, good), Error);
}

// GGUF files of some writers: the same layer, its value heads in another order.
TEST(GatedDelta, TiledValueHeadsAreTheSameHeadsInAnotherOrder) {
  const RecurrentNeed need = kNeeds[0];  // two key heads, four value heads
  const RecurrentInputs plain = recurrent_inputs(need, 9, 13);
  const mx::array heads = mx::array({0, 2, 1, 3}, {4}, mx::int32);  // value head in each place of the file
  const auto by_head = [&](const mx::array& x, int axis, int width) {
    mx::Shape split = x.shape();
    split[static_cast<std::size_t>(axis)] = width;
    split.insert(split.begin() + axis, need.value_heads);
    return mx::reshape(mx::take(mx::reshape(x, split), heads, axis), x.shape());
  };
  const int keys = 2 * need.key_heads * need.key_dim;
  const auto values_by_head = [&](const mx::array& x, int axis) {
    const std::vector<mx::array> parts = mx::split(x, mx::Shape{keys}, axis);
    return mx::concatenate({parts[0], by_head(parts[1], axis, need.value_dim)}, axis);
  };
  RecurrentInputs tiled = plain;
  tiled.mixed = values_by_head(plain.mixed, 1);
  tiled.conv_weight = values_by_head(plain.conv_weight, 0);
  tiled.decay = by_head(plain.decay, 1, 1), tiled.update = by_head(plain.update, 1, 1);
  tiled.a_log = by_head(plain.a_log, 0, 1), tiled.dt_bias = by_head(plain.dt_bias, 0, 1);
  const Forward want = forward(need, plain, {9}, NumericMode::native);

  ops::GatedDeltaWeights weights = *testing_support::delta_weights(need, tiled);
  RecurrentMemory memory = empty_memory(need);
  const auto mixed = testing_support::as_floats(tiled.mixed), decay = testing_support::as_floats(tiled.decay),
             update = testing_support::as_floats(tiled.update);
  mx::array out = mx::zeros({9, need.value_heads, need.value_dim});
  out.eval();
  const auto run = [&] {
    ops::NativeRuntime runtime(kernels::best_level(), 1);
    ops::gated_delta_span(runtime, weights, moving(nullptr, memory),
                          {mixed.data(), decay.data(), update.data(), out.data<float>(), 9});
    return same_bits(out, mx::take(want.out, heads, 1)) && same_bits(memory.state, mx::take(want.memory->state, heads, 0));
  };
  EXPECT_FALSE(run()) << "the heads in their places read other keys";
  weights.sizes.has_tiled_values = true;
  EXPECT_TRUE(run());
}

}  // namespace
}  // namespace godwit::cache
