// Packed weights keep the bits of the file. The oracle of values is the decoder of GGUF blocks, or the
// definition of the affine format read bit by bit.
#include "kernels/packed_weights.h"

#include <set>

#include "base/error.h"
#include "kernels/quant_test_support.h"

namespace godwit::kernels {
namespace {

TEST(PackedWeights, keep_every_value_and_the_size_of_the_file) {
  for (const FileFormat& format : all_formats())
    for (const std::int64_t rows : {1, 16, 19}) {
      const FileMatrix matrix(format, rows, 768, static_cast<std::uint32_t>(rows));
      const Buffer<std::byte> bands = matrix.packed();
      const std::int64_t bytes = matrix.codes.size() + matrix.scales.size() + matrix.biases.size();
      EXPECT_EQ(bands.size(), bytes / rows * ((rows + 15) / 16 * 16));
      const std::vector<float> want = matrix.values();
      for (std::int64_t row = 0; row < rows; row++) {
        Buffer<float> line(768);
        dequant_packed_row(matrix.shape, bands.data(), row, line.data());
        for (std::int64_t k = 0; k < 768; k++)
          ASSERT_TRUE(same_bits(line[k], want[static_cast<std::size_t>(row * 768 + k)]))
              << format.name() << " row " << row << " column " << k;
      }
    }
}

// Packed files call formats by these.
TEST(PackedWeights, have_a_name_for_every_format) {
  std::set<std::string> names;
  for (const FileFormat& format : all_formats()) {
    const std::string name = name_of(format.packed());
    EXPECT_EQ(name.find("unknown"), std::string::npos) << format.name();
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

TEST(PackedWeights, may_be_packed_band_by_band) {
  for (const FileFormat& format : {FileFormat{.blocks = BlockFormat::q5_0},
                                   FileFormat{.bits = 4, .group = 64, .scales = ScaleType::bf16},
                                   FileFormat{.scales = ScaleType::bf16, .is_dense = true}}) {
    const FileMatrix matrix(format, 50, 64, 1);
    const Buffer<std::byte> whole = matrix.packed();
    Buffer<std::byte> parts(packed_bytes(matrix.shape));
    for (const std::int64_t band : {2, 0, 3, 1}) matrix.pack(parts, band, band + 1);
    EXPECT_TRUE(same_bytes(parts, whole)) << format.name();
  }
}

// GGUF puts inputs i and i + 16 into one byte, MLX neighbours, and exponents into a plane of their own.
TEST(PackedWeights, are_the_same_from_blocks_and_from_planes_of_mxfp4) {
  const FileMatrix blocks({.blocks = BlockFormat::mxfp4}, 37, 96, 4);
  Buffer<std::byte> codes(37 * 48, 1), scales(37 * 3, 3), bands(packed_bytes(blocks.shape));
  for (std::int64_t at = 0; at < scales.size(); at++) {
    const std::byte* block = blocks.codes.data() + at * 17;
    scales[at] = block[0];
    for (int i = 0; i < 32; i += 2) {
      const auto nibble = [&](int k) { return (block[1 + k % 16] >> (k < 16 ? 0 : 4)) & std::byte{15}; };
      codes[at * 16 + i / 2] = nibble(i) | nibble(i + 1) << 4;
    }
  }
  pack_affine_bands(blocks.shape, {codes.data(), scales.data(), nullptr}, bands.data(), 0, 3);
  EXPECT_TRUE(same_bytes(bands, blocks.packed()));
}

// From the least exponent, whose scale is subnormal, to the largest.
TEST(PackedWeights, hold_every_exponent_of_mxfp4) {
  FileMatrix matrix({.blocks = BlockFormat::mxfp4}, 256, 32, 5);
  for (int e = 0; e < 256; e++) matrix.codes[e * 17] = static_cast<std::byte>(e);
  const Buffer<std::byte> bands = matrix.packed();
  const std::vector<float> want = matrix.values();
  Buffer<float> line(32);
  for (int e = 0; e < 256; e++) {
    dequant_packed_row(matrix.shape, bands.data(), e, line.data());
    for (int k = 0; k < 32; k++)
      ASSERT_TRUE(same_bits(line[k], want[static_cast<std::size_t>(e * 32 + k)])) << "exponent " << e;
  }
}

TEST(PackedWeights, refuse_a_format_or_a_width_without_a_layout) {
  std::byte none{};
  const auto pack = [&](const PackedFormat& format, std::int64_t columns) {
    pack_bands({format, 1, columns}, &none, &none, 0, 0);
  };
  const auto pack_affine = [&](const PackedFormat& format, std::int64_t columns) {
    pack_affine_bands({format, 1, columns}, {&none, &none, &none}, &none, 0, 0);
  };
  const auto unknown = static_cast<BlockFormat>(99);  // all that are known have one
  EXPECT_FALSE(has_packed_layout(unknown));
  EXPECT_THROW(packed_format(unknown), Error);
  EXPECT_THROW(pack(packed_format(BlockFormat::q8_0), 33), Error);
  EXPECT_THROW(pack(packed_format(BlockFormat::q4_k), 32), Error);
  for (const int bits : {0, 1, 7, 16}) {
    EXPECT_FALSE(has_packed_affine(bits, 64));
    EXPECT_THROW(packed_affine(bits, 64, ScaleType::f16), Error);
  }
  EXPECT_FALSE(has_packed_affine(4, 16));
  EXPECT_THROW(pack_affine(packed_affine(4, 64, ScaleType::f16), 96), Error);
  EXPECT_THROW(pack_affine(packed_format(BlockFormat::q8_0), 32), Error);
  EXPECT_THROW(packed_dense(ScaleType::f32), Error);
  EXPECT_THROW(pack(packed_dense(ScaleType::bf16), 33), Error);
  EXPECT_THROW(pack_affine(packed_dense(ScaleType::f16), 32), Error);
  EXPECT_THROW(pack(packed_affine(8, 32, ScaleType::f32), 32), Error);
}

}  // namespace
}  // namespace godwit::kernels
