// What the GGUF files of Gemma 2 and of Gemma 3 have in common.
#pragma once

#include <array>
#include <cstdint>

#include "checkpoint/dialect.h"
#include "checkpoint/gguf.h"

namespace godwit::models {

inline constexpr std::array<checkpoint::Spelling, 3> kGemmaGgufNames = {
    {{"post_attention_norm", "post_attention_layernorm"},
     {"ffn_norm", "pre_feedforward_layernorm"},
     {"post_ffw_norm", "post_feedforward_layernorm"}}};

// query_pre_attn_scalar, which the converter does not store: 27B, known by its number of layers, scales by its width per
// head, the smaller sizes by the head size.
template <int kLayersOf27B>
void add_gemma_scale(const checkpoint::GgufFile&, Json& config) {
  const auto hidden = config["hidden_size"].get<std::int64_t>();
  const auto heads = config["num_attention_heads"].get<std::int64_t>();
  if (heads <= 0) return;
  const bool is_27b = config["num_hidden_layers"] == kLayersOf27B;
  config["query_pre_attn_scalar"] =
      is_27b || !config.contains("head_dim") ? hidden / heads : config["head_dim"].get<std::int64_t>();
}

}  // namespace godwit::models
