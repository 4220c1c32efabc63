// OLMo 2: the llama graph with norms behind the branches instead of before them, and q and k normalised over
// all heads together. Truth: mlx_lm/models/olmo2.py.
#include <array>

#include "checkpoint/gguf.h"
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

// One architecture stands for both; only OLMo 3 has windows.
void tell_from_olmo3(const checkpoint::GgufFile&, Json& config) {
  if (config.contains("sliding_window")) config["model_type"] = "olmo3";
}

constexpr std::array<checkpoint::Spelling, 2> kNames = {
    {{"post_attention_norm", "post_attention_layernorm"}, {"post_ffw_norm", "post_feedforward_layernorm"}}};
constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "olmo2", .names = kNames, .complete = tell_from_olmo3}}};
constexpr checkpoint::Dialect kDialect = {.model_type = "olmo2", .gguf = kGguf, .reads_windows = false};

DenseSpec spec(const checkpoint::Config& config) {
  DenseSpec spec = llama_spec(config);
  spec.attention_norms = {"", "post_attention_layernorm"};
  spec.mlp_norms = {"", "post_feedforward_layernorm"};
  spec.attention.qk_norm = nn::HeadNormOptions{.form = nn::HeadNormForm::across, .eps = config.norm_eps};
  return spec;
}

}  // namespace

const Family olmo2 = dense_family<spec>("olmo2", &kDialect);

}  // namespace godwit::models
