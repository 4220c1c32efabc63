// Shared by the tests of packed weights and of the product with them: random matrices of every format as a
// file holds them, and their values by a second way.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "kernels/half.h"
#include "kernels/kernel_test_support.h"

namespace godwit::kernels {

// Of the file: GGUF blocks, planes of MLX's affine quantization (`bits` is not 0), or numbers of 16 bits.
struct FileFormat {
  BlockFormat blocks = BlockFormat::q8_0;
  int bits = 0, group = 0;
  ScaleType scales = ScaleType::f16;
  bool is_dense = false;

  bool is_affine() const { return bits != 0; }
  PackedFormat packed() const {
    if (is_dense) return packed_dense(scales);
    return is_affine() ? packed_affine(bits, group, scales) : packed_format(blocks);
  }
  bool has_minimum() const {
    return is_affine() || blocks == BlockFormat::q4_1 || blocks == BlockFormat::q5_1 ||
           blocks == BlockFormat::q4_k || blocks == BlockFormat::q5_k || blocks == BlockFormat::q2_k;
  }
  int codes() const {  // that an element may have; only asked of formats with a minimum
    if (is_affine()) return 1 << bits;
    if (blocks == BlockFormat::q2_k) return 4;
    return blocks == BlockFormat::q5_1 || blocks == BlockFormat::q5_k ? 32 : 16;
  }
  std::string name() const {
    if (is_dense) return scales == ScaleType::f16 ? "dense f16" : "dense bf16";
    if (!is_affine()) return "block format " + std::to_string(static_cast<int>(blocks));
    const char* const types[] = {"f16", "bf16", "f32"};
    return "affine " + std::to_string(bits) + " group " + std::to_string(group) + " " +
           types[static_cast<int>(scales)];
  }
};

inline std::vector<FileFormat> block_formats() {
  std::vector<FileFormat> formats;
  for (const BlockFormat blocks :
       {BlockFormat::q8_0, BlockFormat::q5_0, BlockFormat::q5_1, BlockFormat::q4_1, BlockFormat::q4_0,
        BlockFormat::q4_k, BlockFormat::q5_k, BlockFormat::q6_k, BlockFormat::q3_k, BlockFormat::q2_k,
        BlockFormat::iq4_nl, BlockFormat::iq4_xs, BlockFormat::mxfp4})
    formats.push_back({.blocks = blocks});
  return formats;
}

inline std::vector<FileFormat> affine_formats() {
  std::vector<FileFormat> formats;
  for (const int bits : {2, 3, 4, 5, 6, 8})
    for (const int group : {32, 64, 128})
      for (const ScaleType scales : {ScaleType::f16, ScaleType::bf16, ScaleType::f32})
        formats.push_back({.bits = bits, .group = group, .scales = scales});
  return formats;
}

inline std::vector<FileFormat> dense_formats() {
  return {{.scales = ScaleType::f16, .is_dense = true}, {.scales = ScaleType::bf16, .is_dense = true}};
}

// Every one there is.
inline std::vector<FileFormat> all_formats() {
  std::vector<FileFormat> formats = block_formats();
  for (const FileFormat& format : affine_formats()) formats.push_back(format);
  for (const FileFormat& format : dense_formats()) formats.push_back(format);
  return formats;
}

// Every block format and dense ones; of affine every pair of bits and scales, and of bits and group.
inline std::vector<FileFormat> all_kinds() {
  std::vector<FileFormat> formats = block_formats();
  for (const FileFormat& dense : dense_formats()) formats.push_back(dense);
  for (const FileFormat& affine : affine_formats()) {
    const int turn = affine.group == 32 ? 0 : affine.group == 64 ? 1 : 2;
    if ((turn + affine.bits / 4) % 3 == static_cast<int>(affine.scales)) formats.push_back(affine);
  }
  return formats;
}

inline void put_half(Buffer<std::byte>& out, std::int64_t at, float value) {
  const std::uint16_t half = float_to_f16(value);
  std::memcpy(out.data() + at, &half, 2);
}

// A matrix as its file holds it: any bit pattern as codes, sane factors.
class FileMatrix {
 public:
  FileMatrix(const FileFormat& of, std::int64_t rows, std::int64_t columns, std::uint32_t seed)
      : format(of),
        shape{of.packed(), rows, columns},
        codes(code_bytes()),
        scales(plane_bytes(), 1),
        biases(plane_bytes(), 3) {
    Numbers numbers(seed);
    for (std::int64_t i = 0; i < codes.size(); i++) codes[i] = numbers.byte();
    set_factors([&] { return numbers.normal(0.01f); }, [&] { return numbers.normal(0.05f); });
  }

  Buffer<std::byte> packed() const {
    Buffer<std::byte> out(packed_bytes(shape), 1);
    pack(out, 0, band_count(shape));
    return out;
  }
  void pack(Buffer<std::byte>& out, std::int64_t begin, std::int64_t end) const {
    if (format.is_affine())
      pack_affine_bands(shape, {codes.data(), scales.data(), biases.data()}, out.data(), begin, end);
    else
      pack_bands(shape, codes.data(), out.data(), begin, end);
  }
  std::vector<float> values() const {
    if (format.is_affine()) return affine_values();
    if (!format.is_dense) return block_values();
    std::vector<float> out;
    for (std::int64_t i = 0; i < elements(); i++) out.push_back(factor(codes, i));
    return out;
  }

  // New factors everywhere: of scales, and of minimums or biases.
  template <class Scale, class Second>
  void set_factors(Scale&& scale, Second&& second) {
    if (format.is_dense) {
      for (std::int64_t i = 0; i < elements(); i++) put(codes, i, second());
      return;
    }
    if (format.is_affine()) {
      for (std::int64_t i = 0; i < elements() / format.group; i++) {
        put(scales, i, scale());
        put(biases, i, second());
      }
      return;
    }
    const int bytes = block_size(format.blocks).bytes;
    for (std::int64_t at = 0; at < codes.size(); at += bytes) {
      if (format.blocks == BlockFormat::mxfp4) {
        codes[at] = static_cast<std::byte>(127 + std::ilogb(scale()));
        continue;
      }
      put_half(codes, at + half_at(), scale());
      if (format.has_minimum()) put_half(codes, at + half_at() + 2, second());
    }
  }

  FileFormat format;
  PackedShape shape;
  Buffer<std::byte> codes;           // blocks, the codes of an affine matrix, or numbers
  Buffer<std::byte> scales, biases;  // affine

 private:
  int half_at() const {  // where d lies, with m or dmin behind it
    if (format.blocks == BlockFormat::q6_k) return 208;
    if (format.blocks == BlockFormat::q3_k) return 108;
    return format.blocks == BlockFormat::q2_k ? 80 : 0;
  }
  std::int64_t elements() const { return shape.rows * shape.columns; }
  std::int64_t code_bytes() const {
    if (format.is_affine()) return elements() * format.bits / 8;
    if (format.is_dense) return elements() * 2;
    const BlockSize block = block_size(format.blocks);
    return elements() / block.elements * block.bytes;
  }
  std::int64_t plane_bytes() const {
    return format.is_affine() ? elements() / format.group * scale_bytes() : 0;
  }
  int scale_bytes() const { return format.scales == ScaleType::f32 ? 4 : 2; }

  void put(Buffer<std::byte>& plane, std::int64_t i, float value) const {
    const std::uint32_t wide = std::bit_cast<std::uint32_t>(value);
    const std::uint16_t half = format.scales == ScaleType::f16 ? float_to_f16(value) : float_to_bf16(value);
    if (format.scales == ScaleType::f32)
      std::memcpy(plane.data() + i * 4, &wide, 4);
    else
      std::memcpy(plane.data() + i * 2, &half, 2);
  }
  float factor(const Buffer<std::byte>& plane, std::int64_t i) const {
    std::uint32_t bits = 0;
    std::memcpy(&bits, plane.data() + i * scale_bytes(), static_cast<std::size_t>(scale_bytes()));
    if (format.scales == ScaleType::f32) return std::bit_cast<float>(bits);
    const auto half = static_cast<std::uint16_t>(bits);
    return format.scales == ScaleType::f16 ? half_to_float(half) : bf16_to_float(half);
  }
  // Bit by bit: a row is one stream, the lowest bit of each code first.
  std::vector<float> affine_values() const {
    std::vector<float> out;
    for (std::int64_t i = 0; i < elements(); i++) {
      std::uint32_t code = 0;
      for (std::int64_t bit = 0; bit < format.bits; bit++) {
        const std::int64_t at = i * format.bits + bit;
        code |= (std::to_integer<std::uint32_t>(codes[at / 8]) >> at % 8 & 1u) << bit;
      }
      const float product = static_cast<float>(code) * factor(scales, i / format.group);
      out.push_back(product + factor(biases, i / format.group));
    }
    return out;
  }
  std::vector<float> block_values() const {
    std::vector<float> out(static_cast<std::size_t>(elements()));
    const auto blocks = static_cast<std::size_t>(elements() / block_size(format.blocks).elements);
    dequant_blocks(format.blocks, codes.data(), blocks, out.data());
    return out;
  }
};

}  // namespace godwit::kernels
