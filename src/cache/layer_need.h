// What one state-owning layer of a model must remember. A family lists its needs; the state store allocates.
#pragma once

#include <vector>

namespace godwit::cache {

enum class WindowKind { full, sliding };

struct LayerNeed {
  WindowKind window = WindowKind::full;
  int window_size = 0;  // positions a query sees, itself included; only for sliding
  int kv_heads = 0;
  int key_dim = 0;
  int value_dim = 0;
  // Bytes of one element of the model's own activations: what a `dense` policy without a type will hold.
  // Budgets only; the buffers take the dtype of the arrays they are given.
  int element_bytes = 4;

  bool operator==(const LayerNeed&) const = default;
};

// One entry per owning layer, in layer order.
using StateNeeds = std::vector<LayerNeed>;

}  // namespace godwit::cache
