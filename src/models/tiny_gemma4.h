// A checkpoint like E2B in small: inputs by layer, heads of 32 in sliding layers and of 64 in full ones, and
// two layers behind four that attend to the keys of the last sliding and the last full one.
#pragma once

#include <mlx/random.h>

#include <cmath>
#include <string>

#include "models/tiny_checkpoint.h"

namespace godwit::models {

class TinyGemma4 : public TinyCheckpoint {
 public:
  static constexpr int kVocabulary = 96, kHidden = 64, kLayers = 6, kOwners = 4, kInputs = 32, kWindow = 24;
  static constexpr int kInner = 64, kHeads = 4, kKvHeads = 2;

  explicit TinyGemma4(unsigned seed = 1) : key_(mx::random::key(seed)) {
    tensors.clear();
    config = {{"model_type", "gemma4_text"},
              {"hidden_size", kHidden},
              {"num_hidden_layers", kLayers},
              {"layer_types",
               {"sliding_attention", "full_attention", "sliding_attention", "full_attention",
                "sliding_attention", "full_attention"}},
              {"num_kv_shared_layers", kLayers - kOwners},
              {"intermediate_size", kInner},
              {"use_double_wide_mlp", true},
              {"num_attention_heads", kHeads},
              {"num_key_value_heads", kKvHeads},
              {"head_dim", 32},
              {"global_head_dim", 64},
              {"hidden_size_per_layer_input", kInputs},
              {"vocab_size", kVocabulary},
              {"sliding_window", kWindow},
              {"max_position_embeddings", 512},
              {"eos_token_id", 1}};
    matrix("model.embed_tokens", kVocabulary, kHidden, 0.2);
    matrix("model.embed_tokens_per_layer", kVocabulary, kLayers * kInputs, 1.0);
    matrix("model.per_layer_model_projection", kLayers * kInputs, kHidden);
    norm("model.per_layer_projection_norm", kInputs);
    norm("model.norm", kHidden);
    for (int i = 0; i < kLayers; ++i) add_layer(i);
  }

  static std::string layer(int index) { return "model.layers." + std::to_string(index) + "."; }
  static bool slides(int index) { return index % 2 == 0; }
  void matrix(const std::string& name, int rows, int columns, double spread = 0) {
    const double deviation = spread > 0 ? spread : 1.2 / std::sqrt(columns);
    put(name + ".weight", normal({rows, columns}) * mx::array(static_cast<float>(deviation)));
  }

 private:
  void put(const std::string& name, const mx::array& values) { tensors.insert_or_assign(name, values); }
  mx::array normal(const mx::Shape& shape) {
    const auto [mine, rest] = mx::random::split(key_);
    key_ = rest;
    return mx::random::normal(shape, mx::float32, 0.0f, 1.0f, mine);
  }
  void norm(const std::string& name, int size) {
    put(name + ".weight", mx::array(1.0f) + normal({size}) * mx::array(0.2f));
  }

  void add_layer(int index) {
    const std::string path = layer(index), attention = path + "self_attn.";
    const int dim = slides(index) ? 32 : 64, inner = index < kOwners ? kInner : 2 * kInner;
    matrix(attention + "q_proj", kHeads * dim, kHidden);
    matrix(attention + "o_proj", kHidden, kHeads * dim);
    norm(attention + "q_norm", dim);
    if (index < kOwners) {
      matrix(attention + "k_proj", kKvHeads * dim, kHidden);
      matrix(attention + "v_proj", kKvHeads * dim, kHidden);
      norm(attention + "k_norm", dim);
    }
    matrix(path + "mlp.gate_proj", inner, kHidden);
    matrix(path + "mlp.up_proj", inner, kHidden);
    matrix(path + "mlp.down_proj", kHidden, inner);
    matrix(path + "per_layer_input_gate", kInputs, kHidden);
    matrix(path + "per_layer_projection", kHidden, kInputs);
    for (const char* name : {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                             "post_feedforward_layernorm", "post_per_layer_input_norm"})
      norm(path + name, kHidden);
    put(path + "layer_scalar", mx::array({0.9f}));
  }

  mx::array key_;
};

}  // namespace godwit::models
