// The choices that all rows of a store share, worked out once when it is made. Private to cache.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cache/block.h"
#include "cache/native_layout.h"
#include "cache/reference_layout.h"
#include "cache/state.h"

namespace godwit::cache {

// Layers with equal needs and codecs: they share one table, and a block holds all of them.
struct LayerGroup {
  LayerNeed need;
  Codec codec;
  std::vector<int> layers;  // owning layers, ascending; slot s of a block is layers[s]

  bool is_encodable() const { return codec.kind != CodecKind::dense; }
  int window() const { return need.window == WindowKind::sliding ? need.window_size : 0; }

  // Where a block's planes lie, before and after the row turns to its codec.
  NativeLayout native_dense, native_encoded;
  // `reference`: worked out by the first step that stores.
  std::shared_ptr<std::optional<ReferenceLayout>> reference_dense, reference_encoded;

  const NativeLayout& native(bool encoded) const {
    return encoded && is_encodable() ? native_encoded : native_dense;
  }
  std::optional<ReferenceLayout>& reference(bool encoded) const {
    return encoded && is_encodable() ? *reference_encoded : *reference_dense;
  }
};

// Where layer l lives: slot `index` of a group's blocks, or entry `index` of the row's recurrent or cross states.
struct LayerPlace {
  Content content;
  std::size_t group = 0;
  std::size_t index = 0;
};

struct StoreChoices {
  // Error{unsupported} naming the first layer that the policy or the mode cannot serve.
  StoreChoices(StateNeeds needs, KvPolicy policy, NumericMode mode, ops::NativeRuntime* runtime);

  KvSignature signature;
  std::vector<LayerGroup> groups;
  std::vector<LayerPlace> places;     // by layer
  std::vector<int> recurrent, cross;  // layers, in the order of a row's states
  std::shared_ptr<BlockPool> pool;
  ops::NativeRuntime* runtime;  // null: `native` layers attend inside the fused primitive only
  bool is_encodable = false;    // some group is

  bool is_native() const { return signature.mode == NumericMode::native; }
  const StateNeeds& needs() const { return signature.needs; }
  const KvPolicy& policy() const { return signature.policy; }
};

// Bytes that one token of the layer takes, dense or in its codec.
std::size_t token_bytes(const LayerNeed& need, const Codec& codec, DenseType dense, NumericMode mode);

}  // namespace godwit::cache
