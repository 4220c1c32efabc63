// The gated delta mixer in the forms that files give it: one layer, written in each of them, answers with the
// same bits. What it computes is compared with mlx-lm in tests/oracle.
#include "nn/gated_delta_mixer.h"

#include <gtest/gtest.h>
#include <mlx/io.h>
#include <unistd.h>

#include <filesystem>
#include <unordered_map>

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/weight_store.h"
#include "support/random_array.h"

namespace godwit::nn {
namespace {

using checkpoint::WeightScope;
using checkpoint::WeightStore;
using Tensors = std::unordered_map<std::string, mx::array>;

// More value heads than key heads and other sizes: a wrong repetition or a transposed state shows.
constexpr int kHidden = 64, kKeyHeads = 2, kValueHeads = 6, kKeyDim = 16, kValueDim = 32, kKernel = 4;
constexpr int kKeys = kKeyHeads * kKeyDim, kValues = kValueHeads * kValueDim,
              kGroup = kValueHeads / kKeyHeads;

GatedDeltaMixer::Options options() {
  return {.hidden = kHidden,
          .key_heads = kKeyHeads,
          .value_heads = kValueHeads,
          .key_dim = kKeyDim,
          .value_dim = kValueDim,
          .kernel = kKernel,
          .norm_eps = 1e-6};
}

mx::array random_array(const mx::Shape& shape, unsigned seed, float spread = 1.0f) {
  return testing_support::random_array(shape, 20261130 + seed, spread);
}

Tensors flat_layer() {
  return {{"in_proj_qkv.weight", random_array({2 * kKeys + kValues, kHidden}, 1, 0.1f)},
          {"in_proj_z.weight", random_array({kValues, kHidden}, 2, 0.1f)},
          {"in_proj_b.weight", random_array({kValueHeads, kHidden}, 3, 0.1f)},
          {"in_proj_a.weight", random_array({kValueHeads, kHidden}, 4, 0.1f)},
          {"conv1d.weight", random_array({2 * kKeys + kValues, kKernel, 1}, 5, 0.5f)},
          {"A_log", random_array({kValueHeads}, 6)},
          {"dt_bias", random_array({kValueHeads}, 7)},
          {"norm.weight", random_array({kValueDim}, 8)},
          {"out_proj.weight", random_array({kHidden, kValues}, 9, 0.1f)}};
}

mx::array rows(const mx::array& x, int begin, int end) {
  mx::Shape from(x.ndim(), 0), to = x.shape();
  from[0] = begin;
  to[0] = end;
  return mx::slice(x, from, to);
}

// The rows of each key head behind each other: its q, its k, the values that read it, their z.
Tensors grouped_layer() {
  Tensors layer = flat_layer();
  const mx::array qkv = layer.at("in_proj_qkv.weight"), z = layer.at("in_proj_z.weight");
  const mx::array a = layer.at("in_proj_a.weight"), b = layer.at("in_proj_b.weight");
  std::vector<mx::array> qkvz, ba;
  const int width = kGroup * kValueDim;
  for (int head = 0; head < kKeyHeads; ++head) {
    qkvz.push_back(rows(qkv, head * kKeyDim, (head + 1) * kKeyDim));
    qkvz.push_back(rows(qkv, kKeys + head * kKeyDim, kKeys + (head + 1) * kKeyDim));
    qkvz.push_back(rows(qkv, 2 * kKeys + head * width, 2 * kKeys + (head + 1) * width));
    qkvz.push_back(rows(z, head * width, (head + 1) * width));
    ba.push_back(rows(b, head * kGroup, (head + 1) * kGroup));
    ba.push_back(rows(a, head * kGroup, (head + 1) * kGroup));
  }
  for (const char* const name : {"in_proj_qkv", "in_proj_z", "in_proj_a", "in_proj_b"})
    layer.erase(std::string(name) + ".weight");
  layer.emplace("in_proj_qkvz.weight", mx::concatenate(qkvz, 0));
  layer.emplace("in_proj_ba.weight", mx::concatenate(ba, 0));
  return layer;
}

// As llama.cpp's converter does it: [key heads, group, width] -> [group, key heads, width] on `axis`.
mx::array tiled(const mx::array& x, int axis, int width) {
  mx::Shape split = x.shape();
  split[static_cast<std::size_t>(axis)] = width;
  split.insert(split.begin() + axis, {kKeyHeads, kGroup});
  return mx::reshape(mx::swapaxes(mx::reshape(x, split), axis, axis + 1), x.shape());
}

mx::array tiled_values(const mx::array& x) {
  return mx::concatenate({rows(x, 0, 2 * kKeys), tiled(rows(x, 2 * kKeys, x.shape(0)), 0, kValueDim)}, 0);
}

Tensors gguf_layer() {
  Tensors layer = flat_layer();
  const auto change = [&](const std::string& name, auto&& into) {
    layer.insert_or_assign(name, mx::contiguous(into(layer.at(name))));
  };
  change("in_proj_qkv.weight", tiled_values);
  change("in_proj_z.weight", [](const mx::array& x) { return tiled(x, 0, kValueDim); });
  change("in_proj_a.weight", [](const mx::array& x) { return tiled(x, 0, 1); });
  change("in_proj_b.weight", [](const mx::array& x) { return tiled(x, 0, 1); });
  change("A_log", [](const mx::array& x) { return tiled(mx::negative(mx::exp(x)), 0, 1); });
  change("dt_bias", [](const mx::array& x) { return tiled(x, 0, 1); });
  change("conv1d.weight", [](const mx::array& x) { return mx::squeeze(tiled_values(x), 2); });
  change("out_proj.weight", [](const mx::array& x) { return tiled(x, 1, kValueDim); });
  return layer;
}

std::shared_ptr<WeightStore> store_of(const Tensors& tensors) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("godwit_delta_" + std::to_string(::getpid()) + "_" +
                     testing::UnitTest::GetInstance()->current_test_info()->name() + ".safetensors");
  mx::save_safetensors(path.string(), tensors);
  auto entries = checkpoint::read_safetensors(std::make_shared<const FileMap>(path));
  std::filesystem::remove(path);  // mapped already
  return std::make_shared<WeightStore>(std::move(entries), checkpoint::QuantizationMap(), path.string());
}

// Two spans over one row: [tokens, hidden].
mx::array answer(const Tensors& tensors, const GatedDeltaMixer::Options& options) {
  const auto store = store_of(tensors);
  const GatedDeltaMixer mixer(WeightScope(store, ""), options);
  store->audit();
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
    const auto store = store_of({{"stray", mx::zeros({1})}});
    GatedDeltaMixer::Options asked = options();
    asked.is_grouped = is_grouped;
    const GatedDeltaMixer mixer(WeightScope(store, "linear_attn"), asked);
    try {
      store->audit();
      ADD_FAILURE() << "nothing was missed";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.find("linear_attn.in_proj_qkvz.weight") != std::string::npos, is_grouped) << text;
      EXPECT_EQ(text.find("linear_attn.in_proj_a.weight") != std::string::npos, !is_grouped) << text;
    }
  }
}

TEST(GatedDeltaMixer, NativeModeRefusesItByName) {
  ThreadPool pool(1);
  const auto store = store_of(flat_layer());
  store->pack_with(pool);
  try {
    const GatedDeltaMixer mixer(WeightScope(store, ""), options());
    ADD_FAILURE() << "native mode took it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("gated delta"), std::string::npos);
  }
}

}  // namespace
}  // namespace godwit::nn
