// Experts and routing where whole-model goldens do not reach: each format against single matrices, the sorted
// path against the plain one, and the traps of the router.
#include <gtest/gtest.h>
#include <mlx/io.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/weight_store.h"
#include "nn/routing.h"
#include "nn/sparse_mlp.h"
#include "nn/switch_glu.h"
#include "support/random_array.h"

namespace godwit::nn {
namespace {

using checkpoint::WeightScope;
using checkpoint::WeightStore;
using Tensors = std::unordered_map<std::string, mx::array>;

constexpr unsigned kSeed = 20261130;
constexpr int kExperts = 6, kHidden = 64, kWidth = 32;

mx::array random_array(const mx::Shape& shape, unsigned seed, mx::Dtype dtype = mx::float32) {
  return testing_support::random_array(shape, kSeed + seed, dtype);
}

// Whole numbers of at most 3: products and sums of f32 are exact, so that every order of summation agrees.
mx::array whole_numbers(const mx::Shape& shape, unsigned seed, mx::Dtype dtype = mx::float32) {
  return mx::astype(mx::clip(mx::round(random_array(shape, seed)), mx::array(-3.0f), mx::array(3.0f)), dtype);
}

mx::array random_choice(int tokens, int k, unsigned seed) {
  std::mt19937 random(kSeed + seed);
  std::vector<std::uint32_t> chosen;
  for (int t = 0; t < tokens; ++t) {
    std::vector<std::uint32_t> all(kExperts);
    for (int e = 0; e < kExperts; ++e) all[static_cast<std::size_t>(e)] = static_cast<std::uint32_t>(e);
    std::ranges::shuffle(all, random);
    chosen.insert(chosen.end(), all.begin(), all.begin() + k);
  }
  return mx::array(chosen.data(), {tokens, k}, mx::uint32);
}

bool same(const mx::array& a, const mx::array& b) {
  return a.dtype() == b.dtype() && mx::array_equal(a, b).item<bool>();
}

WeightScope scope_of(const Tensors& tensors) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("godwit_experts_" + std::to_string(::getpid()) + "_" +
                     testing::UnitTest::GetInstance()->current_test_info()->name() + ".safetensors");
  mx::save_safetensors(path.string(), tensors);
  auto entries = checkpoint::read_safetensors(std::make_shared<const FileMap>(path));
  std::filesystem::remove(path);  // mapped already
  return {std::make_shared<WeightStore>(std::move(entries), checkpoint::QuantizationMap(), path.string()),
          ""};
}

// x [tokens, inputs] through the matrices of its experts, one product at a time.
mx::array one_by_one(const mx::array& x, const mx::array& stack, const mx::array& chosen) {
  std::vector<mx::array> rows;
  mx::array indices = mx::contiguous(chosen);
  indices.eval();
  for (int t = 0; t < chosen.shape(0); ++t)
    for (int k = 0; k < chosen.shape(1); ++k) {
      const int expert = static_cast<int>(indices.data<std::uint32_t>()[t * chosen.shape(1) + k]);
      rows.push_back(
          mx::matmul(mx::slice(x, {t, 0}, {t + 1, x.shape(1)}), mx::transpose(mx::take(stack, expert, 0))));
    }
  return mx::reshape(mx::concatenate(rows, 0), {chosen.shape(0), chosen.shape(1), 1, stack.shape(1)});
}

TEST(SwitchLinear, MultipliesByTheMatricesOfTheChosenExpertsInEveryDtype) {
  for (const mx::Dtype dtype : {mx::float32, mx::bfloat16, mx::float16}) {
    const mx::array stack = whole_numbers({kExperts, kWidth, kHidden}, 1, dtype);
    const mx::array bias = whole_numbers({kExperts, kWidth}, 2, dtype);
    const SwitchLinear layer(scope_of({{"e.weight", stack}, {"e.bias", bias}}), {.stacked = "e"}, kExperts,
                             kHidden, kWidth, true);
    for (const int tokens : {1, 2, 9}) {  // fewer chosen experts than there are, and more
      const mx::array x = whole_numbers({tokens, kHidden}, 3, dtype), chosen = random_choice(tokens, 2, 4);
      const mx::array exact = one_by_one(mx::astype(x, mx::float32), mx::astype(stack, mx::float32), chosen);
      const mx::array wanted = mx::astype(exact, dtype) + mx::expand_dims(mx::take(bias, chosen, 0), -2);
      EXPECT_TRUE(same(layer(mx::expand_dims(x, {-2, -3}), chosen, false), wanted)) << tokens << " tokens";
    }
  }
}

// The bound that profiles of dense experts state. An f32 sum of K products, each exact there (8 + 8 or 11 +
// 11 bits), is at most (K - 1) 2^-24 sum |x w| from the exact one to first order, in any order; twice that
// covers the rest. One rounding to p bits adds at most 2^-p of what it rounds.
void expect_rounded_once(mx::Dtype dtype, double half_unit, int tokens) {
  const mx::array stack = random_array({kExperts, kWidth, kHidden}, 8, dtype);
  const mx::array x = random_array({tokens, kHidden}, 9, dtype), chosen = random_choice(tokens, 2, 10);
  const SwitchLinear layer(scope_of({{"e.weight", stack}}), {.stacked = "e"}, kExperts, kHidden, kWidth);
  const mx::array product = layer(mx::expand_dims(x, {-2, -3}), chosen, false);
  const mx::array y = mx::contiguous(mx::astype(product, mx::float32)), own = mx::contiguous(chosen);
  const mx::array wide = mx::astype(stack, mx::float32), inputs = mx::astype(x, mx::float32);
  mx::eval({y, wide, inputs, own});
  int inexact = 0;
  for (int at = 0; at < tokens * 2 * kWidth; ++at) {
    const int row = at / kWidth, expert = static_cast<int>(own.data<std::uint32_t>()[row]);
    const float* const weights = wide.data<float>() + (expert * kWidth + at % kWidth) * kHidden;
    double exact = 0, size = 0;
    for (int k = 0; k < kHidden; ++k) {
      const double term = static_cast<double>(inputs.data<float>()[row / 2 * kHidden + k]) * weights[k];
      exact += term;
      size += std::abs(term);
    }
    const double sum = 2 * (kHidden - 1) * 0x1p-24 * size;
    const double error = std::abs(y.data<float>()[at] - exact);
    ASSERT_LE(error, half_unit * (std::abs(exact) + sum) + sum)
        << "row " << row << ", column " << at % kWidth;
    inexact += error > 0.1 * half_unit * std::abs(exact);
  }
  EXPECT_GT(inexact, tokens * kWidth / 2);  // the bound is in use
}

TEST(SwitchLinear, ANarrowProductIsHalfAUnitAndAnF32SumFromTheExactOne) {
  for (const int tokens : {2, 9}) {  // fewer chosen experts than there are, and more
    expect_rounded_once(mx::bfloat16, 0x1p-8, tokens);
    expect_rounded_once(mx::float16, 0x1p-11, tokens);
  }
}

TEST(SwitchLinear, QuantizedExpertsAreOneGatheredProduct) {
  const mx::array stack = random_array({kExperts, kWidth, kHidden}, 5, mx::bfloat16);
  const mx::array x = mx::expand_dims(random_array({5, kHidden}, 6, mx::bfloat16), {-2, -3});
  const mx::array chosen = random_choice(5, 2, 7);
  for (const std::string mode : {"affine", "mxfp4"}) {
    const std::vector<mx::array> q = mx::quantize(stack, 32, 4, mode);
    Tensors tensors = {{"e.weight", q[0]}, {"e.scales", q[1]}};
    if (q.size() > 2) tensors.emplace("e.biases", q[2]);
    const SwitchLinear layer(scope_of(tensors), {.stacked = "e"}, kExperts, kHidden, kWidth);
    const std::optional<mx::array> biases = q.size() > 2 ? std::optional(q[2]) : std::nullopt;
    EXPECT_TRUE(same(layer(x, chosen, false),
                     mx::gather_qmm(x, q[0], q[1], biases, std::nullopt, chosen, true, 32, 4, mode)));
  }
}

Tensors glu_tensors(mx::Dtype dtype, unsigned seed) {
  return {{"switch_mlp.gate_proj.weight", random_array({kExperts, kWidth, kHidden}, seed, dtype)},
          {"switch_mlp.up_proj.weight", random_array({kExperts, kWidth, kHidden}, seed + 1, dtype)},
          {"switch_mlp.down_proj.weight", random_array({kExperts, kHidden, kWidth}, seed + 2, dtype)}};
}

SwitchGlu::Options glu_options() {
  return {.hidden = kHidden, .intermediate = kWidth, .experts = kExperts, .names = SwitchGlu::usual_names()};
}

TEST(SwitchGlu, ATokenGetsTheSameBitsInTheSortedPathAndInThePlainOne) {
  for (const mx::Dtype dtype : {mx::float32, mx::bfloat16}) {
    const SwitchGlu layer(scope_of(glu_tensors(dtype, 10)), glu_options());
    const mx::array x = random_array({40, kHidden}, 13, dtype),
                    chosen = random_choice(40, 2, 14);  // 80 indices
    const mx::array sorted = layer(x, chosen);
    ASSERT_EQ(sorted.shape(), mx::Shape({40, 2, kHidden}));
    EXPECT_EQ(sorted.dtype(), dtype);
    for (int t = 0; t < 40; ++t) {
      const mx::array plain =
          layer(mx::slice(x, {t, 0}, {t + 1, kHidden}), mx::slice(chosen, {t, 0}, {t + 1, 2}));
      EXPECT_TRUE(same(plain, mx::slice(sorted, {t, 0, 0}, {t + 1, 2, kHidden}))) << "token " << t;
    }
  }
}

std::vector<std::uint32_t> numbers(const mx::array& x) {
  mx::array own = mx::contiguous(x);
  own.eval();
  return {own.data<std::uint32_t>(), own.data<std::uint32_t>() + own.size()};
}

TEST(Routing, TheChosenComeInTheOrderOfArgpartitionAndNotSorted) {
  const Routing routing = {.experts = 32, .chosen = 8};
  const mx::array scores = random_array({50, 32}, 20);
  const std::vector<std::uint32_t> got = numbers(routed(routing, scores).experts);
  const std::vector<std::uint32_t> ranks = numbers(mx::argsort(mx::softmax(scores, -1, true), -1));
  int unsorted = 0;
  for (int t = 0; t < 50; ++t) {
    const std::vector<std::uint32_t> row(got.begin() + t * 8, got.begin() + t * 8 + 8);
    const std::vector<std::uint32_t> best(ranks.begin() + t * 32 + 24, ranks.begin() + t * 32 + 32);
    EXPECT_EQ(std::set(row.begin(), row.end()), std::set(best.begin(), best.end())) << "token " << t;
    unsorted += row != best;
  }
  // A sort would sum in another order: the two must be told apart by these inputs.
  EXPECT_GT(unsorted, 10);
}

TEST(Routing, BothChoicesFindTheSameExperts) {
  const mx::array scores = random_array({50, 32}, 21);
  const auto sorted_rows = [&](Routing::Choice choice) {
    const Routing routing = {.experts = 32, .chosen = 5, .choice = choice};
    return mx::sort(routed(routing, scores).experts, -1);
  };
  EXPECT_TRUE(same(sorted_rows(Routing::Choice::last), sorted_rows(Routing::Choice::first_negated)));
}

TEST(Routing, ThePreciseSoftmaxRoundsOnceAndTheOtherOneDoesNot) {
  const mx::array scores =
      random_array({50, 32}, 22, mx::bfloat16) * scalar_like(3, mx::array(0, mx::bfloat16));
  const Routing precise = {.experts = 32, .chosen = 32},
                plain = {.experts = 32, .chosen = 32, .is_precise = false};
  const auto all = [&](const Routing& routing) {
    const Routed choice = routed(routing, scores);
    const mx::array order = mx::argsort(choice.experts, -1);
    return mx::take_along_axis(choice.weights, order, -1);
  };
  const mx::array wide = mx::softmax(mx::astype(scores, mx::float32), -1);
  EXPECT_TRUE(same(all(precise), mx::astype(wide, mx::bfloat16)));
  EXPECT_EQ(all(plain).dtype(), mx::bfloat16);
}

TEST(Routing, WeightsOfTheChosenSumToOneWhereASoftmaxOrADivisionSaysSo) {
  const mx::array scores = random_array({20, 16}, 23);
  for (const Routing& routing :
       {Routing{.experts = 16, .chosen = 4, .is_renormalized = true},
        Routing{.experts = 16, .chosen = 4, .softmax = Routing::Softmax::over_chosen, .is_precise = false}}) {
    const mx::array sums = mx::sum(routed(routing, scores).weights, -1);
    // Four divisions and three additions, each half an ulp of at most 1.
    EXPECT_LT(mx::max(mx::abs(sums - mx::array(1.0f))).item<float>(), 8 * 0x1p-24f);
  }
  const mx::array plain = mx::sum(routed({.experts = 16, .chosen = 4}, scores).weights, -1);
  EXPECT_LT(mx::max(plain).item<float>(), 0.999f);
}

TEST(Router, MultipliesWeightsByTheScaleOfEachExpert) {
  const mx::array projection = random_array({16, kHidden}, 24), scale = random_array({16}, 25);
  const mx::array x = random_array({7, kHidden}, 26);
  Router::Options options = {
      .hidden = kHidden, .routing = {.experts = 16, .chosen = 3}, .projection = "proj"};
  const auto scope = scope_of({{"proj.weight", projection}, {"per_expert_scale", scale}});
  const Routed plain = Router(scope, options)(x);
  options.has_expert_scale = true;
  const Routed scaled = Router(scope, options)(x);
  EXPECT_TRUE(same(scaled.experts, plain.experts));
  EXPECT_TRUE(same(scaled.weights, plain.weights * mx::take(scale, plain.experts, 0)));
  options.routing.chosen = 17;
  EXPECT_THROW(Router(scope, options), Error);
}

TEST(SparseMlp, AddsTheGatedSharedExpertAfterTheRoutedSum) {
  Tensors tensors = glu_tensors(mx::float32, 30);
  tensors.emplace("gate.weight", random_array({kExperts, kHidden}, 33));
  tensors.emplace("shared_expert.gate_proj.weight", random_array({48, kHidden}, 34));
  tensors.emplace("shared_expert.up_proj.weight", random_array({48, kHidden}, 35));
  tensors.emplace("shared_expert.down_proj.weight", random_array({kHidden, 48}, 36));
  tensors.emplace("shared_expert_gate.weight", random_array({1, kHidden}, 37));
  SparseMlp::Options options = {.router = {.hidden = kHidden, .routing = {.experts = kExperts, .chosen = 3}},
                                .experts = glu_options()};
  const WeightScope scope = scope_of(tensors);
  const mx::array x = random_array({5, kHidden}, 38);
  const mx::array routed_only = SparseMlp(scope, options)(x);
  options.shared = Mlp::Options{.hidden = kHidden, .intermediate = 48};
  const mx::array whole = SparseMlp(scope, options)(x);
  EXPECT_NO_THROW(scope.store().audit());
  const mx::array share = mx::sigmoid(Linear(scope / "shared_expert_gate", kHidden, 1)(x)) *
                          Mlp(scope / "shared_expert", *options.shared)(x);
  EXPECT_TRUE(same(whole, routed_only + share));
  EXPECT_FALSE(same(whole, routed_only));
}

}  // namespace
}  // namespace godwit::nn
