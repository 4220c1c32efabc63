// The gate of attention: its values lie beside the query of each head, not behind all queries.
#include <gtest/gtest.h>
#include <mlx/io.h>
#include <unistd.h>

#include <filesystem>
#include <unordered_map>

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/weight_store.h"
#include "nn/attention.h"

namespace godwit::nn {
namespace {

constexpr int kHidden = 8, kHeads = 2, kDim = 16;

std::shared_ptr<checkpoint::WeightStore> store_of(const std::unordered_map<std::string, mx::array>& tensors) {
  const auto path =
      std::filesystem::temp_directory_path() / ("godwit_gate_" + std::to_string(::getpid()) + ".safetensors");
  mx::save_safetensors(path.string(), tensors);
  auto entries = checkpoint::read_safetensors(std::make_shared<const FileMap>(path));
  std::filesystem::remove(path);  // mapped already
  return std::make_shared<checkpoint::WeightStore>(std::move(entries), checkpoint::QuantizationMap(),
                                                   path.string());
}

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

mx::array answer(const std::shared_ptr<checkpoint::WeightStore>& store, QkvPacking packing) {
  const Attention attention(checkpoint::WeightScope(store, ""), options(packing), std::nullopt);
  store->audit();
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
  const auto gated = store_of({{"q_proj.weight", mx::contiguous(flat(mx::concatenate({queries, gates}, 1)))},
                               {"k_proj.weight", keys},
                               {"v_proj.weight", values},
                               {"o_proj.weight", output}});
  // By hand: attention without a gate and without a projection of its output, then both.
  const mx::array x = waves({5, kHidden}, 0.3f);
  const mx::array gate = mx::sigmoid(mx::matmul(x, mx::transpose(flat(gates))));
  std::vector<mx::array> parts;
  for (int part = 0; part < kHeads * kDim; part += kHidden) {  // o_proj gives kHidden elements at a time
    const auto some = store_of(
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
  const auto halves = store_of({{"q_proj.weight", mx::contiguous(flat(mx::concatenate({queries, gates}, 0)))},
                                {"k_proj.weight", keys},
                                {"v_proj.weight", values},
                                {"o_proj.weight", output}});
  EXPECT_GT(mx::max(mx::abs(answer(halves, QkvPacking::gated) - wanted)).item<float>(), 0.01f);
}

TEST(GatedAttention, NativeModeHasNoGate) {
  ThreadPool pool(1);
  const auto store = store_of({{"q_proj.weight", mx::zeros({2 * kHeads * kDim, kHidden})}});
  store->pack_with(pool);
  try {
    const Attention attention(checkpoint::WeightScope(store, "layer"), options(QkvPacking::gated),
                              std::nullopt);
    ADD_FAILURE() << "native mode took it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("gate"), std::string::npos);
  }
}

}  // namespace
}  // namespace godwit::nn
