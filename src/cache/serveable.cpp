#include "cache/serveable.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"
#include "kernels/attention.h"
#include "kernels/gated_delta.h"

namespace godwit::cache {
namespace {

constexpr std::array kTurboDims = {64, 128, 256, 512};

struct Layer {
  int index;
  const LayerNeed& need;
};

template <typename... Args>
[[noreturn]] void refuse(const Layer& layer, fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorCode::unsupported, "kv", "layer {}: {}", layer.index, fmt::format(format, std::forward<Args>(args)...));
}

const char* name_of(Content content) {
  switch (content) {
    case Content::keys_values:
      return "keys and values";
    case Content::keys_as_values:
      return "keys that serve as values";
    case Content::latent:
      return "a latent";
    case Content::cross:
      return "cross keys and values";
    case Content::recurrent:
      return "a recurrent state";
  }
  return "?";
}

void check_sizes(const Layer& layer) {
  const LayerNeed& need = layer.need;
  const RecurrentNeed& r = need.recurrent;
  const bool is_recurrent = need.content == Content::recurrent;
  const bool sizes = is_recurrent ? r.key_heads > 0 && r.value_heads > 0 && r.value_heads % r.key_heads == 0 &&
                                        r.key_dim > 0 && r.value_dim > 0 && r.kernel > 0 &&
                                        r.channels == 2 * r.key_heads * r.key_dim + r.value_heads * r.value_dim
                                  : need.kv_heads > 0 && need.key_dim > 0 && need.value_dim > 0 &&
                                        need.index_dim >= 0 && need.element_bytes > 0;
  const bool window = need.window == WindowKind::full || need.window_size > 0;
  const bool shared = need.content != Content::keys_as_values || need.value_dim <= need.key_dim;
  const bool latent = need.content == Content::latent ? need.kv_heads == 1 : need.index_dim == 0;
  if (!sizes || !window || !shared || !latent)
    fail(ErrorCode::invalid_argument, "state", "layer {}: kv heads {}, key {}, value {}, window {}", layer.index,
         need.kv_heads, need.key_dim, need.value_dim, need.window_size);
}

void check_native(const Layer& layer) {
  const LayerNeed& need = layer.need;
  if (need.content == Content::recurrent) {
    if (need.recurrent.kernel > kernels::kMaxConvolution)
      refuse(layer, "native convolutions reach back {} inputs at most, this one {}", kernels::kMaxConvolution,
             need.recurrent.kernel);
    return;
  }
  if (need.index_dim > 0)
    refuse(layer, "native mode has no keys for sparse selection yet; --math reference has");
  for (const int dim : {need.query_dim(), need.output_dim()})
    if (dim % 16 != 0 || dim > kernels::kMaxHeadDim)
      refuse(layer, "native attention takes heads whose size is a multiple of 16 up to {}: keys have {}, values {}",
             kernels::kMaxHeadDim, need.query_dim(), need.output_dim());
}

void check_affine(const Layer& layer, const Codec& codec, NumericMode mode) {
  const bool has_values = layer.need.content == Content::keys_values;
  if (!has_values && layer.need.content != Content::keys_as_values)
    refuse(layer, "{} is for keys and values; this layer holds {}", to_string(codec), name_of(layer.need.content));
  for (const int dim : {layer.need.key_dim, has_values ? layer.need.value_dim : layer.need.key_dim})
    if (dim % codec.group != 0)
      refuse(layer, "{}: a head of {} elements is no multiple of the group of {}", to_string(codec), dim, codec.group);
  // The oracle's product takes codes whole; native decodes them first.
  if (!has_values && mode == NumericMode::reference && layer.need.value_dim != layer.need.key_dim)
    refuse(layer, "{}: values are the first {} of {} elements of a key, which reference mode reads dense only",
           to_string(codec), layer.need.value_dim, layer.need.key_dim);
}

void check_turbo(const Layer& layer, const Codec& codec) {
  const LayerNeed& need = layer.need;
  if (need.content != Content::keys_values)
    refuse(layer, "{} is for keys and values; this layer holds {}", to_string(codec), name_of(need.content));
  if (need.window == WindowKind::sliding)
    refuse(layer, "{} is for layers that attend to everything; this one slides over {} tokens. affine serves both",
           to_string(codec), need.window_size);
  for (const int dim : {need.key_dim, need.value_dim})
    if (std::ranges::find(kTurboDims, dim) == kTurboDims.end())
      refuse(layer, "{} takes heads of 64, 128, 256 or 512 elements, this layer's have {}", to_string(codec), dim);
}

void check_codec(const Layer& layer, const Codec& codec, NumericMode mode) {
  // Such layers have no token axis to encode: they stay as they are under every policy.
  if (!layer.need.has_tokens()) return;
  if (codec.kind == CodecKind::affine) check_affine(layer, codec, mode);
  if (codec.kind == CodecKind::turbo) check_turbo(layer, codec);
}

}  // namespace

void check_serveable(const StateNeeds& needs, const KvPolicy& policy, NumericMode mode) {
  if (policy.start < 0)
    fail(ErrorCode::invalid_argument, "kv", "the start is {}: it counts tokens", policy.start);
  for (const auto& [index, codec] : policy.layers)
    if (index < 0 || index >= static_cast<int>(needs.size()))
      fail(ErrorCode::invalid_argument, "kv", "the policy names layer {}; {} layers own state", index, needs.size());
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const Layer layer{static_cast<int>(i), needs[i]};
    check_sizes(layer);
    if (mode == NumericMode::native) check_native(layer);
    check_codec(layer, policy.codec_of(layer.index), mode);
  }
}

}  // namespace godwit::cache
