// The trunk that decoders share: embedding -> blocks -> norm -> head. A family supplies the blocks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/config.h"
#include "checkpoint/weight_scope.h"
#include "models/model.h"
#include "nn/branch.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace godwit::models {

// One layer of the residual stream: [tokens, hidden] -> [tokens, hidden], moving the layer's state.
class Block {
 public:
  virtual ~Block() = default;
  virtual mx::array forward(const mx::array& x, const cache::Step& step, cache::LayerState& state) const = 0;
};
using Blocks = std::vector<std::unique_ptr<const Block>>;

// x + mixer branch, then + feed-forward branch.
class SequentialBlock final : public Block {
 public:
  SequentialBlock(nn::MixerBranch mixer, nn::FeedForwardBranch feed_forward)
      : mixer_(std::move(mixer)), feed_forward_(std::move(feed_forward)) {}
  mx::array forward(const mx::array& x, const cache::Step& step, cache::LayerState& state) const override {
    return feed_forward_(mixer_(x, step, state));
  }

 private:
  nn::MixerBranch mixer_;
  nn::FeedForwardBranch feed_forward_;
};

// Both branches read one norm of x. Sums round, so the order of the three terms is part of the graph.
class ParallelBlock final : public Block {
 public:
  enum class Order { branches_first, stream_first };  // (mixer + mlp) + x; (x + mixer) + mlp
  // In native mode Error{unsupported}.
  ParallelBlock(nn::Norm norm, std::unique_ptr<const nn::Mixer> mixer, std::unique_ptr<const nn::FeedForward> feed_forward,
                Order order);
  mx::array forward(const mx::array& x, const cache::Step& step, cache::LayerState& state) const override;

 private:
  nn::Norm norm_;
  std::unique_ptr<const nn::Mixer> mixer_;
  std::unique_ptr<const nn::FeedForward> feed_forward_;
  Order order_;
};

// What stands between the last hidden state and the logits, in this order.
struct HeadOptions {
  bool tied = true;
  bool bias = false;           // untied only
  double input_divisor = 1.0;  // of the hidden state
  double multiplier = 1.0;     // of the logits
  double divisor = 1.0;        // of the logits: dividing rounds otherwise than multiplying by the inverse
  double soft_cap = 0.0;       // 0: none; else cap * tanh(logits / cap)
};

class Decoder final : public Model {
 public:
  struct Options {
    nn::NormOptions norm;                           // of the last hidden state; dims are filled in
    std::optional<mx::array> embedding_scale = {};  // multiplied in after a cast to the activations' dtype
    std::optional<nn::NormOptions> embedding_norm = {};
    HeadOptions head = {};
    std::vector<std::string> warnings = {};  // handed on to the opener
  };
  // Reads model.embed_tokens, model.norm, model.embed_norm and, untied, lm_head. `blocks` and `needs` have one entry
  // per layer.
  Decoder(const checkpoint::WeightScope& root, const checkpoint::Config& config, Options options, Blocks blocks,
          cache::StateNeeds needs);

  cache::StateNeeds state_needs() const override { return needs_; }
  mx::array hidden(const mx::array& tokens, cache::Step& step) const override;
  mx::array logits(const mx::array& hidden) const override;
  std::vector<std::string> warnings() const override { return warnings_; }

 private:
  nn::Embedding embedding_;
  std::optional<nn::Norm> embedding_norm_;
  Blocks blocks_;
  nn::Norm norm_;
  nn::Linear head_;
  HeadOptions head_options_;
  cache::StateNeeds needs_;
  std::vector<std::string> warnings_;
};

// Keys and values for each layer, over the window given for it; without windows every layer is full.
cache::StateNeeds decoder_needs(const checkpoint::Config& config,
                                const std::vector<std::optional<int>>& windows = {});

// "model.layers.<index>"
checkpoint::WeightScope layer_scope(const checkpoint::WeightScope& root, int index);

// The dtype that activations start in: f32 for a GGUF file, which holds none; absent elsewhere: the file's own.
std::optional<mx::Dtype> activation_dtype(const checkpoint::Config& config);

}  // namespace godwit::models
