#include "cache/store_choices.h"

#include <algorithm>
#include <utility>

#include "cache/serveable.h"
#include "kernels/kv_plane.h"

namespace godwit::cache {
namespace {

// The group of layers that share a table with layer `index`, made if it is the first.
LayerGroup& group_of(StoreChoices& choices, const LayerNeed& need, const Codec& codec) {
  for (LayerGroup& group : choices.groups)
    if (group.need == need && group.codec == codec) return group;
  LayerGroup group;
  group.need = need;
  group.codec = codec;
  group.reference_dense = std::make_shared<std::optional<ReferenceLayout>>();
  group.reference_encoded = std::make_shared<std::optional<ReferenceLayout>>();
  return choices.groups.emplace_back(std::move(group));
}

void place_layer(StoreChoices& choices, int layer) {
  const LayerNeed& need = choices.needs()[static_cast<std::size_t>(layer)];
  if (!need.has_tokens()) {
    std::vector<int>& states = need.content == Content::cross ? choices.cross : choices.recurrent;
    choices.places.push_back({need.content, 0, states.size()});
    states.push_back(layer);
    return;
  }
  LayerGroup& group = group_of(choices, need, choices.policy().codec_of(layer));
  const auto index = static_cast<std::size_t>(&group - choices.groups.data());
  choices.places.push_back({need.content, index, group.layers.size()});
  group.layers.push_back(layer);
}

int element_bytes(const LayerNeed& need, DenseType dense, NumericMode mode) {
  if (dense == DenseType::f32) return 4;
  if (dense != DenseType::model) return 2;
  return mode == NumericMode::native ? 4 : need.element_bytes;
}

// `reference` holds affine scales and biases in the dtype of the model, turbo's in f16.
std::size_t reference_plane_bytes(int heads, int dim, int bits, int parameters, int parameter_bytes) {
  return static_cast<std::size_t>(heads) * static_cast<std::size_t>(dim * bits / 8 + parameters * parameter_bytes);
}

std::size_t reference_token_bytes(const LayerNeed& need, const Codec& codec, int element) {
  const auto both = [&](auto&& bytes) {
    const bool has_values = need.content != Content::keys_as_values;
    return bytes(need.key_dim) + (has_values ? bytes(need.value_dim) : 0);
  };
  switch (codec.kind) {
    case CodecKind::dense:
      return both([&](int dim) { return reference_plane_bytes(need.kv_heads, dim, 8 * element, 0, 0); }) +
             static_cast<std::size_t>(need.index_dim * element);
    case CodecKind::affine:
      return both([&](int dim) {
        return reference_plane_bytes(need.kv_heads, dim, codec.bits, 2 * dim / codec.group, element);
      });
    case CodecKind::turbo:
      return reference_plane_bytes(need.kv_heads, need.key_dim, codec.key_bits, 2 * need.key_dim / 32, 2) +
             reference_plane_bytes(need.kv_heads, need.value_dim, codec.value_bits, need.value_dim / 32, 2);
  }
  return 0;
}

std::size_t native_token_bytes(const LayerNeed& need, const Codec& codec, DenseType dense) {
  const NativePlanes planes = native_layout(need, codec, dense, 1).slots.front();
  std::int64_t bytes = kernels::plane_bytes(planes.keys);
  if (!kernels::keys_as_values(planes.keys, planes.values)) bytes += kernels::plane_bytes(planes.values);
  return static_cast<std::size_t>(bytes / kPositions);
}

}  // namespace

StoreChoices::StoreChoices(StateNeeds needs, KvPolicy policy, NumericMode mode, ops::NativeRuntime* used)
    : signature{.mode = mode, .policy = std::move(policy), .needs = std::move(needs)},
      pool(std::make_shared<BlockPool>()),
      runtime(used) {
  check_serveable(signature.needs, signature.policy, mode);
  for (int layer = 0; layer < static_cast<int>(signature.needs.size()); ++layer) place_layer(*this, layer);
  for (LayerGroup& group : groups) {
    is_encodable = is_encodable || group.is_encodable();
    if (mode != NumericMode::native) continue;
    const DenseType dense = signature.policy.dense;
    group.native_dense = native_layout(group.need, Codec{}, dense, group.layers.size());
    group.native_encoded = native_layout(group.need, group.codec, dense, group.layers.size());
  }
}

std::size_t token_bytes(const LayerNeed& need, const Codec& codec, DenseType dense, NumericMode mode) {
  if (!need.has_tokens()) return 0;
  if (mode == NumericMode::native) return native_token_bytes(need, codec, dense);
  return reference_token_bytes(need, codec, element_bytes(need, dense, mode));
}

}  // namespace godwit::cache
