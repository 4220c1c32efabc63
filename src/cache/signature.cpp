#include <fmt/format.h>

#include "cache/state.h"

namespace godwit::cache {
namespace {

std::string contents(const LayerNeed& need) {
  switch (need.content) {
    case Content::keys_values:
      return fmt::format("({}x{},{})", need.kv_heads, need.key_dim, need.value_dim);
    case Content::keys_as_values:
      return fmt::format("({}x{}={})", need.kv_heads, need.key_dim, need.value_dim);
    case Content::latent:
      return fmt::format("latent({},{},{})", need.key_dim, need.value_dim, need.index_dim);
    case Content::cross:
      return fmt::format("cross({}x{},{})", need.kv_heads, need.key_dim, need.value_dim);
    case Content::recurrent: {
      const RecurrentNeed& r = need.recurrent;
      return fmt::format("recurrent({},{}x{}x{},{}x{})", r.key_heads, r.value_heads, r.value_dim, r.key_dim,
                         r.channels, r.kernel);
    }
  }
  return "?";
}

std::string layer_text(const LayerNeed& need, const Codec* codec) {
  const std::string window =
      need.window == WindowKind::full ? "full" : fmt::format("sliding{{{}}}", need.window_size);
  return window + contents(need) + fmt::format(":{}", need.element_bytes) + (codec ? "@" + to_string(*codec) : "");
}

}  // namespace

std::string KvSignature::to_string() const {
  const auto text_of = [&](std::size_t i) {
    const auto own = policy.layers.find(static_cast<int>(i));
    return layer_text(needs[i], own == policy.layers.end() ? nullptr : &own->second);
  };
  std::string text = fmt::format("{} {} start={} tables={}", mode == NumericMode::native ? "native" : "reference",
                                 cache::to_string(policy), policy.start, table_version);
  for (std::size_t i = 0; i < needs.size();) {
    const std::string layer = text_of(i);
    std::size_t end = i + 1;
    while (end < needs.size() && text_of(end) == layer) ++end;
    text += fmt::format(" {}*{}", end - i, layer);
    i = end;
  }
  return text;
}

}  // namespace godwit::cache
