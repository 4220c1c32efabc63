// Latent attention of both modes against the form with keys and values of every head, which it absorbs.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "base/error.h"
#include "base/mx_ops.h"
#include "cache/state.h"
#include "kernels/select.h"
#include "ops/native_runtime.h"

namespace godwit::cache {
namespace {

// Per head: keys of kPlain elements made from the latent beside a rotary part, values of kValue made from the latent.
constexpr int kHeads = 6, kLatent = 64, kRotary = 32, kPlain = 24, kValue = 40;
constexpr float kScale = 0.125f;

LayerNeed latents() {
  return {.content = Content::latent, .kv_heads = 1, .key_dim = kLatent, .value_dim = kRotary};
}

mx::array normal(const mx::Shape& shape, unsigned seed, float spread = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> of(0, spread);
  std::vector<float> values(mx::zeros(shape).size());
  for (float& value : values) value = of(random);
  return mx::array(values.data(), shape);
}

mx::array doubles(const mx::array& x) { return mx::astype(x, mx::float64); }

// A prompt's vectors. All in f32; products with the weights are taken in f64 and rounded once.
struct Prompt {
  explicit Prompt(int tokens, unsigned seed)
      : latent(normal({tokens, 1, kLatent}, seed)),
        rotary(normal({tokens, 1, kRotary}, seed + 1)),
        q_plain(normal({tokens, kHeads, kPlain}, seed + 2)),
        q_rotary(normal({tokens, kHeads, kRotary}, seed + 3)) {
    // [tokens, heads, 1, plain] x [heads, plain, latent]
    const mx::array absorbed = mx::squeeze(mx::matmul(mx::expand_dims(doubles(q_plain), 2), doubles(to_keys)), 2);
    q = mx::concatenate({mx::astype(absorbed, mx::float32), q_rotary}, 2);
    mx::eval(q);
  }
  mx::array part(const mx::array& x, int begin, int end) const {
    mx::Shape from(static_cast<std::size_t>(x.ndim()), 0), to = x.shape();
    from[0] = begin;
    to[0] = end;
    return mx::contiguous(mx::slice(x, from, to));
  }

  mx::array to_keys = normal({kHeads, kPlain, kLatent}, 91, 0.125f);
  mx::array to_values = normal({kHeads, kValue, kLatent}, 92, 0.125f);
  mx::array latent, rotary, q_plain, q_rotary;
  mx::array q = mx::array(0.0f);  // [tokens, heads, latent + rotary]
};

// The whole form in f64 with a mask [tokens, tokens]: [tokens, heads, value].
mx::array reconstructed(const Prompt& p, const mx::array& mask) {
  const mx::array c = mx::swapaxes(doubles(p.latent), 0, 1);  // [1, tokens, latent]
  const mx::array keys = mx::matmul(c, mx::swapaxes(doubles(p.to_keys), 1, 2));      // [heads, tokens, plain]
  const mx::array values = mx::matmul(c, mx::swapaxes(doubles(p.to_values), 1, 2));  // [heads, tokens, value]
  const mx::array turned = mx::swapaxes(doubles(p.rotary), 0, 1);
  const auto by_head = [](const mx::array& x) { return mx::swapaxes(doubles(x), 0, 1); };
  mx::array scores = mx::matmul(by_head(p.q_plain), mx::swapaxes(keys, 1, 2)) +
                     mx::matmul(by_head(p.q_rotary), mx::swapaxes(turned, 1, 2));
  scores = mx::where(mask, scores * mx::array(static_cast<double>(kScale), mx::float64),
                     mx::array(-1e300, mx::float64));
  return mx::swapaxes(mx::matmul(mx::softmax(scores, -1), values), 0, 1);
}

// What attention answered, through the values' weights: [tokens, heads, value] in f64.
mx::array unabsorbed(const Prompt& p, const mx::array& out) {
  return mx::squeeze(mx::matmul(mx::expand_dims(doubles(out), 2), mx::swapaxes(doubles(p.to_values), 1, 2)), 2);
}

mx::array causal(int tokens) {
  const mx::array at = mx::arange(tokens);
  return mx::expand_dims(at, 1) >= mx::expand_dims(at, 0);
}

// Scaled scores are sums of 96 products that stay below 6 in all; queries and keys are rounded once. A score is off by
// at most 98 * 6 units, its weight by as much above and below the line; the sums of at most four blocks add 84 units.
// Latents stay below 5, and a row of 64 weights of spread 1/8 adds up to less than 10 in magnitudes.
constexpr double kBound = 10 * 5 * 2 * (98 * 6 + 84) * 0x1p-24;

void expect_close(const mx::array& got, const mx::array& want) {
  ASSERT_EQ(got.shape(), want.shape());
  const double off = mx::max(mx::abs(got - want)).item<double>();
  EXPECT_LE(off, kBound);
}

class Latents : public ::testing::TestWithParam<NumericMode> {
 protected:
  // Steps over tokens [row.position(), end).
  mx::array step(const Prompt& p, Row& row, int end, const AttendSpec& spec, SpanKind kind = SpanKind::causal) {
    const int begin = row.position();
    const RowSpan span{&row, end - begin, kind};
    Step step = store_.plan({&span, 1});
    std::vector<mx::array> all = {step.layer(0).attend(p.part(p.q, begin, end), p.part(p.latent, begin, end),
                                                       p.part(p.rotary, begin, end), spec)};
    for (const mx::array& pending : step.pending()) all.push_back(pending);
    mx::eval(all);
    step.publish();
    return all[0];
  }

  ops::NativeRuntime runtime_{kernels::best_level(), 2};
  const StateStore store_{{latents()}, {}, GetParam(), &runtime_};
  const AttendSpec spec_{.scale = kScale};
};

TEST_P(Latents, AreWhatTheFormWithEveryHeadsKeysGives) {
  const Prompt p(150, 1);
  Row row = store_.create();
  std::vector<mx::array> parts;
  for (const int end : {70, 71, 140, 150}) parts.push_back(step(p, row, end, spec_));
  expect_close(unabsorbed(p, mx::concatenate(parts, 0)), reconstructed(p, causal(150)));
}

TEST_P(Latents, ASelectionLeavesWhatItNames) {
  const int tokens = 130, count = 12;
  const Prompt p(tokens, 2);
  // Each query names itself, nothing, what lies behind it, and others.
  std::mt19937 random(3);
  std::vector<int> named;
  std::vector<std::uint8_t> seen(static_cast<std::size_t>(tokens * tokens), 0);
  for (int i = 0; i < tokens; ++i)
    for (int n = 0; n < count; ++n) {
      named.push_back(n == 0 ? i : n == 1 ? -1 : static_cast<int>(random() % (tokens + 20)));
      if (named.back() >= 0 && named.back() <= i) seen[static_cast<std::size_t>(i * tokens + named.back())] = 1;
    }
  const mx::array all(named.data(), {tokens, count}), mask(seen.data(), {tokens, tokens}, mx::bool_);
  Row row = store_.create();
  std::vector<mx::array> parts;
  for (const int end : {100, 101, 130}) {
    AttendSpec spec = spec_;
    spec.selected = p.part(all, row.position(), end);
    parts.push_back(step(p, row, end, spec));
  }
  expect_close(unabsorbed(p, mx::concatenate(parts, 0)), reconstructed(p, mask));
}

TEST_P(Latents, AReadSeesTheWholeRow) {
  const Prompt p(91, 4);
  Row row = store_.create();
  step(p, row, 90, spec_);
  const RowSpan span{&row, 1};
  Step read = store_.read({&span, 1});
  const mx::array out = read.layer(0).attend(p.part(p.q, 90, 91), spec_);
  mx::array mask = mx::broadcast_to(mx::expand_dims(mx::arange(91), 0) < mx::array(90), {91, 91});
  expect_close(unabsorbed(p, out), p.part(reconstructed(p, mask), 90, 91));
}

TEST_P(Latents, ABlockIsSeenWholeAndNotStored) {
  const Prompt p(100, 5);
  Row row = store_.create();
  step(p, row, 80, spec_);
  const RowSpan span{&row, 20, SpanKind::bidirectional};
  {
    Step block = store_.plan({&span, 1});
    const mx::array out = block.layer(0).attend_block(p.part(p.q, 80, 100), p.part(p.latent, 80, 100),
                                                      p.part(p.rotary, 80, 100), spec_);
    const mx::array all = mx::broadcast_to(mx::array(true), {100, 100});
    expect_close(unabsorbed(p, out), p.part(reconstructed(p, all), 80, 100));
  }
  EXPECT_EQ(row.position(), 80);
}

// 576 numbers a token in GLM's sizes, and no second copy of a latent.
TEST_P(Latents, AreKeptOnce) {
  LayerNeed glm = latents();
  glm.key_dim = 512;
  glm.value_dim = 64;
  const StateStore f32({glm}, {}, GetParam()), bf16({glm}, parse_kv_policy("dense:bf16"), GetParam());
  EXPECT_EQ(f32.bytes_per_token(), 576u * 4);
  EXPECT_EQ(bf16.bytes_per_token(), 576u * 2);
  const Prompt p(64, 6);
  Row row = store_.create();
  step(p, row, 64, spec_);
  EXPECT_EQ(row.bytes(), 64u * (kLatent + kRotary) * 4);
}

TEST_P(Latents, WhatDoesNotFitIsAnError) {
  const Prompt p(2, 7);
  Row row = store_.create();
  const RowSpan span{&row, 2};
  const auto code_of = [&](const mx::array& q, const mx::array& rotary, const AttendSpec& spec) {
    Step step = store_.plan({&span, 1});
    try {
      mx::eval(step.layer(0).attend(q, p.latent, rotary, spec));
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::cancelled;
  };
  EXPECT_EQ(code_of(p.q_rotary, p.rotary, spec_), ErrorCode::internal);
  EXPECT_EQ(code_of(p.q, p.latent, spec_), ErrorCode::internal);
  if (GetParam() == NumericMode::native) return;
  AttendSpec capped = spec_;
  capped.soft_cap = 3;
  EXPECT_EQ(code_of(p.q, p.rotary, capped), ErrorCode::unsupported);
}

INSTANTIATE_TEST_SUITE_P(Modes, Latents, ::testing::Values(NumericMode::native, NumericMode::reference),
                         [](const auto& mode) { return mode.param == NumericMode::native ? "native" : "reference"; });

// For a family that composes attention itself, with its keys for sparse selection beside them.
TEST(LatentPlanes, ReferenceModeHandsOutAllThatIsVisible) {
  LayerNeed need = latents();
  need.index_dim = 16;
  const StateStore store({need}, {}, NumericMode::reference);
  EXPECT_EQ(store.bytes_per_token(), (kLatent + kRotary + 16) * 4u);
  const Prompt p(70, 9);
  const mx::array index = normal({70, 1, 16}, 10);
  Row row = store.create();
  for (const int end : {60, 61, 70}) {
    const int begin = row.position();
    const RowSpan span{&row, end - begin};
    Step step = store.plan({&span, 1});
    std::vector<mx::array> all, wanted;
    for (const mx::array& x : {p.latent, p.rotary, index}) {
      all.push_back(p.part(x, begin, end));
      wanted.push_back(mx::swapaxes(p.part(x, 0, end), 0, 1));
    }
    all = step.layer(0).extend(all);
    for (const mx::array& pending : step.pending()) all.push_back(pending);
    mx::eval(all);
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(mx::array_equal(all[i], wanted[i]).item<bool>());
    step.publish();
  }
}

TEST(NativeSelection, NamingNothingGivesZerosAndNamingAllChangesNoBit) {
  ops::NativeRuntime runtime(kernels::best_level(), 2);
  const StateStore store({latents()}, {}, NumericMode::native, &runtime);
  const Prompt p(70, 8);
  const auto attended = [&](const std::optional<mx::array>& selected) {
    Row row = store.create();
    const RowSpan span{&row, 70};
    Step step = store.plan({&span, 1});
    AttendSpec spec{.scale = kScale};
    spec.selected = selected;
    return step.layer(0).attend(p.q, p.latent, p.rotary, spec);
  };
  const mx::array all = mx::broadcast_to(mx::arange(70), {70, 70});
  EXPECT_TRUE(mx::array_equal(attended(all), attended(std::nullopt)).item<bool>());
  for (const mx::array& none : {mx::full({70, 1}, -1), mx::zeros({70, 0}, mx::int32)})
    EXPECT_TRUE(mx::array_equal(attended(none), mx::zeros({70, kHeads, kLatent})).item<bool>());
}

}  // namespace
}  // namespace godwit::cache
