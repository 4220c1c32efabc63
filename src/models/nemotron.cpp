// Nemotron (Minitron): layer norms by 1 + w with a bias, a part of each head turned, an MLP without a gate by
// the squared ReLU, an untied head. Truth: mlx_lm/models/nemotron.py.
#include <array>

#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "nemotron", .norms_include_one = true}}};
constexpr checkpoint::Dialect kDialect = {
    .model_type = "nemotron",
    .defaults = R"({"partial_rotary_factor": 0.5, "tie_word_embeddings": false})",
    .gguf = kGguf,
    .reads_windows = false};

DenseSpec spec(const checkpoint::Config& config) {
  require_rope_types(config, {"linear"});
  DenseSpec spec = llama_spec(config);
  spec.norm = {.eps = norm_eps_by(config, "norm_eps"),
               .kind = nn::NormKind::layer,
               .gain = nn::NormGain::one_plus_weight,
               .bias = true};
  spec.mlp.form = nn::MlpForm::plain;
  spec.mlp.activation = nn::Activation::relu2;
  spec.ropes = {{.options = partial_rope(config)}};
  spec.ropes[0].options.traditional = false;
  return spec;
}

}  // namespace

const Family nemotron = dense_family<spec>("nemotron", &kDialect);

}  // namespace godwit::models
