// What the sparse and the hybrid families of Qwen share: layers with two norms, and the keys of their
// experts.
#pragma once

#include <memory>
#include <string_view>

#include "base/json.h"
#include "checkpoint/config.h"
#include "checkpoint/gguf.h"
#include "models/decoder.h"
#include "nn/mlp.h"
#include "nn/sparse_mlp.h"

namespace godwit::models {

// x + mixer(norm(x, input_layernorm)), then + feed_forward(norm(x, post_attention_layernorm)).
std::unique_ptr<const Block> pre_norm_block(const checkpoint::WeightScope& layer, const nn::NormOptions& norm,
                                            std::unique_ptr<const nn::Mixer> mixer,
                                            std::unique_ptr<const nn::FeedForward> feed_forward);

// A required key with a whole number from 1 to 16384: products of two of them stay far inside an int.
int needed_size(const checkpoint::Config& config, std::string_view key);

// Error{unsupported} unless hidden_act is absent or SiLU.
void check_silu(const checkpoint::Config& config);

// Whether a layer has experts: those not in mlp_only_layers of which the number, from 1, is a multiple of
// decoder_sparse_step. Both keys are required.
bool is_sparse_layer(const checkpoint::Config& config, int layer);

// Experts below "mlp", routed by a precise softmax over all of them, by num_experts, num_experts_per_tok and
// moe_intermediate_size, all required. `shares`: one shared expert of shared_expert_intermediate_size.
nn::SparseMlp::Options qwen_experts(const checkpoint::Config& config, bool is_renormalized, bool shares);

// "mlp", with or without experts.
std::unique_ptr<const nn::FeedForward> qwen_feed_forward(const checkpoint::WeightScope& layer,
                                                         const checkpoint::Config& config,
                                                         const nn::SparseMlp::Options* experts);

// The integer behind "{general.architecture}.{key}".
std::optional<std::int64_t> gguf_integer(const checkpoint::GgufFile& file, std::string_view key);
// The keys of the experts from a GGUF file's metadata. Files hold no norm_topk_prob: their weights are
// renormalized.
void complete_experts(const checkpoint::GgufFile& file, Json& config);

// Tensor stems of experts in GGUF files.
inline constexpr checkpoint::Spelling kGgufExpertNames[] = {
    {"ffn_gate_inp", "mlp.gate"},
    {"ffn_gate_exps", "mlp.switch_mlp.gate_proj"},
    {"ffn_up_exps", "mlp.switch_mlp.up_proj"},
    {"ffn_down_exps", "mlp.switch_mlp.down_proj"},
    {"ffn_gate_up_exps", "mlp.experts.gate_up_proj"},
};

}  // namespace godwit::models
