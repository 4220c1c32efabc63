// One decoder layer of Gemma 4.
#pragma once

#include <optional>

#include "checkpoint/config.h"
#include "models/gemma4_inputs.h"
#include "models/gemma4_plan.h"
#include "nn/branch.h"

namespace godwit::models {

class Gemma4Layer {
 public:
  // `layer`: the scope of layer `index` of the plan.
  Gemma4Layer(const checkpoint::WeightScope& layer, const checkpoint::Config& config, const Gemma4Plan& plan,
              std::size_t index, const nn::Rope& rope);

  // x [tokens, hidden]; `state`: the layer's own or its donor's; `input`: [tokens, dims] where the model has
  // such.
  mx::array operator()(const mx::array& x, const cache::Step& step, cache::LayerState& state,
                       const std::optional<mx::array>& input) const;

 private:
  nn::MixerBranch attention_;
  nn::FeedForwardBranch feed_forward_;
  std::optional<Gemma4InputGate> input_gate_;
  std::optional<mx::array> scalar_;  // [1], times the whole stream
};

}  // namespace godwit::models
