// Where the layers of a group lie in a block of `native` mode. Private to cache.
#pragma once

#include <cstddef>
#include <vector>

#include "cache/kv_policy.h"
#include "cache/layer_need.h"
#include "kernels/kv_plane.h"

namespace godwit::cache {

struct NativePlanes {
  // `keys_as_values` and `latent`: one plane, named twice. A latent's keys are [latent | rotary key] of one head, its
  // values the latent in them.
  kernels::KvPlane keys, values;
};

struct NativeLayout {
  std::size_t bytes = 0;            // of a block
  std::vector<NativePlanes> slots;  // by slot of the group
};

// `dense` is the element type of a dense codec; `model` is f32, in which native activations are.
NativeLayout native_layout(const LayerNeed& need, const Codec& codec, DenseType dense, std::size_t slots);

}  // namespace godwit::cache
