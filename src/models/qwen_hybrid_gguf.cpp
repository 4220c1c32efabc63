// What GGUF files of the hybrid Qwen families say and how they spell it: qwen35, qwen35moe, qwen3next.
#include <array>
#include <charconv>

#include "base/error.h"
#include "models/qwen_hybrid.h"
#include "models/qwen_layers.h"

namespace godwit::models {
namespace {

using checkpoint::GgufFile;
using checkpoint::Spelling;

// Names without a leaf, and those of the multi-token head, behind "blk.<layer>." and "model.layers.<layer>.".
constexpr std::array<Spelling, 3> kLeafless = {{{"ssm_a", "linear_attn.A_log"},
                                                {"ssm_dt.bias", "linear_attn.dt_bias"},
                                                {"ssm_dt", "linear_attn.dt_bias"}}};
constexpr std::array<Spelling, 4> kHead = {{{"nextn.eh_proj.weight", "mtp.fc.weight"},
                                            {"nextn.enorm.weight", "mtp.pre_fc_norm_embedding.weight"},
                                            {"nextn.hnorm.weight", "mtp.pre_fc_norm_hidden.weight"},
                                            {"nextn.shared_head_norm.weight", "mtp.norm.weight"}}};

struct LayerName {
  int layer;
  std::string_view rest;
};
std::optional<LayerName> layer_name(std::string_view name) {
  for (const std::string_view prefix : {"blk.", "model.layers."}) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view tail = name.substr(prefix.size());
    int layer = 0;
    const auto [end, error] = std::from_chars(tail.data(), tail.data() + tail.size(), layer);
    const auto used = static_cast<std::size_t>(end - tail.data());
    if (error == std::errc() && used < tail.size() && tail[used] == '.')
      return LayerName{layer, tail.substr(used + 1)};
  }
  return std::nullopt;
}

// -1 where the file has no such tensor.
std::int64_t rows_of(const GgufFile& file, std::string_view ending) {
  for (const checkpoint::TensorEntry& entry : file.tensors)
    if (entry.name.ends_with(ending) && entry.shape.size() == 2) return entry.shape[0];
  return -1;
}

void complete_sizes(const GgufFile& file, Json& config) {
  constexpr std::pair<std::string_view, const char*> kKeys[] = {
      {"ssm.group_count", "linear_num_key_heads"},
      {"ssm.time_step_rank", "linear_num_value_heads"},
      {"ssm.state_size", "linear_key_head_dim"},
      {"ssm.conv_kernel", "linear_conv_kernel_dim"},
      {"full_attention_interval", "full_attention_interval"},
  };
  for (const auto& [from, to] : kKeys)
    if (const auto value = gguf_integer(file, from)) config[to] = *value;
  const auto inner = gguf_integer(file, "ssm.inner_size"), heads = gguf_integer(file, "ssm.time_step_rank");
  if (inner && heads && *heads > 0 && *inner % *heads == 0) config["linear_value_head_dim"] = *inner / *heads;
}

}  // namespace

std::string hybrid_gguf_name(std::string_view name, int layers) {
  const auto parts = layer_name(name);
  if (!parts) return std::string(name);
  for (const auto& [from, to] : kHead)
    if (parts->rest == from) return std::string(to);
  std::string_view rest = parts->rest;
  for (const auto& [from, to] : kLeafless)
    if (rest == from) rest = to;
  if (parts->layer >= layers) return fmt::format("mtp.layers.{}.{}", parts->layer - layers, rest);
  if (rest == parts->rest) return std::string(name);
  return fmt::format("model.layers.{}.{}", parts->layer, rest);
}

void complete_hybrid(const GgufFile& file, Json& config) {
  complete_sizes(file, config);
  if (gguf_integer(file, "expert_count").value_or(0) > 0) {
    complete_experts(file, config);
    // Some writers leave these to the tensors.
    if (!config.contains("shared_expert_intermediate_size"))
      config["shared_expert_intermediate_size"] = rows_of(file, ".ffn_up_shexp.weight");
    if (!config.contains("intermediate_size")) config["intermediate_size"] = config["moe_intermediate_size"];
  }
  // Layers of the multi-token head count as blocks.
  if (const auto extra = gguf_integer(file, "nextn_predict_layers"); extra && *extra > 0) {
    config["num_hidden_layers"] = config["num_hidden_layers"].get<std::int64_t>() - *extra;
    config["mtp_num_hidden_layers"] = *extra;
  }
  // llama.cpp tiles value heads for qwen35 and qwen35moe, and not for qwen3next; other writers say it.
  const std::string architecture = file.metadata.string("general.architecture").value_or("");
  config["value_heads_are_tiled"] =
      file.metadata.boolean(architecture + ".ssm.v_head_reordered").value_or(architecture != "qwen3next");
}

}  // namespace godwit::models
