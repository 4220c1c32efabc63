// Tensor names of GGUF files in the graph's terms.
#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "checkpoint/gguf_model.h"

namespace godwit::checkpoint {
namespace {

using Rule = std::pair<std::string_view, std::string_view>;

constexpr std::array<Rule, 3> kGlobal = {
    {{"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}}};
constexpr std::array<Rule, 10> kBlock = {{{"attn_norm", "input_layernorm"},
                                          {"attn_q", "self_attn.q_proj"},
                                          {"attn_k", "self_attn.k_proj"},
                                          {"attn_v", "self_attn.v_proj"},
                                          {"attn_output", "self_attn.o_proj"},
                                          {"attn_q_norm", "self_attn.q_norm"},
                                          {"attn_k_norm", "self_attn.k_norm"},
                                          {"ffn_gate", "mlp.gate_proj"},
                                          {"ffn_up", "mlp.up_proj"},
                                          {"ffn_down", "mlp.down_proj"}}};
constexpr std::array<Rule, 1> kTwoNorms = {{{"ffn_norm", "post_attention_layernorm"}}};
constexpr std::array<Rule, 3> kFourNorms = {{{"post_attention_norm", "post_attention_layernorm"},
                                             {"ffn_norm", "pre_feedforward_layernorm"},
                                             {"post_ffw_norm", "post_feedforward_layernorm"}}};

template <typename Rules>
std::string_view look_up(const Rules& rules, std::string_view stem) {
  for (const auto& [from, to] : rules)
    if (from == stem) return to;
  return {};
}

std::string_view block_stem(std::string_view stem, const GgufArchitecture& architecture) {
  if (const auto found = look_up(kBlock, stem); !found.empty()) return found;
  return architecture.sandwich_norms ? look_up(kFourNorms, stem) : look_up(kTwoNorms, stem);
}

// "blk.3.attn_q.weight" in its parts.
struct Parts {
  std::string_view layer, stem, leaf;
};
std::optional<Parts> block_parts(std::string_view name) {
  if (!name.starts_with("blk.")) return std::nullopt;
  name.remove_prefix(4);
  const auto first = name.find('.'), last = name.rfind('.');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  return Parts{name.substr(0, first), name.substr(first + 1, last - first - 1), name.substr(last + 1)};
}

int heads_of(std::string_view name, const Config& config) {
  const auto parts = block_parts(name);
  if (!parts) return 0;
  if (parts->stem == "attn_q") return config.heads;
  return parts->stem == "attn_k" ? config.kv_heads : 0;
}

}  // namespace

std::string gguf_graph_name(std::string_view name, const GgufArchitecture& architecture) {
  if (const auto parts = block_parts(name)) {
    const auto stem = block_stem(parts->stem, architecture);
    return stem.empty() ? std::string(name)
                        : fmt::format("model.layers.{}.{}.{}", parts->layer, stem, parts->leaf);
  }
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::string(name);
  const auto stem = look_up(kGlobal, name.substr(0, dot));
  return stem.empty() ? std::string(name) : fmt::format("{}{}", stem, name.substr(dot));
}

std::vector<TensorEntry> gguf_tensors(const GgufFile& file, const GgufArchitecture& architecture,
                                      const Config& config) {
  std::vector<TensorEntry> tensors = file.tensors;
  for (TensorEntry& entry : tensors) {
    if (architecture.rows_are_permuted) entry.permuted_heads = heads_of(entry.name, config);
    entry.name = gguf_graph_name(entry.name, architecture);
  }
  return tensors;
}

}  // namespace godwit::checkpoint
