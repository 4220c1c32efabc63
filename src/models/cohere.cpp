// Command R: one layer norm for both branches side by side, rotation of neighbouring pairs, optionally a
// layer norm for each head of q and k, logits times a factor, always a tied head. Truth:
// mlx_lm/models/cohere.py.
#include <array>

#include "checkpoint/gguf.h"
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

void add_form(const checkpoint::GgufFile& file, Json& config) {
  if (const auto scale = file.metadata.number("command-r.logit_scale")) config["logit_scale"] = *scale;
  config["use_qk_norm"] = file.has("blk.0.attn_q_norm.weight");
  config["layer_norm_bias"] = file.has("blk.0.attn_norm.bias");
}

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "command-r", .complete = add_form}}};
constexpr checkpoint::Dialect kDialect = {
    .model_type = "cohere",
    .defaults = R"({"hidden_size": 8192, "num_hidden_layers": 40, "intermediate_size": 22528,
                    "num_attention_heads": 64, "num_key_value_heads": 64, "rope_theta": 8000000.0,
                    "vocab_size": 256000, "layer_norm_eps": 1e-5, "logit_scale": 0.0625})",
    .gguf = kGguf,
    .reads_windows = false};

DenseSpec spec(const checkpoint::Config& config) {
  require_rope_types(config);
  DenseSpec spec = llama_spec(config);
  const double eps = norm_eps_by(config, "layer_norm_eps");
  spec.norm = {.eps = eps, .kind = nn::NormKind::layer, .bias = config.boolean("layer_norm_bias", false)};
  spec.parallel = ParallelBlock::Order::branches_first;
  spec.mlp.bias = false;
  if (config.boolean("use_qk_norm", false))
    spec.attention.qk_norm =
        nn::HeadNormOptions{.form = nn::HeadNormForm::own, .kind = nn::NormKind::layer, .eps = eps};
  spec.ropes[0].options.traditional = true;
  spec.head.multiplier = config.number("logit_scale");
  spec.tie = DenseTie::tied;
  return spec;
}

}  // namespace

const Family cohere = dense_family<spec>("cohere", &kDialect);

}  // namespace godwit::models
