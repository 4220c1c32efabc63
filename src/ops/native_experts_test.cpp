// The step of a layer of experts: what a row chooses, which rows share an expert, and that nothing of a row's
// answer depends on the rows beside it, on threads or on the level.
#include "ops/native_experts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <numeric>
#include <random>

#include "base/error.h"
#include "kernels/select.h"
#include "ops/executor.h"
#include "ops/native_test_support.h"

namespace godwit::ops {
namespace {

using Indices = std::vector<std::int32_t>;
using native_test::normals;
using native_test::random_matrix;

Indices chosen_of(const std::vector<float>& scores, std::size_t count, Ties ties) {
  Indices chosen(count), work(scores.size());
  choose_experts(scores, ties, chosen, work);
  return chosen;
}

TEST(ChooseExperts, TakesTheLargestAndBetweenEqualOnesTheIndexThatIsAskedFor) {
  EXPECT_EQ(chosen_of({1, 5, 2, 5, 5, 0}, 2, Ties::lower_index), (Indices{1, 3}));
  EXPECT_EQ(chosen_of({1, 5, 2, 5, 5, 0}, 2, Ties::higher_index), (Indices{3, 4}));
  EXPECT_EQ(chosen_of({0.0f, -0.0f, -1}, 1, Ties::lower_index), (Indices{0}));
  EXPECT_EQ(chosen_of({3, 1, 2}, 3, Ties::higher_index), (Indices{0, 1, 2}));
}

TEST(ChooseExperts, ANumberThatIsNoneIsChosenAndNotPassedOver) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(chosen_of({1, nan, inf, 2}, 1, Ties::lower_index), (Indices{1}));
  EXPECT_EQ(chosen_of({nan, nan, nan, 2}, 2, Ties::higher_index), (Indices{1, 2}));
  EXPECT_EQ(chosen_of({-inf, -inf, 1}, 2, Ties::lower_index), (Indices{0, 2}));
}

TEST(ChooseExperts, IsTheHeadOfASortForRandomScoresFullOfTies) {
  const unsigned seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  for (int round = 0; round < 500; ++round) {
    std::vector<float> scores(1 + random() % 70);
    for (float& score : scores) score = static_cast<float>(random() % 5);
    const std::size_t count = 1 + random() % scores.size();
    for (const Ties ties : {Ties::lower_index, Ties::higher_index}) {
      Indices sorted(scores.size());
      std::iota(sorted.begin(), sorted.end(), 0);
      if (ties == Ties::higher_index) std::ranges::reverse(sorted);
      std::ranges::stable_sort(sorted, std::greater(),
                               [&](std::int32_t e) { return scores[static_cast<std::size_t>(e)]; });
      sorted.resize(count);
      std::ranges::sort(sorted);
      ASSERT_EQ(chosen_of(scores, count, ties), sorted) << "seed " << seed << ", round " << round;
    }
  }
}

TEST(GroupByExpert, EveryPlaceHoldsARowThatChoseItsExpertAndRowsAscend) {
  const unsigned seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  Scratch scratch;
  for (int round = 0; round < 200; ++round) {
    scratch.reset();
    const auto experts = static_cast<std::int32_t>(1 + random() % 9);
    const auto chosen = static_cast<std::int64_t>(1 + random() % static_cast<unsigned>(experts));
    const auto rows = static_cast<std::int64_t>(1 + random() % 40);
    Indices choice;
    for (std::int64_t row = 0; row < rows; ++row) {
      Indices all(static_cast<std::size_t>(experts));
      std::iota(all.begin(), all.end(), 0);
      std::ranges::shuffle(all, random);
      choice.insert(choice.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
    const ExpertGroups groups = group_by_expert(scratch, choice, chosen, experts);
    ASSERT_EQ(groups.begins.front(), 0);
    ASSERT_EQ(groups.begins.back(), static_cast<std::int32_t>(choice.size()));
    for (std::size_t i = 0; i < choice.size(); ++i) {
      const auto place = static_cast<std::size_t>(groups.places[i]),
                 expert = static_cast<std::size_t>(choice[i]);
      ASSERT_EQ(groups.rows[place], static_cast<std::int64_t>(i) / chosen) << "seed " << seed;
      ASSERT_TRUE(groups.begins[expert] <= groups.places[i] && groups.places[i] < groups.begins[expert + 1]);
    }
    for (std::int64_t e = 0; e < experts; ++e)
      for (std::int32_t p = groups.begins[static_cast<std::size_t>(e)] + 1;
           p < groups.begins[static_cast<std::size_t>(e) + 1]; ++p)
        ASSERT_LT(groups.rows[static_cast<std::size_t>(p) - 1], groups.rows[static_cast<std::size_t>(p)]);
  }
}

constexpr std::int64_t kHidden = 64, kWidth = 96, kSharedWidth = 32, kExperts = 9, kChosen = 3;

struct Form {
  bool dense, shared, after, over_chosen, renormalized;
};
// A norm behind the sum hides its scale, so that forms without one are there with every kind of shares.
constexpr Form kForms[] = {{false, false, false, false, true}, {false, true, false, false, false},
                           {true, true, true, true, false},    {true, false, false, false, true},
                           {true, true, false, false, false},  {true, false, false, true, false}};

std::shared_ptr<const SparseMlpPlan> random_plan(const Form& form, std::mt19937& random, ThreadPool& pool) {
  const auto network = [&](std::int64_t width) {
    return GatedMatrices{random_matrix(random, pool, form.dense, width, kHidden),
                         random_matrix(random, pool, form.dense, width, kHidden),
                         random_matrix(random, pool, form.dense, kHidden, width)};
  };
  auto plan = std::make_shared<SparseMlpPlan>();
  plan->before = {normals(random, kHidden, 1), 1e-6f};
  plan->router = {.experts = kExperts,
                  .chosen = kChosen,
                  .weights = normals(random, kExperts * kHidden, 0.15f),
                  .softmax_over_chosen = form.over_chosen,
                  .is_renormalized = form.renormalized};
  for (std::int64_t e = 0; e < kExperts; ++e) plan->experts.push_back(network(kWidth));
  if (form.shared) plan->shared = SharedExpert{network(kSharedWidth), normals(random, kHidden, 0.3f)};
  if (form.after) plan->after = NormPlan{normals(random, kHidden, 1), 1e-6f};
  return plan;
}

std::vector<float> run(NativeRuntime& runtime, const std::shared_ptr<const SparseMlpPlan>& plan,
                       const std::vector<float>& x) {
  Executor executor(runtime);
  const int rows = static_cast<int>(x.size()) / static_cast<int>(kHidden);
  const auto y = executor.run(mlp_branch(mx::array(x.begin(), {rows, static_cast<int>(kHidden)}), plan));
  return {y.begin(), y.end()};
}

std::vector<float> row_of(const std::vector<float>& x, std::int64_t row, std::int64_t n) {
  return {x.begin() + row * n, x.begin() + (row + 1) * n};
}

std::string text_of(const Form& form) {
  return std::string(form.dense ? "bf16" : "q8_0") + (form.shared ? ", shared" : "") +
         (form.after ? ", after" : "");
}

// More rows than go through at once, so that rows of two parts and of one are among them.
TEST(NativeExperts, ARowHasTheBitsItHasAloneOnAnyThreadsAndLevel) {
  const unsigned seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  for (const Form& form : kForms) {
    SCOPED_TRACE(text_of(form) + ", seed " + std::to_string(seed));
    std::mt19937 random(seed);
    NativeRuntime one(kernels::best_level(), 1);
    const auto plan = random_plan(form, random, one.pool);
    const std::vector<float> x = normals(random, 530 * kHidden, 1);
    const std::vector<float> together = run(one, plan, x);
    for (std::int64_t row = 0; row < 530; row += row < 520 ? 13 : 1)
      ASSERT_EQ(run(one, plan, row_of(x, row, kHidden)), row_of(together, row, kHidden)) << "row " << row;
    // Few rows: an expert then has one of them, or none.
    for (std::int64_t begin = 0; begin < 60; begin += 5) {
      const std::vector<float> few(x.begin() + begin * kHidden, x.begin() + (begin + 5) * kHidden);
      ASSERT_EQ(run(one, plan, few), std::vector<float>(together.begin() + begin * kHidden,
                                                        together.begin() + (begin + 5) * kHidden))
          << "rows from " << begin;
    }
    const std::vector<float> some(x.begin(), x.begin() + 60 * kHidden),
        wanted(together.begin(), together.begin() + 60 * kHidden);
    for (const kernels::Level level : kernels::runnable_levels())
      for (const int threads : {1, 3}) {
        NativeRuntime runtime(level, threads);
        EXPECT_EQ(run(runtime, plan, some), wanted)
            << kernels::level_name(level) << ", " << threads << " threads";
      }
  }
}

// y = W x of one packed matrix in double, over its exact values.
std::vector<double> exact_product(const PackedMatrix& matrix, const std::vector<double>& x) {
  const kernels::PackedShape& shape = matrix.shape();
  std::vector<double> y;
  std::vector<float> row(static_cast<std::size_t>(shape.columns));
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    kernels::dequant_packed_row(shape, matrix.data(), r, row.data());
    y.push_back(std::inner_product(x.begin(), x.end(), row.begin(), 0.0));
  }
  return y;
}

std::vector<double> exact_network(const GatedMatrices& network, const std::vector<double>& x) {
  std::vector<double> gate = exact_product(*network.gate, x);
  const std::vector<double> up = exact_product(*network.up, x);
  for (std::size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
  return exact_product(*network.down, gate);
}

std::vector<double> exact_norm(const NormPlan& norm, const std::vector<double>& x) {
  const double mean = std::inner_product(x.begin(), x.end(), x.begin(), 0.0) / static_cast<double>(x.size());
  std::vector<double> y;
  for (std::size_t i = 0; i < x.size(); ++i)
    y.push_back(x[i] / std::sqrt(mean + norm.epsilon) * norm.weight[i]);
  return y;
}

double exact_dot(const float* weights, const std::vector<double>& x) {
  return std::inner_product(x.begin(), x.end(), weights, 0.0);
}

// The share of each expert; 0 for those that are not chosen.
std::vector<double> exact_shares(const RouterPlan& router, const std::vector<double>& x) {
  std::vector<double> scores;
  for (std::int64_t e = 0; e < router.experts; ++e)
    scores.push_back(exact_dot(router.weights.data() + e * static_cast<std::int64_t>(x.size()), x));
  std::vector<double> sorted = scores;
  std::ranges::sort(sorted, std::greater());
  const double least = sorted[static_cast<std::size_t>(router.chosen) - 1];
  double all = 0, own = 0;
  for (const double score : scores) {
    all += std::exp(score);
    own += score >= least ? std::exp(score) : 0;
  }
  const bool over_own = router.softmax_over_chosen || router.is_renormalized;
  for (double& score : scores) score = score >= least ? std::exp(score) / (over_own ? own : all) : 0;
  return scores;
}

std::vector<double> exact_row(const SparseMlpPlan& plan, const std::vector<double>& x) {
  const std::vector<double> normed = exact_norm(plan.before, x);
  const std::vector<double> shares = exact_shares(plan.router, normed);
  std::vector<double> sum(x.size());
  const auto add = [&](const GatedMatrices& network, double share) {
    const std::vector<double> y = exact_network(network, normed);
    for (std::size_t i = 0; i < y.size(); ++i) sum[i] += share * y[i];
  };
  for (std::size_t e = 0; e < plan.experts.size(); ++e)
    if (shares[e] != 0) add(plan.experts[e], shares[e]);
  if (plan.shared)
    add(plan.shared->matrices, 1 / (1 + std::exp(-exact_dot(plan.shared->gate.data(), normed))));
  if (plan.after) sum = exact_norm(*plan.after, sum);
  for (std::size_t i = 0; i < x.size(); ++i) sum[i] += x[i];
  return sum;
}

// Numbers of 16 bits meet activations in f32: what is left is rounding. Each of three products in a row, the
// norms and the sums round at most 100 times in a chain (96 terms of a product), and a term is at most a few
// times the spread of the answer: 4 * 100 units of the largest element, of which chance uses a small part. A
// share, an expert or a sign that is wrong moves a row by a tenth of it.
TEST(NativeExperts, IsTheFormulaInDoubleButForRounding) {
  constexpr unsigned kSeed = 20261201;
  for (const Form& form : kForms) {
    if (!form.dense) continue;
    SCOPED_TRACE(text_of(form) + ", seed " + std::to_string(kSeed));
    std::mt19937 random(kSeed);
    NativeRuntime runtime(kernels::best_level(), 2);
    const auto plan = random_plan(form, random, runtime.pool);
    const std::vector<float> x = normals(random, 40 * kHidden, 1), y = run(runtime, plan, x);
    double worst = 0, largest = 0;
    for (std::int64_t row = 0; row < 40; ++row) {
      const std::vector<float> own = row_of(x, row, kHidden);
      const std::vector<double> exact = exact_row(*plan, {own.begin(), own.end()});
      for (std::size_t i = 0; i < exact.size(); ++i) {
        worst = std::max(worst, std::abs(exact[i] - y[static_cast<std::size_t>(row) * kHidden + i]));
        largest = std::max(largest, std::abs(exact[i]));
      }
    }
    EXPECT_LT(worst, 400 * 0x1p-24 * largest);
  }
}

// A NaN stays in its own row, and shows there.
TEST(NativeExperts, WhatIsNotFiniteStaysInItsRow) {
  std::mt19937 random(3);
  for (const Form& form : kForms) {
    NativeRuntime runtime(kernels::best_level(), 2);
    const auto plan = random_plan(form, random, runtime.pool);
    std::vector<float> x = normals(random, 5 * kHidden, 1);
    const std::vector<float> clean = run(runtime, plan, x);
    x[2 * kHidden + 7] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> y = run(runtime, plan, x);
    for (std::int64_t row = 0; row < 5; ++row) {
      const std::vector<float> own = row_of(y, row, kHidden);
      EXPECT_TRUE(row == 2 ? std::ranges::all_of(own, [](float v) { return std::isnan(v); })
                           : own == row_of(clean, row, kHidden))
          << row;
    }
  }
}

TEST(NativeExperts, AShortStepAfterALongOneTakesNoFurtherMemory) {
  std::mt19937 random(4);
  NativeRuntime runtime(kernels::best_level(), 1);
  const auto plan = random_plan(kForms[1], random, runtime.pool);
  const std::vector<float> x = normals(random, 100 * kHidden, 1);
  run(runtime, plan, x);
  run(runtime, plan, x);
  const std::size_t held = runtime.scratch.held_bytes();
  run(runtime, plan, row_of(x, 3, kHidden));
  run(runtime, plan, x);
  EXPECT_EQ(runtime.scratch.held_bytes(), held);
}

}  // namespace
}  // namespace godwit::ops
