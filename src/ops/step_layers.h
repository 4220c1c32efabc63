// The layers of a step that native primitives read and write.
#pragma once

#include <span>

namespace godwit::ops {

struct KvLayer;
struct DeltaLayer;

// Both by the index of the layer. A layer lies in the span of its kind; its entry in the other is empty.
struct StepLayers {
  std::span<KvLayer> kv = {};
  std::span<DeltaLayer> delta = {};
};

}  // namespace godwit::ops
