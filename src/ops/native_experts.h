// The mlp branch of a layer of experts, as one node:
//   x + after(sum over the experts e of a row of share_e mlp_e(n) + sigmoid(n . gate) shared(n)),  n =
//   before(x)
// x is [tokens, hidden] f32. The terms of a row are added by ascending expert, the shared one last, so that
// its bits depend on its own choice alone.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/mx.h"
#include "kernels/gated.h"
#include "ops/expert_router.h"
#include "ops/native_layers.h"
#include "ops/packed_matrix.h"

namespace godwit::ops {

// down(activation(gate(x)) * up(x)), without biases.
struct GatedMatrices {
  std::shared_ptr<const PackedMatrix> gate, up, down;

  std::int64_t hidden() const { return gate->shape().columns; }
  std::int64_t width() const { return gate->shape().rows; }
};

// What every token runs beside its experts.
struct SharedExpert {
  GatedMatrices matrices;
  std::vector<float> gate;  // [hidden]: its share is the sigmoid of the product with this
};

struct SparseMlpPlan {
  kernels::Activation activation = kernels::Activation::silu;
  NormPlan before;
  RouterPlan router;
  std::vector<GatedMatrices> experts;  // all of one width
  std::optional<SharedExpert> shared;
  std::optional<NormPlan> after;
};

mx::array mlp_branch(const mx::array& x, std::shared_ptr<const SparseMlpPlan> plan);

}  // namespace godwit::ops
