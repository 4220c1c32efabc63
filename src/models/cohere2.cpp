// Command R7B: as Command R, but every n-th layer is full and encodes no positions, while the others slide
// and turn; f16 queries meet the scores in f32. Truth: mlx_lm/models/cohere2.py.
#include <array>

#include "checkpoint/gguf.h"
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

using checkpoint::Config;

// The converter drops biases, which are zero, and stores no period of the full layers: the family's default
// holds.
void add_scale(const checkpoint::GgufFile& file, Json& config) {
  if (const auto scale = file.metadata.number("cohere2.logit_scale")) config["logit_scale"] = *scale;
}

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "cohere2", .complete = add_scale}}};
constexpr checkpoint::Dialect kDialect = {
    .model_type = "cohere2",
    .defaults = R"({"hidden_size": 4096, "head_dim": 128, "num_hidden_layers": 32, "intermediate_size": 14336,
                    "num_attention_heads": 32, "num_key_value_heads": 8, "rope_theta": 50000.0,
                    "vocab_size": 256000, "layer_norm_eps": 1e-5, "logit_scale": 0.0625,
                    "sliding_window": 4096, "sliding_window_pattern": 4})",
    .gguf = kGguf};

DenseSpec spec(const Config& config) {
  require_rope_types(config);
  DenseSpec spec = llama_spec(config);
  spec.norm = {.eps = norm_eps_by(config, "layer_norm_eps"),
               .kind = nn::NormKind::layer,
               .bias = config.boolean("layer_norm_bias", false)};
  spec.parallel = ParallelBlock::Order::branches_first;
  spec.attention.widened = nn::Widened::from_f16;
  spec.mlp.bias = false;
  spec.ropes[0].options.traditional = true;
  spec.layers.clear();
  for (const std::optional<int>& window :
       windows_by_period(config, config.sliding_window_pattern.value_or(0)))
    spec.layers.push_back({.window = window, .rope = window ? std::optional(0) : std::nullopt});
  spec.head.multiplier = config.number("logit_scale");
  spec.tie = DenseTie::tied;
  return spec;
}

}  // namespace

const Family cohere2 = dense_family<spec>("cohere2", &kDialect);

}  // namespace godwit::models
