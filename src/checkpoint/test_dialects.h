// Dialects for tests of the readers: what a family file would hand them.
#pragma once

#include <array>

#include "checkpoint/dialect.h"

namespace godwit::checkpoint {

inline constexpr std::array<std::string_view, 1> kTestAliases = {"mistral"};
inline constexpr std::array<GgufDialect, 1> kTestLlamaGguf = {
    {{.architecture = "llama", .rows_are_permuted = true}}};
inline constexpr std::array<GgufDialect, 1> kTestQwenGguf = {{{.architecture = "qwen2"}}};
inline constexpr std::array<Spelling, 3> kTestFourNorms = {{{"post_attention_norm", "post_attention_layernorm"},
                                                            {"ffn_norm", "pre_feedforward_layernorm"},
                                                            {"post_ffw_norm", "post_feedforward_layernorm"}}};
inline void complete_test_gemma(const GgufFile&, Json& config) { config["query_pre_attn_scalar"] = 16; }
inline constexpr std::array<GgufDialect, 1> kTestGemmaGguf = {{{.architecture = "gemma3",
                                                                .norms_include_one = true,
                                                                .names = kTestFourNorms,
                                                                .complete = complete_test_gemma}}};
inline constexpr std::array<Spelling, 2> kTestKeys = {{{"n_embd", "hidden_size"}, {"n_layer", "num_hidden_layers"}}};
inline constexpr std::array<Spelling, 1> kTestUnread = {{{"use_bidirectional_attention", "all"}}};

inline constexpr std::array<Dialect, 4> kTestDialects = {{
    {.model_type = "llama", .aliases = kTestAliases, .gguf = kTestLlamaGguf},
    {.model_type = "qwen2", .defaults = R"({"rope_theta": 1000000.0})", .gguf = kTestQwenGguf},
    {.model_type = "qwen3",
     .defaults = R"({"final_logit_softcapping": 30.0})",
     .keys = kTestKeys,
     .rope_parameters = RopeParameters::second,
     .nulls = R"({"final_logit_softcapping": 0.0})",
     .unread = kTestUnread},
    {.model_type = "gemma3_text",
     .defaults = R"({"hidden_size": 1152, "num_hidden_layers": 26, "intermediate_size": 6912,
                     "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "rms_norm_eps": 1e-6,
                     "vocab_size": 262144, "rope_local_base_freq": 10000.0, "sliding_window": 512,
                     "sliding_window_pattern": 6})",
     .gguf = kTestGemmaGguf},
}};

inline Dialects test_dialects() {
  std::vector<const Dialect*> dialects;
  for (const Dialect& dialect : kTestDialects) dialects.push_back(&dialect);
  return Dialects(std::move(dialects));
}

}  // namespace godwit::checkpoint
