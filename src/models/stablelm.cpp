// StableLM 2: layer norms, a part of each head turned, queries and keys in f32 in front of the scores,
// optionally a layer norm for each head of q and k, optionally both branches side by side; never a tied head.
// Truth: mlx_lm/models/stablelm.py.
#include <array>
#include <cmath>

#include "checkpoint/gguf.h"
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

using checkpoint::Config;

// The tensors say it surely; the key use_parallel_residual is true in files whose blocks run in sequence.
void add_form(const checkpoint::GgufFile& file, Json& config) {
  config["use_parallel_residual"] = !file.has("blk.0.ffn_norm.weight");
  config["use_qkv_bias"] = file.has("blk.0.attn_q.bias");
  config["qk_layernorm"] = file.has("blk.0.attn_q_norm.weight");
}

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "stablelm", .complete = add_form}}};
constexpr checkpoint::Dialect kDialect = {.model_type = "stablelm", .gguf = kGguf, .reads_windows = false};

DenseSpec spec(const Config& config) {
  require_rope_types(config);
  if (!config.from_gguf) config.number("partial_rotary_factor");  // no default: the graph would be another
  DenseSpec spec = llama_spec(config);
  const double eps = norm_eps_by(config, "layer_norm_eps");
  spec.norm = {.eps = eps, .kind = nn::NormKind::layer, .bias = true};
  if (config.boolean("use_parallel_residual", false)) spec.parallel = ParallelBlock::Order::stream_first;
  spec.attention.qkv_bias = config.boolean("use_qkv_bias");
  spec.attention.output_bias = spec.mlp.bias = false;
  spec.attention.scale = std::sqrt(1.0 / config.head_dim);
  spec.attention.widened = nn::Widened::always;
  if (config.boolean("qk_layernorm", false))
    spec.attention.qk_norm =
        nn::HeadNormOptions{.form = nn::HeadNormForm::own, .kind = nn::NormKind::layer, .eps = eps};
  spec.ropes = {{.options = partial_rope(config)}};
  spec.ropes[0].options.traditional = false;
  spec.tie = DenseTie::untied;
  spec.names = {{"q_layernorm", "q_norm"}, {"k_layernorm", "k_norm"}};
  return spec;
}

}  // namespace

const Family stablelm = dense_family<spec>("stablelm", &kDialect);

}  // namespace godwit::models
