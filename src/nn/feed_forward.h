// What stands in the second branch of a decoder layer: an MLP, dense or of experts.
#pragma once

#include <variant>

#include "base/mx.h"
#include "ops/native_branch.h"
#include "ops/native_experts.h"

namespace godwit::nn {

// One fused primitive each.
using FeedForwardPlan = std::variant<ops::MlpPlan, ops::SparseMlpPlan>;

class FeedForward {
 public:
  virtual ~FeedForward() = default;
  // x [tokens, hidden] -> [tokens, hidden], each token by itself.
  virtual mx::array operator()(const mx::array& x) const = 0;
  // Whether its matrices are packed for our kernels: `native` mode.
  virtual bool is_native() const = 0;
  // What a fused primitive takes, but the norms around the branch. Error{unsupported} naming what our kernels
  // cannot do.
  virtual FeedForwardPlan plan() const = 0;
};

}  // namespace godwit::nn
