// Apertus: the llama graph with a norm on each head of q and k and an MLP without a gate, whose xIELU learns
// its slopes. Truth: mlx_lm/models/apertus.py.
#include <array>

#include "base/error.h"
#include "checkpoint/gguf.h"
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

using checkpoint::Config;

constexpr const char* kXielu = "xielu";

// One value per layer, under keys without the architecture's name.
void add_xielu(const checkpoint::GgufFile& file, Json& config) {
  Json lists = Json::object();
  for (const char* const name : {"alpha_p", "alpha_n", "beta", "eps"}) {
    const std::string key = std::string("xielu.") + name;
    const auto values = file.metadata.numbers(key);
    if (!values)
      fail(ErrorCode::corrupt_file, "apertus", "{}: the key {} is missing", file.metadata.origin(), key);
    lists[name] = *values;
  }
  config[kXielu] = std::move(lists);
}

// The rows lie as in the checkpoint: this converter permutes none.
constexpr std::array<checkpoint::Spelling, 2> kNames = {
    {{"attn_norm", "attention_layernorm"}, {"ffn_norm", "feedforward_layernorm"}}};
constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "apertus", .names = kNames, .complete = add_xielu}}};
constexpr checkpoint::Dialect kDialect = {.model_type = "apertus", .gguf = kGguf, .reads_windows = false};

mx::array scalar_at(const Config& config, const char* name, std::size_t layer) {
  const Json& values = config.raw[kXielu][name];
  if (values.size() != 1 && values.size() != static_cast<std::size_t>(config.layers))
    fail(ErrorCode::corrupt_file, config.model_type, "{}: xielu.{} has {} entries for {} layers",
         config.origin, name, values.size(), config.layers);
  return mx::array(values[values.size() == 1 ? 0 : layer].get<float>());
}

DenseSpec spec(const Config& config) {
  config.boolean("tie_word_embeddings");  // required: there is no default
  require_plain_heads(config);
  DenseSpec spec = llama_spec(config);
  spec.attention_norms.before = "attention_layernorm";
  spec.mlp_norms.before = "feedforward_layernorm";
  spec.attention.qkv_bias = spec.attention.output_bias = false;
  spec.attention.qk_norm = nn::HeadNormOptions{.eps = config.norm_eps};
  spec.mlp.form = nn::MlpForm::plain;
  spec.mlp.activation = nn::Activation::xielu;
  if (!config.from_gguf) return spec;
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    spec.layers[i].xielu = nn::XieluScalars{.positive = scalar_at(config, "alpha_p", i),
                                            .negative = scalar_at(config, "alpha_n", i),
                                            .beta = scalar_at(config, "beta", i),
                                            .epsilon = scalar_at(config, "eps", i)};
  return spec;
}

}  // namespace

const Family apertus = dense_family<spec>("apertus", &kDialect);

}  // namespace godwit::models
