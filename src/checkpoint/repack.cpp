#include "checkpoint/repack.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "base/checked.h"
#include "base/file_pages.h"
#include "kernels/dequant_half.h"

namespace godwit::checkpoint {
namespace {

using Bytes = const unsigned char*;
constexpr int kGroup = 32;

// One affine group: value = quants[i] * scale + bias.
struct Group {
  float scale, bias;
  std::array<std::uint8_t, kGroup> quants;
};

std::uint32_t load_u32(Bytes bytes) {
  std::uint32_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// The nibble order of the 32-element formats: byte i holds elements i and i + 16.
void take_nibbles(Bytes quants, Group& group) {
  for (std::size_t i = 0; i < 16; ++i) {
    group.quants[i] = quants[i] & 15;
    group.quants[i + 16] = quants[i] >> 4;
  }
}

void add_fifth_bits(std::uint32_t high, Group& group) {
  for (std::size_t i = 0; i < kGroup; ++i) group.quants[i] |= static_cast<std::uint8_t>((high >> i & 1) << 4);
}

void split_q4_0(Bytes block, Group* out) {
  out->scale = kernels::load_half(block);
  out->bias = -8.0f * out->scale;
  take_nibbles(block + 2, *out);
}
void split_q4_1(Bytes block, Group* out) {
  out->scale = kernels::load_half(block);
  out->bias = kernels::load_half(block + 2);
  take_nibbles(block + 4, *out);
}
void split_q5_0(Bytes block, Group* out) {
  out->scale = kernels::load_half(block);
  out->bias = -16.0f * out->scale;
  take_nibbles(block + 6, *out);
  add_fifth_bits(load_u32(block + 2), *out);
}
void split_q5_1(Bytes block, Group* out) {
  out->scale = kernels::load_half(block);
  out->bias = kernels::load_half(block + 2);
  take_nibbles(block + 8, *out);
  add_fifth_bits(load_u32(block + 4), *out);
}
void split_q8_0(Bytes block, Group* out) {
  out->scale = kernels::load_half(block);
  out->bias = -128.0f * out->scale;
  for (std::size_t i = 0; i < kGroup; ++i) out->quants[i] = block[2 + i] ^ 0x80;  // signed to offset binary
}

// Q4_K and Q5_K: eight groups; `quants` is where the 4-bit parts start.
void split_k(Bytes block, Bytes quants, Group* out) {
  const float d = kernels::load_half(block), dmin = kernels::load_half(block + 2);
  for (int g = 0; g < 8; ++g) {
    const auto of = kernels::k_scale_min(block + 4, g);
    out[g].scale = d * static_cast<float>(of.scale);
    out[g].bias = -(dmin * static_cast<float>(of.min));
    for (std::size_t i = 0; i < kGroup; ++i)
      out[g].quants[i] =
          static_cast<std::uint8_t>(quants[32 * (g / 2) + static_cast<int>(i)] >> (4 * (g % 2)) & 15);
  }
}
void split_q4_k(Bytes block, Group* out) { split_k(block, block + 16, out); }
void split_q5_k(Bytes block, Group* out) {
  split_k(block, block + 48, out);
  for (int g = 0; g < 8; ++g)
    for (std::size_t i = 0; i < kGroup; ++i)
      out[g].quants[i] |= static_cast<std::uint8_t>((block[16 + i] >> g & 1) << 4);
}

// 32 values of kBits bits as one stream, least significant bit first, in kBits words.
template <int kBits>
void pack(const Group& group, std::uint32_t* words) {
  if constexpr (kBits == 8) {
    std::memcpy(words, group.quants.data(), kGroup);
  } else {
    // Eight values fill kBits whole bytes, which is as far as a stream can be cut evenly.
    auto* out = reinterpret_cast<unsigned char*>(words);
    for (std::size_t first = 0; first < kGroup; first += 8, out += kBits) {
      std::uint64_t eight = 0;
      for (std::size_t i = 0; i < 8; ++i) eight |= std::uint64_t{group.quants[first + i]} << (kBits * i);
      std::memcpy(out, &eight, kBits);
    }
  }
}

mx::array allocate(mx::Shape shape, mx::Dtype dtype) {
  std::size_t bytes = size_of(dtype);
  for (const int size : shape) bytes *= static_cast<std::size_t>(size);
  return mx::array(mx::allocator::malloc(bytes), std::move(shape), dtype);
}

// `shape` with another last dimension.
mx::Shape with_last(mx::Shape shape, std::int64_t last, const TensorEntry& entry) {
  shape.back() = checked_cast<int>(last, describe(entry));
  return shape;
}

// read(block) for every block in order; the file's pages are given back on the way.
template <typename Read>
void for_blocks(const TensorEntry& entry, Read&& read) {
  const auto block_bytes = static_cast<std::size_t>(info(entry.format).block_bytes);
  read_once(entry.bytes(), block_bytes, [&](std::span<const std::byte> piece) {
    const auto* block = reinterpret_cast<Bytes>(piece.data());
    for (std::size_t left = piece.size() / block_bytes; left > 0; --left, block += block_bytes) read(block);
  });
}

// `split` turns one block into its groups; it is a template argument so that it is inlined into the loop over
// blocks.
template <int kBits, void (*split)(Bytes, Group*)>
Weight affine_weight(const TensorEntry& entry) {
  const std::int64_t columns = entry.shape.back();
  mx::array data = allocate(with_last(entry.shape, columns / 32 * kBits, entry), mx::uint32);
  mx::array scales = allocate(with_last(entry.shape, columns / kGroup, entry), mx::float32);
  mx::array biases = allocate(scales.shape(), mx::float32);
  const int groups = info(entry.format).block_elements / kGroup;
  auto* words = data.data<std::uint32_t>();
  float *scale = scales.data<float>(), *bias = biases.data<float>();
  std::array<Group, 8> parts;
  for_blocks(entry, [&](Bytes block) {
    split(block, parts.data());
    for (int g = 0; g < groups; ++g, words += kBits) {
      const Group& group = parts[static_cast<std::size_t>(g)];
      *scale++ = group.scale;
      *bias++ = group.bias;
      pack<kBits>(group, words);
    }
  });
  return {.kind = WeightKind::affine,
          .format = entry.format,
          .bits = kBits,
          .group = kGroup,
          .data = data,
          .scales = scales,
          .biases = biases};
}

Weight mxfp4_weight(const TensorEntry& entry) {
  const std::int64_t columns = entry.shape.back();
  mx::array data = allocate(with_last(entry.shape, columns / 8, entry), mx::uint32);
  mx::array scales = allocate(with_last(entry.shape, columns / kGroup, entry), mx::uint8);
  auto* words = data.data<std::uint32_t>();
  auto* scale = scales.data<std::uint8_t>();
  Group group{};
  for_blocks(entry, [&](Bytes block) {
    *scale++ = block[0];
    take_nibbles(block + 1, group);
    pack<4>(group, words);
    words += 4;
  });
  return {.kind = WeightKind::mxfp4,
          .format = entry.format,
          .bits = 4,
          .group = kGroup,
          .data = data,
          .scales = scales,
          .biases = std::nullopt};
}

Weight repacked(const TensorEntry& entry) {
  switch (entry.format) {
    case TensorFormat::q4_0:
      return affine_weight<4, split_q4_0>(entry);
    case TensorFormat::q4_1:
      return affine_weight<4, split_q4_1>(entry);
    case TensorFormat::q5_0:
      return affine_weight<5, split_q5_0>(entry);
    case TensorFormat::q5_1:
      return affine_weight<5, split_q5_1>(entry);
    case TensorFormat::q8_0:
      return affine_weight<8, split_q8_0>(entry);
    case TensorFormat::q4_k:
      return affine_weight<4, split_q4_k>(entry);
    case TensorFormat::q5_k:
      return affine_weight<5, split_q5_k>(entry);
    case TensorFormat::mxfp4:
      return mxfp4_weight(entry);
    default:
      return {.kind = WeightKind::blocks,
              .format = entry.format,
              .data = to_byte_array(entry),
              .scales = std::nullopt,
              .biases = std::nullopt};
  }
}

}  // namespace

bool is_float(TensorFormat format) {
  return format == TensorFormat::f32 || format == TensorFormat::f16 || format == TensorFormat::bf16;
}

bool is_block_format(TensorFormat format) { return info(format).block_elements > 1; }

kernels::BlockFormat block_format(TensorFormat format) {
  GODWIT_CHECK(is_block_format(format), "{} has no blocks", info(format).name);
  return static_cast<kernels::BlockFormat>(static_cast<int>(format) - static_cast<int>(TensorFormat::q4_0));
}
static_assert(static_cast<int>(TensorFormat::mxfp4) - static_cast<int>(TensorFormat::q4_0) ==
              static_cast<int>(kernels::BlockFormat::mxfp4));

Weight load_blocks(const TensorEntry& entry) {
  if (entry.shape.size() == 1) {  // a weight always has rows: one
    TensorEntry row = entry;
    row.shape = {1, entry.shape[0]};
    return load_blocks(row);
  }
  Weight weight = repacked(entry);
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < entry.shape.size(); ++i) rows *= entry.shape[i];
  weight.rows = checked_cast<int>(rows, describe(entry));
  weight.columns = entry.shape.back();
  return weight;
}

}  // namespace godwit::checkpoint
