// EXAONE 4: norms behind the branches, a norm on each head of q and k, and a pattern of letters: layers of an
// L slide and rotate, the others see everything and encode no positions. Truth: mlx_lm/models/exaone4.py.
#include <array>
#include <string>

#include "base/error.h"
#include "checkpoint/gguf.h"
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

using checkpoint::Config;

constexpr const char* kPattern = "sliding_window_pattern";

// A GGUF file says it layer by layer, and nothing where no layer slides.
void spell_pattern(const checkpoint::GgufFile&, Json& config) {
  std::string letters;
  if (config.contains("layer_types"))
    for (const Json& type : config["layer_types"]) letters += type == "sliding_attention" ? 'L' : 'G';
  if (letters.find('L') == std::string::npos) letters.clear();
  config[kPattern] = letters;
}

constexpr std::array<checkpoint::Spelling, 2> kNames = {
    {{"post_attention_norm", "post_attention_layernorm"}, {"post_ffw_norm", "post_feedforward_layernorm"}}};
constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "exaone4", .names = kNames, .complete = spell_pattern}}};
constexpr checkpoint::Dialect kDialect = {.model_type = "exaone4", .gguf = kGguf};

std::vector<DenseLayer> layers_of(const Config& config) {
  const std::string letters = config.string(kPattern, "");
  std::vector<DenseLayer> layers(static_cast<std::size_t>(config.layers));
  if (letters.empty()) return layers;
  if (!config.sliding_window)
    fail(ErrorCode::corrupt_file, config.model_type, "{}: {} is '{}', and there is no sliding_window",
         config.origin, kPattern, letters);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (letters[i % letters.size()] == 'L')
      layers[i].window = config.sliding_window;
    else
      layers[i].rope.reset();
  }
  return layers;
}

DenseSpec spec(const Config& config) {
  config.boolean("tie_word_embeddings");  // required: there is no default
  DenseSpec spec = llama_spec(config);
  spec.attention_norms = {"", "post_attention_layernorm"};
  spec.mlp_norms = {"", "post_feedforward_layernorm"};
  spec.attention.qkv_bias = spec.attention.output_bias = spec.mlp.bias = false;
  spec.attention.qk_norm = nn::HeadNormOptions{.eps = config.norm_eps};
  spec.ropes[0].options.traditional = false;
  spec.layers = layers_of(config);
  return spec;
}

}  // namespace

const Family exaone4 = dense_family<spec>("exaone4", &kDialect);

}  // namespace godwit::models
