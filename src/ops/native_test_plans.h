// One native node of every kind over small random plans, and the layers of a step for those that need them.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <string>

#include "kernels/kv_test_support.h"
#include "ops/composed_branches.h"
#include "ops/native_test_support.h"

namespace godwit::ops::native_test {

inline constexpr unsigned kSeed = 20261203;
inline constexpr int kHidden = 32, kWidth = 64, kHeads = 4, kKvHeads = 2, kDim = 16;
inline constexpr int kRowTokens[] = {4, 3}, kTokens = 7;

// Two rows without a past, of one layer of attention and one that is recurrent.
class StepState {
 public:
  explicit StepState(const kernels::Codec& codec = {"f32", {}, {}}, std::int64_t past = 0) : past_(past) {
    for (const int tokens : kRowTokens) {
      rows_.push_back(
          std::make_unique<kernels::Tokens>(kernels::TokenShape{kKvHeads, kDim, kDim, past + tokens}, codec, kSeed));
      if (past > 0) rows_.back()->store(past);
      memories_.emplace_back(2 * kMost);
    }
    memory_.resize(kMost);
  }

  // For one more step from the same beginning.
  StepLayers layers(std::int64_t window = 0) {
    kv_ = std::vector<KvLayer>(1);
    kv_[0].window = window;
    delta_ = std::vector<DeltaLayer>(1);
    delta_[0].state_size = kMost;
    delta_[0].tail_size = 3 * 128;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      kernels::Tokens& row = *rows_[i];
      kv_[0].rows.push_back({row.blocks.data(), row.keys, row.values, past_, kRowTokens[i], {}});
      const float* const before = past_ > 0 ? memory_.data() : nullptr;
      delta_[0].rows.push_back({{before, before, memories_[i].data(), memories_[i].data() + kMost}, kRowTokens[i]});
    }
    return {kv_, delta_};
  }

 private:
  static constexpr std::size_t kMost = 4 * kDim * kDim;
  std::int64_t past_;
  std::vector<std::unique_ptr<kernels::Tokens>> rows_;
  std::vector<float> memory_;
  std::vector<std::vector<float>> memories_;
  std::vector<KvLayer> kv_;
  std::vector<DeltaLayer> delta_;
};

struct NodeCase {
  std::string name;
  std::function<mx::array(const mx::array& x)> node;
  std::int64_t window = 0;
};

class Plans {
 public:
  explicit Plans(bool dense) : dense_(dense) {}

  std::vector<NodeCase> all() {
    std::vector<NodeCase> cases = {
        {"norm",
         [norm = std::make_shared<const NormPlan>(norm(kHidden))](const mx::array& x) { return native_norm(x, norm); }},
        {"linear", [layer = std::make_shared<const PackedLinear>(linear(kWidth, kHidden, true))](const mx::array& x) {
           return native_linear(x, layer);
         }}};
    for (const bool more : {false, true}) {
      const std::string name = more ? ", more" : "";
      cases.push_back({"mlp" + name, [plan = mlp(more)](const mx::array& x) { return mlp_branch(x, plan); }});
      cases.push_back({"attention" + name,
                       [plan = attention(more)](const mx::array& x) { return attention_branch(x, plan, 0); },
                       more ? 2 : 0});
      cases.push_back(
          {"delta" + name, [plan = delta(more)](const mx::array& x) { return gated_delta_branch(x, plan, 0); }});
    }
    for (const bool over_chosen : {false, true})
      for (const bool renormalized : {false, true})
        cases.push_back({"experts", [plan = experts(over_chosen, renormalized)](const mx::array& x) {
                           return mlp_branch(x, plan);
                         }});
    return cases;
  }

 private:
  NormPlan norm(std::int64_t n) { return {normals(random_, n, 1), 1e-6f}; }
  std::shared_ptr<const PackedMatrix> matrix(std::int64_t rows, std::int64_t columns) {
    return random_matrix(random_, pool_, dense_, rows, columns);
  }
  PackedLinear linear(std::int64_t rows, std::int64_t columns, bool has_bias = false) {
    return {matrix(rows, columns), has_bias ? normals(random_, rows, 1) : std::vector<float>()};
  }
  std::shared_ptr<const MlpPlan> mlp(bool more) {
    auto plan = std::make_shared<MlpPlan>();
    *plan = {more ? kernels::Activation::gelu_tanh : kernels::Activation::silu,
             norm(kHidden),
             linear(kWidth, kHidden),
             linear(kWidth, kHidden),
             linear(kHidden, kWidth, more),
             {}};
    if (more) plan->after = norm(kHidden);
    return plan;
  }
  std::shared_ptr<const AttentionPlan> attention(bool more) {
    auto plan = std::make_shared<AttentionPlan>();
    plan->heads = kHeads;
    plan->kv_heads = kKvHeads;
    plan->head_dim = kDim;
    plan->scale = 0.2f;
    plan->before = norm(kHidden);
    plan->is_gated = more;
    plan->q = linear(kHeads * kDim * (more ? 2 : 1), kHidden, !more);
    plan->k = linear(kKvHeads * kDim, kHidden, !more);
    plan->v = linear(kKvHeads * kDim, kHidden, !more);
    plan->o = linear(kHidden, kHeads * kDim);
    plan->rope = RopePlan{more ? kDim / 2 : kDim, {}};
    for (std::int64_t i = 0; i < plan->rope->dims / 2; ++i) plan->rope->inverse_frequencies.push_back(std::pow(0.7, i));
    if (more) plan->q_norm = norm(kDim), plan->k_norm = norm(kDim), plan->after = norm(kHidden);
    return plan;
  }
  std::shared_ptr<const GatedDeltaPlan> delta(bool more) {
    const GatedDeltaSizes sizes{
        .key_heads = 2, .value_heads = 4, .key_dim = kDim, .value_dim = kDim, .kernel = 4, .has_tiled_values = !more};
    const auto weights = std::make_shared<const GatedDeltaWeights>(
        GatedDeltaWeights{sizes, normals(random_, sizes.channels() * sizes.kernel, 0.5f), normals(random_, 4, 0.5f),
                          normals(random_, 4, 0.5f)});
    auto plan = std::make_shared<GatedDeltaPlan>();
    plan->weights = weights;
    plan->before = norm(kHidden);
    plan->mixed = linear(sizes.channels() + (more ? sizes.value_channels() : 0), kHidden);
    if (!more) plan->z = linear(sizes.value_channels(), kHidden);
    plan->decay = normals(random_, 4 * kHidden, 0.15f);
    plan->update = normals(random_, 4 * kHidden, 0.15f);
    plan->norm = norm(kDim);
    plan->out = linear(kHidden, sizes.value_channels());
    if (more) plan->after = norm(kHidden);
    return plan;
  }
  std::shared_ptr<const SparseMlpPlan> experts(bool over_chosen, bool renormalized) {
    const auto network = [&](std::int64_t width) {
      return GatedMatrices{matrix(width, kHidden), matrix(width, kHidden), matrix(kHidden, width)};
    };
    auto plan = std::make_shared<SparseMlpPlan>();
    plan->before = norm(kHidden);
    plan->router = {.experts = 5,
                    .chosen = 2,
                    .weights = normals(random_, 5 * kHidden, 0.15f),
                    .softmax_over_chosen = over_chosen,
                    .is_renormalized = renormalized};
    for (int e = 0; e < 5; ++e) plan->experts.push_back(network(kWidth));
    if (over_chosen) plan->shared = SharedExpert{network(32), normals(random_, kHidden, 0.3f)};
    if (renormalized) plan->after = norm(kHidden);
    return plan;
  }

  bool dense_;
  std::mt19937 random_{kSeed};
  ThreadPool pool_{1};
};

}  // namespace godwit::ops::native_test
