// The composed form of native nodes: what they compute, in MLX operations of x's dtype. It is their oracle, and the
// rule of their gradients: rounding to int8 counts as the identity there. Private to ops.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mx.h"
#include "kernels/gated.h"
#include "ops/native_branch.h"
#include "ops/native_layers.h"
#include "ops/packed_matrix.h"

namespace godwit::ops {

// Where a composed form takes a node's constants from: from its plan, or from arrays in their place.
class Constants {
 public:
  Constants() = default;
  // `replaced`: by name, each of the shape that the plan's has.
  explicit Constants(std::map<std::string, mx::array> replaced) : replaced_(std::move(replaced)) {}

  mx::array floats(const std::string& name, std::span<const float> values, const mx::Shape& shape);
  // [rows, columns] f32, decoded when it is evaluated. Quantized ones are nobody's parameters.
  mx::array matrix(const std::string& name, const std::shared_ptr<const PackedMatrix>& matrix);

  // Those of floats that were asked for so far.
  const std::map<std::string, mx::array>& parameters() const { return parameters_; }

 private:
  mx::array taken(const std::string& name, const mx::array& own);

  std::map<std::string, mx::array> replaced_, parameters_;
};

// Each over the last axis of x. `name`: of the constants.
mx::array composed_norm(const mx::array& x, const NormPlan& norm, const std::string& name, Constants& constants);
mx::array composed_linear(const mx::array& x, const PackedLinear& layer, const std::string& name, Constants& constants);
mx::array composed_product(const mx::array& x, const std::shared_ptr<const PackedMatrix>& matrix,
                           const std::string& name, Constants& constants);
// x [tokens, n] times weights [outputs, n].
mx::array composed_dots(const mx::array& x, std::span<const float> weights, const std::string& name,
                        Constants& constants);
mx::array composed_gated(kernels::Activation activation, const mx::array& gate, const mx::array& up);
// x [tokens, heads, head_dim], turned by the tokens' positions.
mx::array composed_rope(const mx::array& x, const RopePlan& rope, const std::vector<std::int32_t>& positions);
// x + after(layer(inner)).
mx::array composed_residual(const mx::array& x, const mx::array& inner, const PackedLinear& layer,
                            const std::string& name, const std::optional<NormPlan>& after, Constants& constants);

}  // namespace godwit::ops
