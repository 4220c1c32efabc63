// How a model's KV state is stored: the value behind --kv. Parsed once, compared by value, part of every
// cache key.
#pragma once

#include <string>
#include <string_view>

namespace godwit::cache {

enum class DenseType { model, bf16, f16, f32 };

// Today the dense codec; affine and turbo join here (docs/adding-a-codec.md).
struct KvPolicy {
  DenseType dense = DenseType::model;

  bool operator==(const KvPolicy&) const = default;
};

// "dense", "dense:bf16", "dense:f16", "dense:f32". Anything else is Error{unsupported} that lists what
// exists.
KvPolicy parse_kv_policy(std::string_view text);
std::string to_string(const KvPolicy& policy);

}  // namespace godwit::cache
