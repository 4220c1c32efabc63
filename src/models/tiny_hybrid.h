// A checkpoint like Qwen3.5 in small.
#pragma once

#include <string>

#include "models/tiny_checkpoint.h"

namespace godwit::models {

// Two layers: gated delta, then gated attention. Norms hold about 1.
class TinyHybrid : public TinyCheckpoint {
 public:
  TinyHybrid() {
    tensors.clear();
    config = {{"model_type", "qwen3_5"},
              {"hidden_size", 8},
              {"num_hidden_layers", 2},
              {"intermediate_size", 16},
              {"num_attention_heads", 2},
              {"num_key_value_heads", 1},
              {"head_dim", 16},
              {"vocab_size", 12},
              {"rms_norm_eps", 1e-5},
              {"max_position_embeddings", 64},
              {"eos_token_id", 2},
              {"tie_word_embeddings", true},
              {"full_attention_interval", 2},
              {"linear_num_key_heads", 1},
              {"linear_num_value_heads", 2},
              {"linear_key_head_dim", 4},
              {"linear_value_head_dim", 2},
              {"linear_conv_kernel_dim", 3},
              {"rope_parameters",
               {{"rope_type", "default"}, {"rope_theta", 1e6}, {"partial_rotary_factor", 0.25}}}};
    add("model.embed_tokens.weight", {12, 8});
    add_norm("model.norm", 8);
    for (const std::string layer : {"0", "1"}) add_layer("model.layers." + layer, layer == "1");
  }

  void add_norm(const std::string& name, int dims) {
    tensors.insert_or_assign(name + ".weight", mx::full({dims}, mx::array(norm)));
  }
  void add_layer(const std::string& path, bool is_attention) {
    add_norm(path + ".input_layernorm", 8);
    add_norm(path + ".post_attention_layernorm", 8);
    for (const char* name : {"gate", "up"}) add(path + ".mlp." + name + "_proj.weight", {16, 8});
    add(path + ".mlp.down_proj.weight", {8, 16});
    is_attention ? add_attention(path + ".self_attn.") : add_delta(path + ".linear_attn.");
  }
  void add_head() {
    for (const char* name : {"pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"})
      add_norm(std::string("mtp.") + name, 8);
    add("mtp.fc.weight", {8, 16});
    add_layer("mtp.layers.0", true);
  }

  float norm = 1.0f;

 private:
  void add_attention(const std::string& path) {
    add(path + "q_proj.weight", {64, 8});
    add(path + "k_proj.weight", {16, 8});
    add(path + "v_proj.weight", {16, 8});
    add(path + "o_proj.weight", {8, 32});
    add_norm(path + "q_norm", 16);
    add_norm(path + "k_norm", 16);
  }
  void add_delta(const std::string& path) {
    add(path + "in_proj_qkv.weight", {12, 8});
    add(path + "in_proj_z.weight", {4, 8});
    add(path + "in_proj_a.weight", {2, 8});
    add(path + "in_proj_b.weight", {2, 8});
    add(path + "conv1d.weight", {12, 3, 1});
    add(path + "A_log", {2});
    add(path + "dt_bias", {2});
    add_norm(path + "norm", 2);
    add(path + "out_proj.weight", {8, 4});
  }
};

}  // namespace godwit::models
