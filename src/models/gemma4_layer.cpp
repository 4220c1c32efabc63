#include "models/gemma4_layer.h"

#include <memory>
#include <utility>

#include "base/mx_ops.h"
#include "models/gemma4_attention.h"
#include "models/gemma4_experts.h"

namespace godwit::models {
namespace {

using checkpoint::Config;
using checkpoint::WeightScope;

nn::NormOptions stream_norm(const Config& config) { return {.dims = config.hidden, .eps = config.norm_eps}; }

nn::Mlp::Options mlp_options(const Config& config, const Gemma4LayerPlan& layer) {
  return {
      .hidden = config.hidden, .intermediate = layer.intermediate, .activation = nn::Activation::gelu_approx};
}

std::unique_ptr<const nn::Mixer> attention_of(const WeightScope& scope, const Config& config,
                                              const Gemma4LayerPlan& layer, const nn::Rope& rope) {
  const Gemma4Attention::Options options = {.hidden = config.hidden,
                                            .heads = config.heads,
                                            .kv_heads = layer.kv_heads,
                                            .head_dim = layer.head_dim,
                                            .eps = config.norm_eps,
                                            .owns_keys = layer.owns_keys,
                                            .keys_are_values = layer.keys_are_values};
  return std::make_unique<const Gemma4Attention>(scope / "self_attn", options, rope);
}

nn::FeedForwardBranch feed_forward_of(const WeightScope& scope, const Config& config,
                                      const Gemma4LayerPlan& layer,
                                      const std::optional<Gemma4Experts>& experts) {
  const nn::NormOptions norm = stream_norm(config);
  nn::BranchNorms norms = {.after = nn::Norm(scope / "post_feedforward_layernorm", norm)};
  if (!experts) {
    norms.before = nn::Norm(scope / "pre_feedforward_layernorm", norm);
    return {std::move(norms), std::make_unique<const nn::Mlp>(scope / "mlp", mlp_options(config, layer))};
  }
  const nn::Router::Options router = {.hidden = config.hidden,
                                      .routing = {.experts = experts->count,
                                                  .chosen = experts->chosen,
                                                  .softmax = nn::Routing::Softmax::over_chosen,
                                                  .is_precise = false},
                                      .projection = "proj",
                                      .has_expert_scale = true};
  const nn::SwitchGlu::Options glu = {.hidden = config.hidden,
                                      .intermediate = experts->intermediate,
                                      .experts = experts->count,
                                      .activation = nn::Activation::gelu_approx,
                                      .names = nn::SwitchGlu::fused_names("experts.switch_glu")};
  const Gemma4FeedForward::Options options = {
      .norm = norm, .mlp = mlp_options(config, layer), .router = router, .experts = glu};
  return {std::move(norms), std::make_unique<const Gemma4FeedForward>(scope, options)};
}

// A GGUF file may leave it out where it is one.
std::optional<mx::array> scalar_of(const WeightScope& scope, const Config& config) {
  if (config.from_gguf) return scope.dense_if_present("layer_scalar", {1});
  return scope.dense("layer_scalar", {1});
}

}  // namespace

Gemma4Layer::Gemma4Layer(const WeightScope& scope, const Config& config, const Gemma4Plan& plan,
                         std::size_t index, const nn::Rope& rope)
    : attention_({.before = nn::Norm(scope / "input_layernorm", stream_norm(config)),
                  .after = nn::Norm(scope / "post_attention_layernorm", stream_norm(config))},
                 attention_of(scope, config, plan.layers[index], rope)),
      feed_forward_(feed_forward_of(scope, config, plan.layers[index], plan.experts)),
      scalar_(scalar_of(scope, config)) {
  if (plan.layer_input_dims > 0)
    input_gate_.emplace(scope, stream_norm(config), config.hidden, plan.layer_input_dims);
}

mx::array Gemma4Layer::operator()(const mx::array& x, const cache::Step& step, cache::LayerState& state,
                                  const std::optional<mx::array>& input) const {
  mx::array h = feed_forward_(attention_(x, step, state));
  if (input_gate_) h = (*input_gate_)(h, input.value());
  return scalar_ ? h * *scalar_ : h;
}

}  // namespace godwit::models
