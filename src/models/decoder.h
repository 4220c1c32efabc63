// The trunk that dense decoders share: embedding -> blocks -> norm -> head. A family supplies the blocks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/config.h"
#include "checkpoint/weight_scope.h"
#include "checkpoint/weight_store.h"
#include "models/model.h"
#include "nn/attention.h"
#include "nn/branch.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/mlp.h"
#include "nn/norm.h"

namespace godwit::models {

// One layer of the residual stream: [tokens, hidden] -> [tokens, hidden].
struct Block {
  nn::AttentionBranch attention;
  nn::MlpBranch mlp;

  mx::array forward(const mx::array& x, const cache::Step& step, cache::LayerState& state) const {
    return mlp(attention(x, step, state));
  }
};

// One block for each layer of the config: x + attention(norm(x)), then x + mlp(norm(x)). They share the rope.
std::vector<Block> pre_norm_blocks(const checkpoint::WeightScope& root, const checkpoint::Config& config,
                                   const nn::Attention::Options& attention, const nn::Rope& rope,
                                   const nn::GatedMlp::Options& mlp);

class Decoder final : public Model {
 public:
  struct Options {
    bool tied = true;
    nn::NormGain final_norm = nn::NormGain::weight;
    std::optional<mx::array> embedding_scale = {};  // multiplied in after a cast to the activations' dtype
  };
  // Reads model.embed_tokens, model.norm and, untied, lm_head. `blocks` and `needs` have one entry per layer.
  Decoder(const checkpoint::WeightScope& root, const checkpoint::Config& config, Options options,
          std::vector<Block> blocks, cache::StateNeeds needs);

  cache::StateNeeds state_needs() const override { return needs_; }
  mx::array hidden(const mx::array& tokens, cache::Step& step) const override;
  mx::array logits(const mx::array& hidden) const override { return head_(hidden); }

 private:
  nn::Embedding embedding_;
  std::vector<Block> blocks_;
  nn::RmsNorm norm_;
  nn::Linear head_;
  cache::StateNeeds needs_;
};

// Keys and values for each layer, over the window given for it; without windows every layer is full.
cache::StateNeeds decoder_needs(const checkpoint::Config& config,
                                const std::vector<std::optional<int>>& windows = {});

// "model.layers.<index>"
checkpoint::WeightScope layer_scope(const checkpoint::WeightScope& root, int index);

// Projections, sizes and the usual scale head_dim^-1/2, without biases or norms.
nn::Attention::Options attention_options(const checkpoint::Config& config);
nn::GatedMlp::Options mlp_options(const checkpoint::Config& config);
// The rope that the config asks for. Without a root no tensor is asked for; with one, a GGUF file's frequency
// factors come along.
nn::Rope::Options rope_options(const checkpoint::Config& config,
                               const checkpoint::WeightScope* root = nullptr);

// Drops "rotary_emb.inv_freq", and a head that a tied model carries along. Refuses a rope that nn does not
// know, and a config that names another activation than the one the graph has.
checkpoint::WeightRules decoder_rules(const checkpoint::Config& config, bool tied,
                                      std::string_view activation = "silu");

}  // namespace godwit::models
