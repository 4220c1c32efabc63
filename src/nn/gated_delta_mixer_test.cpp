// The gated delta mixer in the forms that files give it: one layer, written in each of them, answers with the
// same bits. What it computes is compared with mlx-lm in tests/oracle.
#include "nn/gated_delta_mixer.h"

#include "base/error.h"
#include "nn/gated_delta_test_support.h"
#include "nn/native_test_support.h"

namespace godwit::nn {
namespace {

using namespace delta_test;
using checkpoint::WeightScope;

// Two spans over one row: [tokens, hidden].
mx::array answer(const Tensors& tensors, const GatedDeltaMixer::Options& options) {
  const WeightScope scope = scope_of(tensors);
  const GatedDeltaMixer mixer(scope, options);
  scope.store().audit();
  cache::LayerNeed need;
  need.content = cache::Content::recurrent;
  need.recurrent = options.need();
  const cache::StateStore states({need}, {}, NumericMode::reference);
  cache::Row row = states.create();
  const mx::array x = random_array({9, kHidden}, 10);
  std::vector<mx::array> parts;
  for (const auto& [begin, end] : {std::pair(0, 5), std::pair(5, 9)}) {
    const cache::RowSpan span{&row, end - begin};
    cache::Step step = states.plan({&span, 1});
    parts.push_back(mixer(rows(x, begin, end), step, step.layer(0)));
    std::vector<mx::array> outputs = step.pending();
    outputs.push_back(parts.back());
    mx::eval(outputs);
    step.publish();
  }
  return mx::concatenate(parts, 0);
}

bool same(const mx::array& a, const mx::array& b) {
  return a.dtype() == b.dtype() && mx::array_equal(a, b).item<bool>();
}

TEST(GatedDeltaMixer, FlatAndGroupedProjectionsAnswerWithTheSameBits) {
  const mx::array flat = answer(flat_layer(), options());
  EXPECT_EQ(flat.shape(), mx::Shape({9, kHidden}));
  EXPECT_TRUE(same(answer(grouped_layer(), options()), flat));
}

TEST(GatedDeltaMixer, TheConvolutionMayHaveItsUnitAxisAnywhereOrNone) {
  const mx::array flat = answer(flat_layer(), options());
  Tensors layer = flat_layer();
  const mx::array conv = layer.at("conv1d.weight");
  layer.insert_or_assign("conv1d.weight", mx::contiguous(mx::swapaxes(conv, 1, 2)));
  EXPECT_TRUE(same(answer(layer, options()), flat));
  layer.insert_or_assign("conv1d.weight", mx::squeeze(conv, 2));
  EXPECT_TRUE(same(answer(layer, options()), flat));
}

TEST(GatedDeltaMixer, TiledValueHeadsAndARateComeBackToTheSameBits) {
  GatedDeltaMixer::Options tiled = options();
  tiled.has_tiled_values = tiled.a_log_is_rate = true;
  EXPECT_TRUE(same(answer(gguf_layer(), tiled), answer(flat_layer(), options())));
  EXPECT_FALSE(same(answer(gguf_layer(), options()), answer(flat_layer(), options())));
}

TEST(GatedDeltaMixer, GroupedProjectionsBesideTiledHeadsAreRefused) {
  GatedDeltaMixer::Options tiled = options();
  tiled.has_tiled_values = true;
  EXPECT_THROW(answer(grouped_layer(), tiled), Error);
}

TEST(GatedDeltaMixer, AMissingLayerIsNamedInTheFormOfItsFamily) {
  for (const bool is_grouped : {false, true}) {
    const WeightScope scope = scope_of({{"stray", mx::zeros({1})}});
    GatedDeltaMixer::Options asked = options();
    asked.is_grouped = is_grouped;
    const GatedDeltaMixer mixer(scope / "linear_attn", asked);
    try {
      scope.store().audit();
      ADD_FAILURE() << "nothing was missed";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.find("linear_attn.in_proj_qkvz.weight") != std::string::npos, is_grouped) << text;
      EXPECT_EQ(text.find("linear_attn.in_proj_a.weight") != std::string::npos, !is_grouped) << text;
    }
  }
}

}  // namespace
}  // namespace godwit::nn
