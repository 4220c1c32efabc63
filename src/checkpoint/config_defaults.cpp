#include "checkpoint/config_defaults.h"

#include <array>
#include <utility>

namespace godwit::checkpoint {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

constexpr std::array<Pair, 11> kAliases = {{{"mistral", "llama"},
                                            {"iquestcoder", "llama"},
                                            {"xverse", "llama"},
                                            {"gemma4_unified", "gemma4"},
                                            {"llava", "mistral3"},
                                            {"kimi_k2", "deepseek_v3"},
                                            {"joyai_llm_flash", "deepseek_v3"},
                                            {"qwen2_5_vl", "qwen2_vl"},
                                            {"minimax_m2", "minimax"},
                                            {"phi-msft", "phixtral"},
                                            {"falcon_mamba", "mamba"}}};

// mlx-lm's ModelArgs where they differ from the parser's own defaults.
constexpr std::array<Pair, 2> kDefaults = {{
    {"qwen2", R"({"rope_theta": 1000000.0, "tie_word_embeddings": true})"},
    {"gemma3_text",
     R"({"hidden_size": 1152, "num_hidden_layers": 26, "intermediate_size": 6912, "num_attention_heads": 4,
         "num_key_value_heads": 1, "head_dim": 256, "rms_norm_eps": 1e-6, "vocab_size": 262144,
         "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "query_pre_attn_scalar": 256,
         "sliding_window": 512, "sliding_window_pattern": 6, "max_position_embeddings": 32768})"},
}};

}  // namespace

std::string_view remapped_model_type(std::string_view model_type) {
  for (const auto& [alias, target] : kAliases)
    if (alias == model_type) return target;
  return model_type;
}

Json config_defaults(std::string_view model_type) {
  for (const auto& [type, defaults] : kDefaults)
    if (type == model_type) return Json::parse(defaults);
  return Json::object();
}

}  // namespace godwit::checkpoint
