// Block decoders and the repacked planes against gguf.quants (NumPy), on raw bits.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "base/mx_ops.h"
#include "checkpoint/gguf.h"
#include "checkpoint/repack.h"
#include "checkpoint/safetensors.h"
#include "kernels/quantize_blocks.h"

namespace godwit::checkpoint {
namespace {

const std::filesystem::path kFolder = GODWIT_FORMATS_FOLDER;

std::shared_ptr<const FileMap> mapped(const std::string& name) {
  return std::make_shared<const FileMap>(kFolder / name);
}

// NumPy's f32 values of each format.
std::map<std::string, mx::array> wanted_values() {
  std::map<std::string, mx::array> values;
  for (const TensorEntry& entry : read_safetensors(mapped("values.safetensors")))
    values.emplace(entry.name, to_array(entry));
  return values;
}

// Elements whose bits differ. `ignore_zero_sign`: +0 and -0 count as equal.
int differing(mx::array got, mx::array want, bool ignore_zero_sign) {
  got.eval();
  want.eval();
  EXPECT_EQ(got.shape(), want.shape());
  int count = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const float a = got.data<float>()[i], b = want.data<float>()[i];
    const bool equal = std::memcmp(&a, &b, sizeof a) == 0 || (ignore_zero_sign && a == 0 && b == 0);
    if (!equal && ++count < 4) ADD_FAILURE() << "element " << i << ": " << a << ", NumPy says " << b;
  }
  return count;
}

TEST(Blocks, every_decoder_equals_the_numpy_decoder_bit_for_bit) {
  const auto want = wanted_values();
  const GgufFile file = read_gguf(mapped("blocks.gguf"));
  ASSERT_EQ(file.tensors.size(), 13u);
  for (const TensorEntry& entry : file.tensors) {
    SCOPED_TRACE(entry.name);
    std::vector<float> values(want.at(entry.name).size());
    const auto size = kernels::block_size(block_format(entry.format));
    kernels::dequant_blocks(block_format(entry.format), entry.bytes().data(),
                            entry.size / static_cast<std::size_t>(size.bytes), values.data());
    const mx::array got(values.data(), want.at(entry.name).shape(), mx::float32);
    EXPECT_EQ(differing(got, want.at(entry.name), /*ignore_zero_sign=*/false), 0);
  }
}

TEST(Blocks, numbers_are_quantized_to_the_bytes_that_numpy_makes_of_them) {
  std::map<std::string, TensorEntry> entries;
  for (const TensorEntry& entry : read_safetensors(mapped("numbers.safetensors"))) entries.emplace(entry.name, entry);
  ASSERT_EQ(entries.size(), 3u);
  const TensorEntry& plain = entries.at("plain");
  std::vector<float> values(plain.size / sizeof(float));
  std::memcpy(values.data(), plain.bytes().data(), plain.size);
  for (const auto format : {kernels::BlockFormat::q8_0, kernels::BlockFormat::q4_0}) {
    const TensorEntry& want = entries.at(std::string(kernels::quantized_name(format)));
    SCOPED_TRACE(want.name);
    std::vector<std::byte> got(want.size);
    ASSERT_EQ(kernels::quantize_blocks(format, values.data(), values.size() / 32, got.data()), values.size() / 32);
    int wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      if (got[i] != want.bytes()[i] && ++wrong < 4) ADD_FAILURE() << "byte " << i;
    EXPECT_EQ(wrong, 0);
  }
}

// Where only the sign of a zero may differ; it cannot change a sum that holds any other term. (q - 8) * d is
// -0 for q = 8 and d < 0, while q * d - 8 * d is +0. MXFP4's code 8 is -0 to MLX and +0 to GGUF's decoder.
bool zero_has_no_sign(TensorFormat format) {
  return format == TensorFormat::q4_0 || format == TensorFormat::q5_0 || format == TensorFormat::q8_0 ||
         format == TensorFormat::mxfp4;
}

TEST(Blocks, the_form_in_memory_holds_the_same_values_bit_for_bit) {
  const auto want = wanted_values();
  for (const TensorEntry& entry : read_gguf(mapped("blocks.gguf")).tensors) {
    SCOPED_TRACE(entry.name);
    const Weight weight = load_blocks(entry);
    EXPECT_EQ(weight.rows, 256);
    EXPECT_EQ(weight.columns, want.at(entry.name).shape(1));
    EXPECT_EQ(differing(weight.dequantize(mx::float32), want.at(entry.name), zero_has_no_sign(entry.format)),
              0);
  }
}

TEST(Blocks, planes_are_what_the_format_table_says) {
  const std::map<std::string, std::pair<WeightKind, int>> kinds = {
      {"Q4_0", {WeightKind::affine, 4}},  {"Q4_1", {WeightKind::affine, 4}},
      {"Q5_0", {WeightKind::affine, 5}},  {"Q5_1", {WeightKind::affine, 5}},
      {"Q8_0", {WeightKind::affine, 8}},  {"Q4_K", {WeightKind::affine, 4}},
      {"Q5_K", {WeightKind::affine, 5}},  {"MXFP4", {WeightKind::mxfp4, 4}},
      {"Q6_K", {WeightKind::blocks, 0}},  {"Q2_K", {WeightKind::blocks, 0}},
      {"Q3_K", {WeightKind::blocks, 0}},  {"IQ4_NL", {WeightKind::blocks, 0}},
      {"IQ4_XS", {WeightKind::blocks, 0}}};
  for (const TensorEntry& entry : read_gguf(mapped("blocks.gguf")).tensors) {
    SCOPED_TRACE(entry.name);
    const Weight weight = load_blocks(entry);
    EXPECT_EQ(weight.kind, kinds.at(entry.name).first);
    EXPECT_EQ(weight.bits, kinds.at(entry.name).second);
    if (weight.kind == WeightKind::affine) {
      EXPECT_EQ(weight.scales->dtype(), mx::float32);
    }
    // Nothing is widened: the raw forms keep the file's bytes.
    if (weight.kind == WeightKind::blocks) {
      EXPECT_EQ(weight.data.nbytes(), entry.size);
    }
  }
}

TEST(Blocks, rows_are_taken_and_cut_exactly_in_every_format) {
  const std::vector<int> order = {255, 0, 17, 17};
  const mx::array rows(order.begin(), {4}, mx::int32);
  for (const TensorEntry& entry : read_gguf(mapped("blocks.gguf")).tensors) {
    SCOPED_TRACE(entry.name);
    const Weight weight = load_blocks(entry);
    const mx::array all = weight.dequantize(mx::float32);
    EXPECT_EQ(differing(weight.take_rows(rows).dequantize(mx::float32), mx::take(all, rows, 0), false), 0);
    EXPECT_EQ(differing(weight.slice_rows(3, 9).dequantize(mx::float32),
                        mx::slice(all, {3, 0}, {9, weight.columns}), false),
              0);
  }
}

}  // namespace
}  // namespace godwit::checkpoint
