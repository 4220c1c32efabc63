// Matrices of experts: every form of a file gives the weight that the stacked form gives, and every tensor
// counts as used.
#include <mlx/io.h>

#include <random>
#include <unordered_map>

#include "base/mx_ops.h"
#include "checkpoint/gguf.h"
#include "checkpoint/repack.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/test_files.h"
#include "checkpoint/weight_store.h"
#include "support/random_array.h"

namespace godwit::checkpoint {
namespace {

using Tensors = std::unordered_map<std::string, mx::array>;
constexpr int kExperts = 3, kRows = 8, kColumns = 64;

const ExpertNames kGate = {.stacked = "switch_mlp.gate_proj",
                           .each = "experts.{}.gate_proj",
                           .fused = "experts.gate_up_proj",
                           .part = ExpertNames::Part::first_half};
const ExpertNames kUp = {.stacked = "switch_mlp.up_proj",
                         .each = "experts.{}.up_proj",
                         .fused = "experts.gate_up_proj",
                         .part = ExpertNames::Part::second_half};

using testing_support::random_array;

bool same(const mx::array& a, const mx::array& b) {
  return a.dtype() == b.dtype() && mx::array_equal(a, b).item<bool>();
}

std::shared_ptr<WeightStore> store_of(const std::string& name, const Tensors& tensors) {
  const auto path = fresh_folder("experts_" + name) / "model.safetensors";
  mx::save_safetensors(path.string(), tensors);
  return std::make_shared<WeightStore>(read_safetensors(std::make_shared<const FileMap>(path)),
                                       QuantizationMap(), path.string());
}

Weight read(const std::shared_ptr<WeightStore>& store, const ExpertNames& names) {
  return (WeightScope(store, "mlp")).experts(names, kExperts, kRows, kColumns);
}

mx::array matrix_of(const mx::array& stack, int expert) { return mx::take(stack, expert, 0); }

TEST(Experts, StackedAndSingleTensorsGiveTheSameDenseWeight) {
  for (const mx::Dtype dtype : {mx::float32, mx::bfloat16}) {
    const mx::array gate = random_array({kExperts, kRows, kColumns}, 1, dtype);
    const auto stacked = store_of("stacked", {{"mlp.switch_mlp.gate_proj.weight", gate}});
    Tensors single;
    for (int e = 0; e < kExperts; ++e)
      single.emplace(fmt::format("mlp.experts.{}.gate_proj.weight", e), matrix_of(gate, e));
    const auto each = store_of("each", single);
    for (const auto& store : {stacked, each}) {
      const Weight weight = read(store, kGate);
      EXPECT_EQ(weight.kind, WeightKind::dense);
      EXPECT_EQ(std::tuple(weight.experts, weight.rows, weight.columns),
                std::tuple(kExperts, kRows, kColumns));
      EXPECT_TRUE(same(weight.data, gate));
      EXPECT_NO_THROW(store->audit());
    }
  }
}

TEST(Experts, FusedTensorsAreCutIntoHalvesOnTheirRows) {
  const mx::array fused = random_array({kExperts, 2 * kRows, kColumns}, 2);
  const auto gate = mx::slice(fused, {0, 0, 0}, {kExperts, kRows, kColumns});
  const auto up = mx::slice(fused, {0, kRows, 0}, {kExperts, 2 * kRows, kColumns});
  const auto bare = store_of("fused", {{"mlp.experts.gate_up_proj", fused}});
  EXPECT_TRUE(same(read(bare, kGate).data, gate));
  EXPECT_TRUE(same(read(bare, kUp).data, up));
  EXPECT_NO_THROW(bare->audit());

  ExpertNames swapped_gate = kGate, swapped_up = kUp;
  swapped_gate.is_transposed = swapped_up.is_transposed = true;
  const auto swapped =
      store_of("swapped", {{"mlp.experts.gate_up_proj", mx::contiguous(mx::swapaxes(fused, 1, 2))}});
  EXPECT_TRUE(same(read(swapped, swapped_gate).data, gate));
  EXPECT_TRUE(same(read(swapped, swapped_up).data, up));
}

TEST(Experts, QuantizedPlanesStackAndCutAsTheyAre) {
  struct Mode {
    const char* name;
    int group, bits;
    WeightKind kind;
  };
  for (const Mode& mode :
       {Mode{"affine", 32, 4, WeightKind::affine}, Mode{"affine", 64, 8, WeightKind::affine},
        Mode{"mxfp4", 32, 4, WeightKind::mxfp4}, Mode{"mxfp8", 32, 8, WeightKind::mxfp8},
        Mode{"nvfp4", 16, 4, WeightKind::nvfp4}}) {
    SCOPED_TRACE(mode.name);
    const mx::array dense = random_array({kExperts, 2 * kRows, kColumns}, 3, mx::bfloat16);
    const std::vector<mx::array> q = mx::quantize(dense, mode.group, mode.bits, mode.name);
    const std::vector<std::string> planes = {"weight", "scales", "biases"};
    Tensors stacked, single, fused;
    for (std::size_t p = 0; p < q.size(); ++p) {
      const mx::array half = mx::contiguous(mx::slice(q[p], {0, 0, 0}, {kExperts, kRows, q[p].shape(2)}));
      stacked.emplace("mlp.switch_mlp.gate_proj." + planes[p], half);
      fused.emplace("mlp.experts.gate_up_proj." + planes[p], q[p]);
      for (int e = 0; e < kExperts; ++e)
        single.emplace(fmt::format("mlp.experts.{}.gate_proj.{}", e, planes[p]), matrix_of(half, e));
    }
    const auto reference = store_of("stacked", stacked);
    const Weight wanted = read(reference, kGate);
    EXPECT_EQ(wanted.kind, mode.kind);
    EXPECT_EQ(wanted.bits, mode.bits);
    EXPECT_EQ(wanted.biases.has_value(), mode.kind == WeightKind::affine);
    EXPECT_NO_THROW(reference->audit());
    for (const auto& store : {store_of("each", single), store_of("fused", fused)}) {
      const Weight weight = read(store, kGate);
      EXPECT_EQ(weight.kind, wanted.kind);
      EXPECT_TRUE(same(weight.data, wanted.data));
      EXPECT_TRUE(same(*weight.scales, *wanted.scales));
      if (wanted.biases) {
        EXPECT_TRUE(same(*weight.biases, *wanted.biases));
      }
      EXPECT_NO_THROW(store->audit());
    }
  }
}

TEST(Experts, MissingAndStrayTensorsAreNamed) {
  const mx::array matrix = random_array({kRows, kColumns}, 4);
  const auto nothing = store_of("nothing", {{"mlp.norm", matrix}});
  read(nothing, kGate);
  expect_error(ErrorCode::corrupt_file, {"mlp.switch_mlp.gate_proj.weight", "mlp.norm"},
               [&] { nothing->audit(); });
  Tensors some = {{"mlp.experts.0.gate_proj.weight", matrix}, {"mlp.experts.2.gate_proj.weight", matrix}};
  some.emplace("mlp.experts.3.gate_proj.weight", matrix);
  const auto holes = store_of("holes", some);
  EXPECT_EQ(read(holes, kGate).data.shape(), mx::Shape({kExperts, kRows, kColumns}));
  expect_error(ErrorCode::corrupt_file,
               {"1 parameters are missing (mlp.experts.1.gate_proj.weight)",
                "1 tensors belong to no parameter (mlp.experts.3.gate_proj.weight)"},
               [&] { holes->audit(); });
}

TEST(Experts, ExpertsOfDifferentFormatsAreRefusedByNumber) {
  const mx::array matrix = random_array({kRows, kColumns}, 5);
  const auto mixed =
      store_of("mixed", {{"mlp.experts.0.gate_proj.weight", matrix},
                         {"mlp.experts.1.gate_proj.weight", matrix},
                         {"mlp.experts.2.gate_proj.weight", mx::astype(matrix, mx::bfloat16)}});
  expect_error(ErrorCode::corrupt_file, {"experts 0 and 2", "experts.{}.gate_proj"},
               [&] { read(mixed, kGate); });
}

TEST(Experts, AWrongNumberOfThemIsAWrongShape) {
  const auto store =
      store_of("more", {{"mlp.switch_mlp.gate_proj.weight", random_array({4, kRows, kColumns}, 6)}});
  expect_error(ErrorCode::corrupt_file, {"switch_mlp.gate_proj.weight", "[4, 8, 64]", "[3, 8, 64]"},
               [&] { read(store, kGate); });
}

// Q4_0 (an MLX layout) and Q6_K (none) with three axes: the values are those of the single matrices.
TEST(Experts, GgufBlocksKeepTheirExpertAxis) {
  std::mt19937 random(8);
  const auto random_bytes = [&](std::size_t count) {
    std::string bytes(count, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 96);  // halves that are small and finite
    return bytes;
  };
  const int columns = 256;
  const auto q4 = random_bytes(std::size_t{2} * 4 * 8 * 18), q6 = random_bytes(std::size_t{2} * 4 * 210);
  const auto path =
      write_file(fresh_folder("experts_gguf") / "model.gguf", GgufBytes()
                                                                  .string("general.architecture", "llama")
                                                                  .tensor("a.weight", {256, 4, 2}, 2, q4)
                                                                  .tensor("b.weight", {256, 4, 2}, 14, q6)
                                                                  .bytes());
  GgufFile file = read_gguf(std::make_shared<const FileMap>(path));
  const auto store = std::make_shared<WeightStore>(file.tensors, QuantizationMap(), path.string());
  for (const std::string name : {"a", "b"}) {
    const Weight all = store->experts("", {.stacked = name}, 2, 4, columns);
    EXPECT_EQ(all.kind, name == "a" ? WeightKind::affine : WeightKind::blocks);
    const mx::array values = all.dequantize(mx::float32);
    ASSERT_EQ(values.shape(), mx::Shape({2, 4, columns}));
    TensorEntry flat = store->entry(name + ".weight");
    flat.shape = {8, columns};
    EXPECT_TRUE(same(mx::reshape(values, {8, columns}), load_blocks(flat).dequantize(mx::float32)));
    const int chosen[] = {1, 0, 1};
    const Weight taken = all.take_experts(mx::array(chosen, {3}, mx::int32));
    EXPECT_EQ(taken.experts, 3);
    EXPECT_TRUE(same(taken.dequantize(mx::float32), mx::take(values, mx::array(chosen, {3}, mx::int32), 0)));
  }
}

TEST(Experts, ColumnHeadsMoveInEveryFormat) {
  const int width = 32, heads[] = {2, 0, 3, 1};
  const mx::array order(heads, {4}, mx::int32), dense = random_array({6, 128}, 9);
  const auto moved = [&](const mx::array& x) {
    return mx::reshape(mx::take(mx::reshape(x, {6, 4, width}), order, 1), {6, 128});
  };
  const std::vector<mx::array> q = mx::quantize(dense, 32, 5);
  const auto store =
      store_of("columns", {{"d.weight", dense}, {"q.weight", q[0]}, {"q.scales", q[1]}, {"q.biases", q[2]}});
  for (const std::string name : {"d", "q"}) {
    const Weight weight = store->matrix(name, 6, 128);
    const Weight taken = weight.take_column_heads(order, width);
    EXPECT_EQ(taken.kind, weight.kind);
    EXPECT_TRUE(same(taken.dequantize(mx::float32), moved(weight.dequantize(mx::float32))));
  }
  // Heads of 16 would cut groups of 32: the values become dense.
  const int narrow[] = {1, 0, 2, 3, 4, 5, 7, 6};
  const Weight cut = store->matrix("q", 6, 128).take_column_heads(mx::array(narrow, {8}, mx::int32), 16);
  EXPECT_EQ(cut.kind, WeightKind::dense);
  const mx::array exact = store->matrix("q", 6, 128).dequantize(mx::float32);
  EXPECT_TRUE(same(
      cut.data,
      mx::reshape(mx::take(mx::reshape(exact, {6, 8, 16}), mx::array(narrow, {8}, mx::int32), 1), {6, 128})));
}

}  // namespace
}  // namespace godwit::checkpoint
