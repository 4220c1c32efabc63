// Tensor names of GGUF files in the graph's terms.
#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "checkpoint/gguf_model.h"

namespace godwit::checkpoint {
namespace {

constexpr std::array<Spelling, 3> kGlobal = {
    {{"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}}};
constexpr std::array<Spelling, 11> kBlock = {{{"attn_norm", "input_layernorm"},
                                          {"ffn_norm", "post_attention_layernorm"},
                                          {"attn_q", "self_attn.q_proj"},
                                          {"attn_k", "self_attn.k_proj"},
                                          {"attn_v", "self_attn.v_proj"},
                                          {"attn_output", "self_attn.o_proj"},
                                          {"attn_q_norm", "self_attn.q_norm"},
                                          {"attn_k_norm", "self_attn.k_norm"},
                                          {"ffn_gate", "mlp.gate_proj"},
                                          {"ffn_up", "mlp.up_proj"},
                                          {"ffn_down", "mlp.down_proj"}}};
std::string_view look_up(std::span<const Spelling> rules, std::string_view stem) {
  for (const auto& [from, to] : rules)
    if (from == stem) return to;
  return {};
}

std::string_view look_up(const GgufDialect& dialect, std::span<const Spelling> common, std::string_view stem) {
  const auto own = look_up(dialect.names, stem);
  return own.empty() ? look_up(common, stem) : own;
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

std::string gguf_graph_name(std::string_view name, const GgufDialect& dialect) {
  if (const auto parts = block_parts(name)) {
    const auto stem = look_up(dialect, kBlock, parts->stem);
    return stem.empty() ? std::string(name)
                        : fmt::format("model.layers.{}.{}.{}", parts->layer, stem, parts->leaf);
  }
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::string(name);
  const auto stem = look_up(dialect, kGlobal, name.substr(0, dot));
  return stem.empty() ? std::string(name) : fmt::format("{}{}", stem, name.substr(dot));
}

std::vector<TensorEntry> gguf_tensors(const GgufFile& file, const GgufDialect& dialect, const Config& config) {
  std::vector<TensorEntry> tensors = file.tensors;
  for (TensorEntry& entry : tensors) {
    if (dialect.rows_are_permuted) entry.permuted_heads = heads_of(entry.name, config);
    entry.name = gguf_graph_name(entry.name, dialect);
  }
  return tensors;
}

}  // namespace godwit::checkpoint
