// An opened text encoder with its tokenizer and its way to one vector a text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "checkpoint/config.h"
#include "models/encoder.h"
#include "models/model_options.h"
#include "models/pooling.h"
#include "text/tokenizer.h"

namespace godwit::models {

class EmbeddingModel {
 public:
  // In the order of ModelBundle::open, on MLX's operations. Error{unsupported} for a model that generates and for
  // `native` arithmetic when it is asked for; Error{not_found} without a tokenizer.
  static EmbeddingModel open(const ModelOptions& options, const Log& log);

  struct Embedding {
    std::vector<float> values;  // dimensions() of them
    int tokens = 0;             // that were read, special ones included
    bool is_cut = false;        // the text was longer than max_tokens()
  };
  // Each text by itself: its vector does not depend on what else is asked. Throws what Tokenizer::encode() throws.
  Embedding embed(std::string_view text) const;

  int dimensions() const { return config_.hidden; }
  int max_tokens() const { return max_tokens_; }
  const checkpoint::Config& config() const { return config_; }
  const PoolingOptions& pooling() const { return pooling_; }

 private:
  EmbeddingModel(checkpoint::Config config, text::Tokenizer tokenizer)
      : config_(std::move(config)), tokenizer_(std::move(tokenizer)) {}

  checkpoint::Config config_;
  text::Tokenizer tokenizer_;
  PoolingOptions pooling_;
  std::unique_ptr<Encoder> graph_;
  int max_tokens_ = 0;
};

}  // namespace godwit::models
