// Shared by the tests of KV planes: the codecs, and one row's tokens stored in blocks.
#pragma once

#include <string>

#include "kernels/attention.h"
#include "kernels/kernel_test_support.h"
#include "kernels/kv_codec.h"

namespace godwit::kernels {

struct Codec {
  std::string name;
  KvPlane keys, values;
};

// Every form of keys with some form of values; heads, dims and offsets are filled in by Tokens.
inline std::vector<Codec> all_codecs() {
  std::vector<Codec> out;
  for (const int bits : {2, 3, 4, 5, 6, 8})
    for (const int group : {32, 64, 128})
      out.push_back({"affine:" + std::to_string(bits) + ":" + std::to_string(group),
                     {KvForm::affine, bits, group},
                     {KvForm::affine, bits, group}});
  for (const int keys : {2, 4, 5, 8})
    for (const int values : {2, 3, 4, 5, 8})
      for (const bool parity : {false, true})
        out.push_back(
            {"turbo:" + std::to_string(keys) + ":" + std::to_string(values) + (parity ? ":parity" : ""),
             {KvForm::turbo_keys, keys, 32, parity},
             {KvForm::turbo_values, values, 32}});
  out.push_back({"f16 keys, affine values", {KvForm::f16}, {KvForm::affine, 8, 32}});
  out.push_back({"turbo keys, bf16 values", {KvForm::turbo_keys, 8, 32}, {KvForm::bf16}});
  out.push_back({"f32 keys, f16 values", {KvForm::f32}, {KvForm::f16}});
  return out;
}

struct TokenShape {
  std::int64_t kv_heads, key_dim, value_dim, positions;
  bool keys_as_values = false;
};

// Gaussian tokens of one row. Slots that hold no token are all ones: NaN in dense forms.
class Tokens {
 public:
  Tokens(const TokenShape& token_shape, const Codec& codec, std::uint32_t seed)
      : shape(token_shape),
        keys(codec.keys),
        values(codec.values),
        k(shape.positions * shape.kv_heads * shape.key_dim),
        v(shape.positions * shape.kv_heads * shape.value_dim) {
    Numbers numbers(seed);
    numbers.fill(k);
    numbers.fill(v);
    if (shape.keys_as_values) values = keys;
    keys.heads = values.heads = shape.kv_heads;
    keys.dim = shape.key_dim;
    values.dim = shape.value_dim;
    if (!shape.keys_as_values) values.offset = (plane_bytes(keys) + 63) / 64 * 64;
    for (std::int64_t at = 0; at < shape.positions; at += kBlockPositions) {
      storage.emplace_back(block_bytes());
      std::memset(storage.back().data(), 0xff, static_cast<std::size_t>(block_bytes()));
      blocks.push_back(storage.back().data());
    }
  }
  std::int64_t block_bytes() const {
    return shape.keys_as_values ? plane_bytes(keys) : values.offset + plane_bytes(values);
  }
  void store(std::int64_t chunk) {
    const std::int64_t k_stride = shape.kv_heads * shape.key_dim, v_stride = shape.kv_heads * shape.value_dim;
    for (std::int64_t at = 0; at < shape.positions; at += chunk)
      store_kv({k.data() + at * k_stride, v.data() + at * v_stride, blocks.data(), keys, values, at,
                std::min(chunk, shape.positions - at), k_stride, v_stride});
  }
  // What is stored, decoded at `level` into dense f32 blocks.
  Tokens decoded(Level level) const {
    Tokens out({shape.kv_heads, shape.key_dim, shape.value_dim, shape.positions}, {"f32", {}, {}}, 0);
    Buffer<float> key_tile(shape.key_dim * kBlockPositions), value_tile(shape.value_dim * kBlockPositions);
    for (std::size_t b = 0; b < blocks.size(); b++)
      for (std::int64_t head = 0; head < shape.kv_heads; head++) {
        const std::int64_t count =
            std::min(kBlockPositions, shape.positions - static_cast<std::int64_t>(b) * kBlockPositions);
        kernels_for(level).decode_kv(
            {blocks[b], keys, values, head, 0, count, key_tile.data(), value_tile.data()});
        auto* to = static_cast<std::byte*>(out.blocks[b]);
        const auto key_bytes = static_cast<std::size_t>(key_tile.size()) * 4;
        const auto value_bytes = static_cast<std::size_t>(value_tile.size()) * 4;
        std::memcpy(to + static_cast<std::size_t>(head) * key_bytes, key_tile.data(), key_bytes);
        std::memcpy(to + out.values.offset + static_cast<std::size_t>(head) * value_bytes, value_tile.data(),
                    value_bytes);
      }
    return out;
  }

  TokenShape shape;
  KvPlane keys, values;
  Buffer<float> k, v;
  std::vector<Buffer<std::byte>> storage;
  std::vector<void*> blocks;
};

}  // namespace godwit::kernels
