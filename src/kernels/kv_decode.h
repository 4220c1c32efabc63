// Reading one KV head of one block into f32 tiles, in the layout that attention wants.
#pragma once

#include <cstdint>

#include "kernels/kv_plane.h"

namespace godwit::kernels {

// Slots [first, last) of a head; the others of a tile are left alone or get meaningless values. Values of
// turbo_values planes stay in the rotated domain. The formulas are kv_codec.h's, every product and sum
// rounded.
struct DecodeKvArgs {
  const void* block;
  KvPlane keys, values;  // keys_as_values: the value tile holds the first values.dim elements of the keys
  std::int64_t head;
  std::int64_t first, last;
  float* key_tile;    // [keys.dim, 64]
  float* value_tile;  // [64, values.dim]
};

}  // namespace godwit::kernels
