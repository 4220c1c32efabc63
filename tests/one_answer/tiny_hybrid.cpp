#include "one_answer/tiny_hybrid.h"

#include "one_answer/gguf_writer.h"
#include "one_answer/tiny_gguf.h"

namespace godwit::one_answer {
namespace {

constexpr std::uint64_t kHidden = 64, kHeads = 2, kKvHeads = 1, kHeadDim = 64, kInner = 32, kExperts = 4;
constexpr std::uint64_t kKeyHeads = 2, kValueHeads = 4, kDeltaDim = 16, kKernel = 4;
constexpr std::uint64_t kValues = kValueHeads * kDeltaDim, kChannels = 2 * kKeyHeads * kDeltaDim + kValues;

void write_attention(GgufWriter& writer, const std::string& layer) {
  writer.matrix(layer + "attn_q", 2 * kHeads * kHeadDim, kHidden);
  writer.matrix(layer + "attn_k", kKvHeads * kHeadDim, kHidden);
  writer.matrix(layer + "attn_v", kKvHeads * kHeadDim, kHidden);
  writer.matrix(layer + "attn_output", kHidden, kHeads * kHeadDim);
  writer.norm(layer + "attn_q_norm", kHeadDim);
  writer.norm(layer + "attn_k_norm", kHeadDim);
}

void write_delta(GgufWriter& writer, const std::string& layer) {
  writer.matrix(layer + "attn_qkv", kChannels, kHidden);
  writer.matrix(layer + "attn_gate", kValues, kHidden);
  writer.numbers(layer + "ssm_alpha.weight", {kHidden, kValueHeads}, 0.0f, 0.3f);
  writer.numbers(layer + "ssm_beta.weight", {kHidden, kValueHeads}, 0.0f, 0.3f);
  writer.numbers(layer + "ssm_conv1d.weight", {kKernel, kChannels}, 0.2f, 0.5f);
  writer.numbers(layer + "ssm_a", {kValueHeads}, -0.3f, 0.25f);
  writer.numbers(layer + "ssm_dt.bias", {kValueHeads}, -1.0f, 0.5f);
  writer.norm(layer + "ssm_norm", kDeltaDim);
  writer.matrix(layer + "ssm_out", kHidden, kValues);
}

void write_experts(GgufWriter& writer, const std::string& layer) {
  writer.numbers(layer + "ffn_gate_inp.weight", {kHidden, kExperts}, 0.0f, 0.5f);
  writer.experts(layer + "ffn_gate_exps", kExperts, kInner, kHidden);
  writer.experts(layer + "ffn_up_exps", kExperts, kInner, kHidden);
  writer.experts(layer + "ffn_down_exps", kExperts, kHidden, kInner);
  writer.numbers(layer + "ffn_gate_inp_shexp.weight", {kHidden}, 0.0f, 0.5f);
  writer.matrix(layer + "ffn_gate_shexp", kInner, kHidden);
  writer.matrix(layer + "ffn_up_shexp", kInner, kHidden);
  writer.matrix(layer + "ffn_down_shexp", kHidden, kInner);
}

}  // namespace

void write_hybrid_model(const std::filesystem::path& path) {
  const std::string name = "qwen35moe";
  checkpoint::GgufBytes file;
  file.string("general.architecture", name)
      .u32(name + ".block_count", 4)
      .u32(name + ".embedding_length", kHidden)
      .u32(name + ".attention.head_count", kHeads)
      .u32(name + ".attention.head_count_kv", kKvHeads)
      .u32(name + ".attention.key_length", kHeadDim)
      .u32(name + ".context_length", 8192)
      .u32(name + ".rope.dimension_count", kHeadDim / 4)
      .f32(name + ".rope.freq_base", 1e6f)
      .f32(name + ".attention.layer_norm_rms_epsilon", 1e-5f)
      .u32(name + ".full_attention_interval", 2)
      .u32(name + ".ssm.conv_kernel", kKernel)
      .u32(name + ".ssm.state_size", kDeltaDim)
      .u32(name + ".ssm.group_count", kKeyHeads)
      .u32(name + ".ssm.time_step_rank", kValueHeads)
      .u32(name + ".ssm.inner_size", kValues)
      .u32(name + ".expert_count", kExperts)
      .u32(name + ".expert_used_count", 2)
      .u32(name + ".expert_feed_forward_length", kInner)
      .u32(name + ".expert_shared_feed_forward_length", kInner);
  GgufWriter writer(file, 1);
  writer.matrix("token_embd", kVocabulary, kHidden);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::string layer = "blk." + std::to_string(i) + ".";
    writer.norm(layer + "attn_norm", kHidden);
    i % 2 == 1 ? write_attention(writer, layer) : write_delta(writer, layer);
    writer.norm(layer + "post_attention_norm", kHidden);
    write_experts(writer, layer);
  }
  writer.norm("output_norm", kHidden);
  checkpoint::write_file(path, file.bytes());
}

}  // namespace godwit::one_answer
