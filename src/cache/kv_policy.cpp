#include "cache/kv_policy.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace godwit::cache {
namespace {

struct Spelling {
  std::string_view text;
  DenseType type;
};

// The first spelling of a type is the one that to_string() writes.
constexpr std::array kSpellings = {
    Spelling{"dense", DenseType::model},     Spelling{"dense:model", DenseType::model},
    Spelling{"dense:bf16", DenseType::bf16}, Spelling{"dense:f16", DenseType::f16},
    Spelling{"dense:f32", DenseType::f32},
};

}  // namespace

KvPolicy parse_kv_policy(std::string_view text) {
  const auto found = std::ranges::find(kSpellings, text, &Spelling::text);
  if (found != kSpellings.end()) return {.dense = found->type};
  fail(ErrorCode::unsupported, "kv",
       "no KV policy '{}'; there are dense, dense:bf16, dense:f16 and dense:f32", text);
}

std::string to_string(const KvPolicy& policy) {
  return std::string(std::ranges::find(kSpellings, policy.dense, &Spelling::type)->text);
}

}  // namespace godwit::cache
