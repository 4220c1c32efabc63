// The sparse network in native mode: the composed operations over the same values are its oracle, and what
// the primitive lacks is refused by name.
#include <gtest/gtest.h>
#include <mlx/io.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <unordered_map>

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/weight_store.h"
#include "nn/branch.h"
#include "nn/sparse_mlp.h"
#include "ops/executor.h"
#include "support/random_array.h"

namespace godwit::nn {
namespace {

using checkpoint::WeightScope;
using checkpoint::WeightStore;
using Tensors = std::unordered_map<std::string, mx::array>;

constexpr unsigned kSeed = 20261202;
constexpr int kExperts = 6, kHidden = 64, kWidth = 32, kShared = 96;

mx::array random_array(const mx::Shape& shape, unsigned seed, float spread = 1) {
  return testing_support::random_array(shape, kSeed + seed, spread, mx::bfloat16);
}

// All in bf16, or the same values in f32.
Tensors sparse_tensors(bool is_wide) {
  Tensors tensors = {{"norm.weight", random_array({kHidden}, 1)},
                     {"after.weight", random_array({kHidden}, 2)},
                     {"gate.weight", random_array({kExperts, kHidden}, 3, 0.2f)},
                     {"switch_mlp.gate_proj.weight", random_array({kExperts, kWidth, kHidden}, 4, 0.2f)},
                     {"switch_mlp.up_proj.weight", random_array({kExperts, kWidth, kHidden}, 5, 0.2f)},
                     {"switch_mlp.down_proj.weight", random_array({kExperts, kHidden, kWidth}, 6, 0.2f)},
                     {"shared_expert.gate_proj.weight", random_array({kShared, kHidden}, 7, 0.2f)},
                     {"shared_expert.up_proj.weight", random_array({kShared, kHidden}, 8, 0.2f)},
                     {"shared_expert.down_proj.weight", random_array({kHidden, kShared}, 9, 0.2f)},
                     {"shared_expert_gate.weight", random_array({1, kHidden}, 10, 0.2f)}};
  if (is_wide)
    for (auto& [name, tensor] : tensors) tensor = mx::astype(tensor, mx::float32);
  return tensors;
}

WeightScope scope_of(const Tensors& tensors, ThreadPool* pool) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("godwit_native_experts_" + std::to_string(::getpid()) + ".safetensors");
  mx::save_safetensors(path.string(), tensors);
  auto entries = checkpoint::read_safetensors(std::make_shared<const FileMap>(path));
  std::filesystem::remove(path);  // mapped already
  auto store =
      std::make_shared<WeightStore>(std::move(entries), checkpoint::QuantizationMap(), path.string());
  if (pool) store->pack_with(*pool);
  return {store, ""};
}

SparseMlp::Options options_of(bool shares) {
  SparseMlp::Options options = {
      .router = {.hidden = kHidden, .routing = {.experts = kExperts, .chosen = 3}},
      .experts = {
          .hidden = kHidden, .intermediate = kWidth, .experts = kExperts, .names = SwitchGlu::usual_names()}};
  if (shares) options.shared = Mlp::Options{.hidden = kHidden, .intermediate = kShared};
  return options;
}

FeedForwardBranch branch_of(const WeightScope& scope, const SparseMlp::Options& options, bool has_after) {
  const NormOptions norm = {.dims = kHidden, .eps = 1e-6};
  BranchNorms norms = {.before = Norm(scope / "norm", norm)};
  if (has_after) norms.after = Norm(scope / "after", norm);
  return {std::move(norms), std::make_unique<const SparseMlp>(scope, options)};
}

// Of numbers of 16 bits nothing is rounded but f32 sums. A chain makes eight of them or fewer in a row, over
// at most 96 terms with an error of 2^-24 for each; the stream beside the branch only shrinks their share.
void expect_near(const SparseMlp::Options& options, bool has_after) {
  ops::NativeRuntime runtime(kernels::best_level(), 2);
  ops::Executor executor(runtime);
  const WeightScope native = scope_of(sparse_tensors(false), &runtime.pool),
                    wide = scope_of(sparse_tensors(true), nullptr);
  mx::array x = mx::astype(random_array({70, kHidden}, 11), mx::float32);
  x.eval();
  const auto got = executor.run(branch_of(native, options, has_after)(x));
  mx::array want = mx::contiguous(branch_of(wide, options, has_after)(x));
  want.eval();
  double error = 0, squares = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    error += std::pow(double{got[i]} - want.data<float>()[i], 2);
    squares += std::pow(double{want.data<float>()[i]}, 2);
  }
  EXPECT_LT(std::sqrt(error / squares), 8 * 96 * 0x1p-24);
  EXPECT_GT(error, 0);  // equal bits would mean that one stood in for the other
}

TEST(NativeSparseMlp, IsTheComposedFormButForRounding) {
  for (const bool shares : {false, true})
    for (const bool is_renormalized : {false, true})
      for (const auto softmax : {Routing::Softmax::over_all, Routing::Softmax::over_chosen}) {
        SCOPED_TRACE(testing::Message() << shares << is_renormalized << static_cast<int>(softmax));
        SparseMlp::Options options = options_of(shares);
        options.router.routing.is_renormalized = is_renormalized;
        options.router.routing.softmax = softmax;
        expect_near(options, shares);
      }
  SparseMlp::Options gelu = options_of(true);
  gelu.experts.activation = gelu.shared->activation = Activation::gelu_approx;
  gelu.router.routing.choice = Routing::Choice::first_negated;
  expect_near(gelu, false);
}

// Two experts with one row of the router: each choice takes the one that it takes in the composed form.
TEST(NativeSparseMlp, BetweenEqualScoresTheChoiceIsThatOfTheComposedForm) {
  ThreadPool pool(1);
  Tensors tensors = sparse_tensors(false);
  const mx::array row = random_array({1, kHidden}, 12);
  tensors.insert_or_assign("gate.weight", mx::repeat(row, kExperts, 0));
  const WeightScope scope = scope_of(tensors, &pool), wide = scope_of(tensors, nullptr);
  const mx::array x = random_array({4, kHidden}, 13);
  for (const auto choice : {Routing::Choice::last, Routing::Choice::first_negated}) {
    Router::Options options = options_of(false).router;
    options.routing.choice = choice;
    const ops::RouterPlan plan = Router(scope, options).plan();
    std::vector<float> scores(kExperts, 0.5f);
    std::vector<std::int32_t> chosen(3), work(kExperts);
    ops::choose_experts(scores, plan.ties, chosen, work);
    mx::array experts = mx::contiguous(mx::astype(mx::sort(Router(wide, options)(x).experts, -1), mx::int32));
    experts.eval();
    for (int token = 0; token < 4; ++token)
      EXPECT_EQ(std::vector<std::int32_t>(experts.data<std::int32_t>() + 3 * token,
                                          experts.data<std::int32_t>() + 3 * token + 3),
                chosen);
  }
}

TEST(NativeSparseMlp, WhatThePrimitiveLacksIsRefusedByName) {
  ThreadPool pool(1);
  Tensors tensors = sparse_tensors(false);
  tensors.emplace("gate.bias", random_array({kExperts}, 14));
  tensors.emplace("per_expert_scale", random_array({kExperts}, 15));
  for (const char* part : {"gate_proj", "up_proj", "down_proj"}) {
    const int rows = std::string(part) == "down_proj" ? kHidden : kWidth;
    tensors.emplace(std::string("switch_mlp.") + part + ".bias", random_array({kExperts, rows}, 16));
  }
  const WeightScope scope = scope_of(tensors, &pool);
  const auto message = [&](auto change) {
    SparseMlp::Options options = options_of(true);
    change(options);
    try {
      branch_of(scope, options, false);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      return std::string(error.what());
    }
    return std::string("built");
  };
  EXPECT_EQ(message([](SparseMlp::Options&) {}), "built");
  EXPECT_NE(message([](auto& o) { o.router.has_bias = true; }).find("router with a bias"), std::string::npos);
  EXPECT_NE(message([](auto& o) { o.router.has_expert_scale = true; }).find("scale of each expert"),
            std::string::npos);
  EXPECT_NE(message([](auto& o) { o.experts.bias = true; }).find("experts with biases"), std::string::npos);
  EXPECT_NE(message([](auto& o) { o.experts.activation = Activation::relu2; }).find("relu2"),
            std::string::npos);
  EXPECT_NE(
      message([](auto& o) { o.shared->activation = Activation::gelu_approx; }).find("activation of its own"),
      std::string::npos);
}

// A file that lacks parts reaches the audit, which lists them.
TEST(NativeSparseMlp, MissingPartsAreLeftToTheAudit) {
  ThreadPool pool(1);
  for (const char* name : {"gate.weight", "switch_mlp.up_proj.weight", "shared_expert.gate_proj.weight",
                           "shared_expert_gate.weight"}) {
    Tensors tensors = sparse_tensors(false);
    tensors.erase(name);
    const WeightScope scope = scope_of(tensors, &pool);
    EXPECT_NO_THROW(branch_of(scope, options_of(true), true)) << name;
    try {
      scope.store().audit();
      ADD_FAILURE() << name << " was not missed";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace godwit::nn
