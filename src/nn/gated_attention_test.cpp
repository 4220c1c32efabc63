// The gate of attention: its values lie beside the query of each head, not behind all queries.
#include "base/error.h"
#include "kernels/select.h"
#include "nn/attention.h"
#include "nn/native_test_support.h"
#include "support/random_array.h"

namespace godwit::nn {
namespace {

constexpr int kHidden = 8, kHeads = 2, kDim = 16;

mx::array waves(const mx::Shape& shape, float step) {
  int count = 1;
  for (const int size : shape) count *= size;
  return mx::reshape(mx::sin(mx::arange(1.0, 1.0 + count, mx::float32) * mx::array(step)), shape);
}

Attention::Options options(QkvPacking packing) {
  Attention::Options o;
  o.hidden = kHidden;
  o.heads = kHeads;
  o.kv_heads = 1;
  o.head_dim = kDim;
  o.scale = 0.25;
  o.packing = packing;
  return o;
}

mx::array answer(const checkpoint::WeightScope& scope, QkvPacking packing) {
  const Attention attention(scope, options(packing), std::nullopt);
  scope.store().audit();
  cache::LayerNeed need;
  need.kv_heads = 1;
  need.key_dim = need.value_dim = kDim;
  const cache::StateStore states({need}, {}, NumericMode::reference);
  cache::Row row = states.create();
  const cache::RowSpan span{&row, 5};
  cache::Step step = states.plan({&span, 1});
  mx::array out = attention(waves({5, kHidden}, 0.3f), step, step.layer(0));
  std::vector<mx::array> outputs = step.pending();
  outputs.push_back(out);
  mx::eval(outputs);
  return out;
}

TEST(GatedAttention, TheGateIsTheSecondHalfOfEachHead) {
  const mx::array queries = waves({kHeads, kDim, kHidden}, 0.7f),
                  gates = waves({kHeads, kDim, kHidden}, 0.11f);
  const mx::array keys = waves({kDim, kHidden}, 0.5f), values = waves({kDim, kHidden}, 0.9f);
  const mx::array output = waves({kHidden, kHeads * kDim}, 0.2f);
  const auto flat = [](const mx::array& x) { return mx::reshape(x, {-1, kHidden}); };
  const auto gated = scope_of({{"q_proj.weight", mx::contiguous(flat(mx::concatenate({queries, gates}, 1)))},
                               {"k_proj.weight", keys},
                               {"v_proj.weight", values},
                               {"o_proj.weight", output}});
  // By hand: attention without a gate and without a projection of its output, then both.
  const mx::array x = waves({5, kHidden}, 0.3f);
  const mx::array gate = mx::sigmoid(mx::matmul(x, mx::transpose(flat(gates))));
  std::vector<mx::array> parts;
  for (int part = 0; part < kHeads * kDim; part += kHidden) {  // o_proj gives kHidden elements at a time
    const auto some = scope_of(
        {{"q_proj.weight", flat(queries)},
         {"k_proj.weight", keys},
         {"v_proj.weight", values},
         {"o_proj.weight",
          mx::contiguous(mx::slice(mx::eye(kHeads * kDim), {part, 0}, {part + kHidden, kHeads * kDim}))}});
    parts.push_back(answer(some, QkvPacking::separate));
  }
  const mx::array ungated = mx::concatenate(parts, -1);
  const mx::array wanted = mx::matmul(ungated * gate, mx::transpose(output));
  const mx::array off = mx::abs(answer(gated, QkvPacking::gated) - wanted);
  // Equal but for the order of the sums: 32 products of sizes below 1, in f32.
  EXPECT_LT(mx::max(off).item<float>(), 32 * 32 * 0x1p-24f);
  const auto halves = scope_of({{"q_proj.weight", mx::contiguous(flat(mx::concatenate({queries, gates}, 0)))},
                                {"k_proj.weight", keys},
                                {"v_proj.weight", values},
                                {"o_proj.weight", output}});
  EXPECT_GT(mx::max(mx::abs(answer(halves, QkvPacking::gated) - wanted)).item<float>(), 0.01f);
}

// Of numbers of 16 bits nothing is rounded but f32 sums: eight in a row or fewer, over at most 64 terms with an error of
// 2^-24 for each.
TEST(GatedAttention, TheFusedFormIsTheComposedOneButForRounding) {
  constexpr int kWide = 64, kTokens = 9;
  Attention::Options o = options(QkvPacking::gated);
  o.hidden = kWide;
  o.heads = 4;
  o.kv_heads = 2;
  o.qkv_bias = true;
  o.qk_norm = HeadNormOptions{.eps = 1e-6};
  Rope::Options rope;
  rope.dims = 4;  // of 16
  const auto random = [](const mx::Shape& shape, unsigned seed) {
    return testing_support::random_array(shape, 20261201 + seed, 0.3f);
  };
  std::unordered_map<std::string, mx::array> tensors = {{"before.weight", random({kWide}, 1)},
                                                        {"q_norm.weight", random({kDim}, 2)},
                                                        {"k_norm.weight", random({kDim}, 3)},
                                                        {"q_proj.weight", random({2 * 4 * kDim, kWide}, 4)},
                                                        {"q_proj.bias", random({2 * 4 * kDim}, 5)},
                                                        {"k_proj.weight", random({2 * kDim, kWide}, 6)},
                                                        {"k_proj.bias", random({2 * kDim}, 7)},
                                                        {"v_proj.weight", random({2 * kDim, kWide}, 8)},
                                                        {"v_proj.bias", random({2 * kDim}, 9)},
                                                        {"o_proj.weight", random({kWide, 4 * kDim}, 10)}};
  const auto branch = [&](const checkpoint::WeightScope& scope) {
    return MixerBranch({.before = Norm(scope / "before", {.dims = kWide, .eps = 1e-6})},
                       std::make_unique<const Attention>(scope, o, Rope(rope)));
  };
  cache::LayerNeed need;
  need.kv_heads = 2;
  need.key_dim = need.value_dim = kDim;
  ops::NativeRuntime runtime(kernels::best_level(), 2);
  const mx::array x = random({kTokens, kWide}, 11);
  const auto scope = scope_of(with_matrices_in(mx::bfloat16, tensors), &runtime.pool);
  const auto want = through(branch(scope_of(with_matrices_in(mx::float32, tensors))), need, x, {kTokens});
  const auto got = through(branch(scope), need, x, {5, 1, 3}, &runtime);
  EXPECT_LT(relative_error(got, want), 8 * 64 * 0x1p-24);
  EXPECT_NE(got, want) << "equal bits would mean that one stood in for the other";
  EXPECT_EQ(through(branch(scope), need, x, {kTokens}, &runtime), got);
}

TEST(GatedAttention, NativeModeHasNoPackedProjection) {
  ThreadPool pool(1);
  const auto scope = scope_of({{"qkv_proj.weight", mx::zeros({4 * kDim, kHidden})}}, &pool);
  try {
    const Attention attention(scope / "layer", options(QkvPacking::stacked), std::nullopt);
    ADD_FAILURE() << "native mode took it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("qkv_proj"), std::string::npos);
  }
}

}  // namespace
}  // namespace godwit::nn
