// How a model's KV state is stored: the value behind --kv and --kv-start. Parsed once, compared by value, part
// of every cache key.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace godwit::cache {

enum class CodecKind { dense, affine, turbo };

// How the keys and values of a layer are encoded. Fields of other kinds are 0.
struct Codec {
  CodecKind kind = CodecKind::dense;
  int bits = 0, group = 0;            // affine: 2, 3, 4, 5, 6, 8 bits; 32, 64 or 128 elements share a scale
  int key_bits = 0, value_bits = 0;   // turbo: keys of 2, 4, 5, 8 bits, values of 2, 3, 4, 5, 8
  bool parity = false;                // turbo: the published format, in which a constant group of keys is lost

  bool operator==(const Codec&) const = default;
};

enum class DenseType { model, bf16, f16, f32 };

struct KvPolicy {
  Codec codec = {};                     // of every layer that `layers` does not name
  DenseType dense = DenseType::model;   // type of dense layers, and of what lies before `start`
  bool per_layer = false;               // "config": `layers` comes from the model's kv_config.json
  std::map<int, Codec> layers = {};     // by owning layer
  int start = 0;                        // tokens that a row holds densely before it is encoded

  const Codec& codec_of(int layer) const;
  bool operator==(const KvPolicy&) const = default;
};

// Tables and signs of the turbo codec are frozen; a changed table needs a new number, since old bytes would be
// misread. Part of every signature.
inline constexpr int kTurboTableVersion = 1;

// "dense", "dense:bf16|f16|f32", "affine:BITS[:GROUP]" (group 64), "turbo:KEY_BITS:VALUE_BITS[:parity]",
// "config". Anything else is Error{invalid_argument} that lists what exists.
KvPolicy parse_kv_policy(std::string_view text);
std::string to_string(const KvPolicy& policy);  // what parse_kv_policy reads; the start is not part of it
std::string to_string(const Codec& codec);

// Fills policy.layers from the text of a kv_config.json: a list of {layer_idx, bits, group_size} over the
// layers that own state. Error{corrupt_file} naming `origin` for a layer that is not there or named twice.
void read_kv_config(KvPolicy& policy, std::string_view json, const std::string& origin, int owning_layers);

}  // namespace godwit::cache
