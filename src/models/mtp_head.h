// The multi-token head that Qwen3.5 checkpoints carry: one layer that guesses the token after the next.
// Loaded and audited with the model; speculation runs it.
#pragma once

#include <memory>

#include "checkpoint/config.h"
#include "checkpoint/weight_scope.h"
#include "models/decoder.h"
#include "models/qwen_hybrid.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace godwit::models {

struct MtpHead {
  nn::Norm embedding_norm;  // of the embedding of the token that came out
  nn::Norm hidden_norm;     // of the model's last hidden state before its final norm
  nn::Linear fc;            // [embedding, hidden] side by side -> hidden
  Blocks layers;            // gated attention, each with a state of its own
  nn::Norm norm;            // in front of the model's own head

  static bool is_in(const checkpoint::WeightScope& root);  // any tensor below "mtp"
  // Reads root.mtp.{fc, pre_fc_norm_embedding, pre_fc_norm_hidden, layers.N, norm}; N below
  // mtp_num_hidden_layers.
  static MtpHead read(const checkpoint::WeightScope& root, const checkpoint::Config& config,
                      const HybridSpec& spec);
};

// The decoder and the head beside it.
class DecoderWithMtp final : public Model {
 public:
  DecoderWithMtp(std::unique_ptr<const Model> decoder, MtpHead head)
      : decoder_(std::move(decoder)), head_(std::move(head)) {}

  cache::StateNeeds state_needs() const override { return decoder_->state_needs(); }
  mx::array hidden(const mx::array& tokens, cache::Step& step) const override {
    return decoder_->hidden(tokens, step);
  }
  mx::array logits(const mx::array& hidden) const override { return decoder_->logits(hidden); }
  std::vector<std::string> warnings() const override { return decoder_->warnings(); }
  const MtpHead& mtp() const { return head_; }

 private:
  std::unique_ptr<const Model> decoder_;
  MtpHead head_;
};

}  // namespace godwit::models
