#include "models/gemma4_inputs.h"

#include <cmath>

#include "base/mx_ops.h"
#include "models/decoder.h"
#include "nn/activations.h"

namespace godwit::models {

Gemma4LayerInputs::Gemma4LayerInputs(const checkpoint::WeightScope& root, const checkpoint::Config& config,
                                     int vocabulary, int dims)
    : layers_(config.layers),
      dims_(dims),
      projection_scale_(std::pow(config.hidden, -0.5)),
      table_(root / "model.embed_tokens_per_layer", vocabulary, config.layers * dims,
             activation_dtype(config), mx::array(std::sqrt(dims), mx::float32)),
      projection_(root / "model.per_layer_model_projection", config.hidden, config.layers * dims),
      norm_(root / "model.per_layer_projection_norm", {.dims = dims, .eps = config.norm_eps}) {}

mx::array Gemma4LayerInputs::operator()(const mx::array& tokens, const mx::array& h) const {
  const auto by_layer = [&](const mx::array& x) { return mx::reshape(x, {x.shape(0), layers_, dims_}); };
  const mx::array projected = projection_(h);
  const mx::array context = norm_(by_layer(projected * scalar_like(projection_scale_, projected)));
  const mx::array sum = context + by_layer(table_(tokens));
  return sum * scalar_like(std::pow(2.0, -0.5), sum);
}

Gemma4InputGate::Gemma4InputGate(const checkpoint::WeightScope& layer, nn::NormOptions norm, int hidden,
                                 int dims)
    : gate_(layer / "per_layer_input_gate", hidden, dims),
      projection_(layer / "per_layer_projection", dims, hidden),
      norm_(layer / "post_per_layer_input_norm", norm) {}

mx::array Gemma4InputGate::operator()(const mx::array& x, const mx::array& input) const {
  return x + norm_(projection_(nn::gelu_approx(gate_(x)) * input));
}

}  // namespace godwit::models
