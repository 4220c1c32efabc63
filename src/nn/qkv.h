// The projections to queries, keys and values, in the ways that checkpoints pack them.
#pragma once

#include <optional>

#include "base/mx.h"
#include "checkpoint/weight_scope.h"
#include "nn/linear.h"

namespace godwit::nn {

enum class QkvPacking {
  separate,  // q_proj, k_proj, v_proj
  stacked,   // qkv_proj: all queries, then all keys, then all values
  grouped,   // qkv_proj: for each key head its query heads, then the key, then the value
  gated,     // q_proj: for each head its query, then its gate; k_proj, v_proj
};

struct QkvShape {
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
};

// Each [tokens, heads, head_dim].
struct QkvHeads {
  mx::array q, k, v;
  std::optional<mx::array> gate = {};  // of the attention's output: `gated` only
};

class Qkv {
 public:
  // Reads scope.{q_proj, k_proj, v_proj}, or scope.qkv_proj. Packed matrices are multiplied whole and split behind the
  // product, as the oracle does. In native mode qkv_proj is Error{unsupported}.
  Qkv(const checkpoint::WeightScope& scope, const QkvShape& shape, QkvPacking packing, bool bias);

  QkvHeads operator()(const mx::array& x) const;

  // Whether all of it is packed for our kernels, and the parts of a fused primitive: q, where gated with its gates.
  bool is_native() const { return first_.is_native() && k_ && k_->is_native() && v_->is_native(); }
  const ops::PackedLinear& q() const { return first_.native(); }
  const ops::PackedLinear& k() const { return k_->native(); }
  const ops::PackedLinear& v() const { return v_->native(); }

 private:
  QkvHeads split_stacked(const mx::array& y) const;
  QkvHeads split_grouped(const mx::array& y) const;
  mx::array heads(const mx::array& part, int count) const;

  QkvShape shape_;
  QkvPacking packing_;
  Linear first_;  // q_proj or qkv_proj
  std::optional<Linear> k_, v_;
};

}  // namespace godwit::nn
