#include "checkpoint/parameter_count.h"

#include <gtest/gtest.h>

namespace godwit::checkpoint {
namespace {

TensorEntry entry(std::string name, TensorFormat format, mx::Shape shape) {
  TensorEntry made;
  made.name = std::move(name);
  made.format = format;
  made.shape = std::move(shape);
  return made;
}

TEST(ParameterCount, PackedMatricesCountAsWhatTheyStandFor) {
  const std::vector<TensorEntry> tensors = {
      entry("norm.weight", TensorFormat::bf16, {128}),
      entry("q.weight", TensorFormat::u32, {16, 128 * 4 / 32}),  // 16 x 128, 4 bits, groups of 64
      entry("q.scales", TensorFormat::bf16, {16, 2}),
      entry("q.biases", TensorFormat::bf16, {16, 2}),
      entry("k.weight", TensorFormat::u32, {8, 128 * 8 / 32}),  // 8 x 128, 8 bits, groups of 32
      entry("k.scales", TensorFormat::bf16, {8, 4}),
      entry("k.biases", TensorFormat::bf16, {8, 4}),
      entry("blk.0.weight", TensorFormat::q4_0, {4, 64}),
  };
  const QuantizationMap map(
      Json::parse(R"({"group_size": 64, "bits": 4, "k": {"group_size": 32, "bits": 8}})"), "config.json");
  EXPECT_EQ(parameter_count(tensors, map), 128 + 16 * 128 + 8 * 128 + 4 * 64);
}

TEST(ParameterCount, DenseWeightsAreTheirElements) {
  EXPECT_EQ(parameter_count({}, {}), 0);
  EXPECT_EQ(parameter_count(std::vector{entry("a.weight", TensorFormat::f32, {3, 5}), entry("b", TensorFormat::i8, {2})}, {}), 17);
}

}  // namespace
}  // namespace godwit::checkpoint
