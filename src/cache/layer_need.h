// What one state-owning layer of a model must remember. A family lists its needs; the state store allocates.
#pragma once

#include <vector>

namespace godwit::cache {

enum class WindowKind { full, sliding };

// Which planes a token leaves. The last two have no token axis.
enum class Content {
  keys_values,
  keys_as_values,  // one plane: a value is the first value_dim elements of its key
  latent,          // a latent of key_dim, a rotary key of value_dim and, with index_dim, a key for sparse selection.
                   // Attention takes the two as one key of one head, and the latent as its value
  cross,           // keys and values that are written once for a whole row (an encoder's) and then only read
  recurrent,       // a gated delta state and the tail of a convolution
};

// Sizes of a recurrent layer: the state is [value_heads, value_dim, key_dim] f32, the tail the newest
// kernel - 1 inputs [channels] of the convolution.
struct RecurrentNeed {
  int key_heads = 0, value_heads = 0;
  int key_dim = 0, value_dim = 0;
  int channels = 0, kernel = 0;

  bool operator==(const RecurrentNeed&) const = default;
};

struct LayerNeed {
  Content content = Content::keys_values;
  WindowKind window = WindowKind::full;
  int window_size = 0;  // positions a query sees, itself included; only for sliding
  int kv_heads = 0;
  int key_dim = 0;
  int value_dim = 0;
  int index_dim = 0;  // latent only
  RecurrentNeed recurrent = {};
  // Bytes of one element of the model's own activations: what a `dense` policy without a type will hold.
  // Budgets only; the buffers take the dtype of the arrays they are given.
  int element_bytes = 4;

  bool has_tokens() const { return content != Content::cross && content != Content::recurrent; }
  // Elements of a query's head, and of what attention answers for it.
  int query_dim() const { return content == Content::latent ? key_dim + value_dim : key_dim; }
  int output_dim() const { return content == Content::latent ? key_dim : value_dim; }
  bool operator==(const LayerNeed&) const = default;
};

// One entry per owning layer, in layer order.
using StateNeeds = std::vector<LayerNeed>;

}  // namespace godwit::cache
