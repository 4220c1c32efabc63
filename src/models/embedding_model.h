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

  // The same in two steps. The tokens of a whole text, special ones included; the first of any thread, the second where
  // the model was opened, for at most max_tokens() of them.
  std::vector<int> encode(std::string_view text) const;
  std::vector<float> embed(const std::vector<int>& tokens) const;

  int dimensions() const { return config_.hidden; }
  int max_tokens() const { return max_tokens_; }
  const checkpoint::Config& config() const { return config_; }
  const text::Tokenizer& tokenizer() const { return tokenizer_; }
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

// A cut text keeps its special tokens: the beginning, and the end as it was.
void cut_text(std::vector<int>& tokens, int max_tokens);

}  // namespace godwit::models
