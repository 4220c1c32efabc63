// The decoder of Qwen3-Next and Qwen3.5: gated delta layers, of which every n-th is gated attention instead.
// The two differ in the spelling of their keys and tensors, in which layers have experts, and in how raw
// files are recognised.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "checkpoint/config.h"
#include "checkpoint/dialect.h"
#include "checkpoint/weight_store.h"
#include "models/decoder.h"
#include "nn/attention.h"
#include "nn/gated_delta_mixer.h"
#include "nn/rope.h"
#include "nn/sparse_mlp.h"

namespace godwit::models {

struct HybridSpec {
  int interval = 4;  // layer i, from 0, is attention where i + 1 is a multiple
  nn::Attention::Options attention;
  nn::Rope::Options rope;
  nn::GatedDeltaMixer::Options delta;
  std::vector<bool> sparse;  // by layer
  nn::SparseMlp::Options experts;
  bool tied = false;
  // Norms of the file hold w - 1 (Hugging Face); those of converted files and of GGUF files hold w.
  nn::NormGain gain = nn::NormGain::weight;

  bool is_attention(int layer) const { return (layer + 1) % interval == 0; }
};

// Everything but `sparse` and `gain`. Refuses by name what the graph cannot serve: missing sizes, value heads
// that are no multiple of the key heads, layer_types that disagree with the interval, another gate or
// activation.
HybridSpec hybrid_spec(const checkpoint::Config& config, bool is_renormalized);

// Drops what no text model has, and the head of a tied one.
checkpoint::WeightRules hybrid_rules(const checkpoint::Config& config, const HybridSpec& spec);
cache::StateNeeds hybrid_needs(const checkpoint::Config& config, const HybridSpec& spec);

// One layer below `scope`: attention or gated delta, with or without experts.
std::unique_ptr<const Block> hybrid_block(const checkpoint::WeightScope& scope,
                                          const checkpoint::Config& config, const HybridSpec& spec,
                                          const nn::Rope& rope, bool is_attention, bool is_sparse);
Blocks hybrid_blocks(const checkpoint::WeightScope& root, const checkpoint::Config& config,
                     const HybridSpec& spec);
Decoder::Options hybrid_options(const checkpoint::WeightScope& root, const checkpoint::Config& config,
                                const HybridSpec& spec);

// Whether some convolution has the shape of Hugging Face, [channels, 1, kernel].
bool has_raw_convolution(const checkpoint::WeightScope& root);

// The name of a GGUF tensor that its reader leaves untranslated ("blk.3.ssm_a"), or one of the layers behind
// the last (the multi-token head), in the graph's terms.
std::string hybrid_gguf_name(std::string_view name, int layers);
// Metadata of qwen35, qwen35moe and qwen3next in the keys of config.json.
void complete_hybrid(const checkpoint::GgufFile& file, Json& config);

inline constexpr std::string_view kGgufHybridKeysPerLayer[] = {"attention.head_count_kv"};
inline constexpr checkpoint::Spelling kGgufHybridNames[] = {
    {"attn_qkv", "linear_attn.in_proj_qkv"},
    {"attn_gate", "linear_attn.in_proj_z"},
    {"ssm_in", "linear_attn.in_proj_qkvz"},
    {"ssm_alpha", "linear_attn.in_proj_a"},
    {"ssm_beta", "linear_attn.in_proj_b"},
    {"ssm_ba", "linear_attn.in_proj_ba"},
    {"ssm_conv1d", "linear_attn.conv1d"},
    {"ssm_norm", "linear_attn.norm"},
    {"ssm_out", "linear_attn.out_proj"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_gate_inp", "mlp.gate"},
    {"ffn_gate_exps", "mlp.switch_mlp.gate_proj"},
    {"ffn_up_exps", "mlp.switch_mlp.up_proj"},
    {"ffn_down_exps", "mlp.switch_mlp.down_proj"},
    {"ffn_gate_up_exps", "mlp.experts.gate_up_proj"},
    {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
    {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
    {"ffn_down_shexp", "mlp.shared_expert.down_proj"},
};

}  // namespace godwit::models
