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
};

// One entry per owning layer, in layer order.
using StateNeeds = std::vector<LayerNeed>;

}  // namespace godwit::cache
