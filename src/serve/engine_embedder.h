// A decoder as an embedder: the hidden states of a text, pooled. Runs on the engine's thread, between its other work.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "decode/engine.h"
#include "models/pooling.h"
#include "serve/embedder.h"

namespace godwit::serve {

class EngineEmbedder final : public Embedder {
 public:
  // Throws Error{unsupported} for a model without a tokenizer. `engine` must outlive it.
  EngineEmbedder(decode::Engine& engine, const models::PoolingOptions& pooling, bool takes_token_ids);

  int dimensions() const override;
  int max_tokens() const override;
  bool allows_dimensions(int count) const override;
  bool is_normalized() const override { return pooling_.normalize; }
  bool takes_token_ids() const override { return takes_token_ids_; }
  std::vector<int> encode(std::string_view text) const override;
  std::vector<std::vector<float>> embed(const std::vector<std::vector<int>>& texts,
                                        const std::function<void()>& waiting) override;

 private:
  decode::Engine& engine_;
  models::PoolingOptions pooling_;
  bool takes_token_ids_;
};

// How hidden states become a vector: mean, cls, last or max, of length 1; "auto": as the files say; nullopt: they do not, or
// "none" was asked for. Throws what read_pooling() throws.
std::optional<models::PoolingOptions> decoder_pooling(const std::filesystem::path& model, const std::string& wanted);

}  // namespace godwit::serve
