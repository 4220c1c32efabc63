// What a Gemma 4 config says about the graph, layer by layer. Read from the config alone, before any tensor
// file is opened.
#pragma once

#include <optional>
#include <vector>

#include "cache/layer_need.h"
#include "checkpoint/config.h"
#include "nn/rope.h"

namespace godwit::models {

struct Gemma4LayerPlan {
  bool is_full = false;  // else it slides over `window` positions
  int window = 0;
  int head_dim = 0;
  int kv_heads = 0;
  // Whether it projects keys and values of its own. Others attend to those of a donor: the last owning layer
  // of their type, in the same step.
  bool owns_keys = true;
  bool keys_are_values = false;  // one projection gives both
  int state = 0;                 // index of the state: its own, or its donor's
  int intermediate = 0;          // of the dense MLP
};

struct Gemma4Experts {
  int count = 0;
  int chosen = 0;  // for each token
  int intermediate = 0;
};

struct Gemma4Plan {
  std::vector<Gemma4LayerPlan> layers;
  int owners = 0;                                            // the first layers, which hold state
  std::optional<nn::Rope::Options> full_rope, sliding_rope;  // present where a layer needs them
  std::optional<bool> doubles_shared_mlp;                    // absent: the config does not say
  int layer_input_dims = 0;                                  // of the input that each layer gets; 0: none
  std::optional<Gemma4Experts> experts;
  double soft_cap = 0.0;  // of the logits; 0: none
  bool is_tied = true;
};

// Error{corrupt_file} or Error{unsupported}, naming config.origin, key and value, for what the graph cannot
// be.
Gemma4Plan gemma4_plan(const checkpoint::Config& config);

// Of the layers that own state, in their order.
cache::StateNeeds gemma4_needs(const Gemma4Plan& plan);

}  // namespace godwit::models
