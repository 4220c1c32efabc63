// Inputs by layer (E2B, E4B): beside the residual stream, each layer gets a vector that the token alone and
// the embedding together decide.
#pragma once

#include "checkpoint/config.h"
#include "checkpoint/weight_scope.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace godwit::models {

class Gemma4LayerInputs {
 public:
  // Reads model.{embed_tokens_per_layer, per_layer_model_projection, per_layer_projection_norm}. The table of
  // vocabulary x (layers * dims) is only ever gathered from: it stays as the file has it.
  Gemma4LayerInputs(const checkpoint::WeightScope& root, const checkpoint::Config& config, int vocabulary,
                    int dims);

  // tokens i32 [tokens], h [tokens, hidden] the scaled embedding -> [tokens, layers, dims].
  mx::array operator()(const mx::array& tokens, const mx::array& h) const;

 private:
  int layers_, dims_;
  double projection_scale_;
  nn::Embedding table_;
  nn::Linear projection_;
  nn::Norm norm_;
};

// What a layer does with its input: x + norm(projection(gelu(gate(x)) * input)).
class Gemma4InputGate {
 public:
  // Reads layer.{per_layer_input_gate, per_layer_projection, post_per_layer_input_norm}.
  Gemma4InputGate(const checkpoint::WeightScope& layer, nn::NormOptions norm, int hidden, int dims);
  // x [tokens, hidden], input [tokens, dims] -> [tokens, hidden]
  mx::array operator()(const mx::array& x, const mx::array& input) const;

 private:
  nn::Linear gate_, projection_;
  nn::Norm norm_;
};

}  // namespace godwit::models
