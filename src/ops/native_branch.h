// The two branches of a decoder layer, each as one node:
//   attention: x + after(o(gated(attend(rope(norm(q), norm(k)), v)))),  q, k, v from before(x)
//   mlp:       x + after(down(activation(gate) * up)),           gate, up from before(x)
// x is [tokens, hidden] f32. The bits of a row depend on its own tokens alone: not on the tokens beside it,
// nor on the number of threads.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/mx.h"
#include "kernels/gated.h"
#include "ops/native_layers.h"
#include "ops/packed_matrix.h"

namespace godwit::ops {

// Half-split rotation of the first `dims` elements of a head.
struct RopePlan {
  std::int64_t dims = 0;
  std::vector<double> inverse_frequencies;  // [dims / 2], radians per position

  bool operator==(const RopePlan&) const = default;
};

// What a layer's attention is made of; made at load, shared by all steps.
struct AttentionPlan {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;  // a multiple of 16, at most kernels::kMaxHeadDim
  float scale = 1.0f;
  NormPlan before;
  // Behind the rows of each head of q those of its gate, whose sigmoid is multiplied into what the head attends to.
  bool is_gated = false;
  PackedLinear q, k, v, o;
  std::optional<NormPlan> q_norm, k_norm;  // [head_dim], before the rotation
  std::optional<RopePlan> rope;
  std::optional<NormPlan> after;
};

struct MlpPlan {
  kernels::Activation activation = kernels::Activation::silu;
  NormPlan before;
  PackedLinear gate, up, down;
  std::optional<NormPlan> after;
};

// Stores this step's keys and values through layer `layer` of the step that it is run with, then attends.
mx::array attention_branch(const mx::array& x, std::shared_ptr<const AttentionPlan> plan, int layer);
mx::array mlp_branch(const mx::array& x, std::shared_ptr<const MlpPlan> plan);

}  // namespace godwit::ops
