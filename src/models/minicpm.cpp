// MiniCPM 1, 2 and 4: the llama graph with factors on the embeddings, the branches and the input of the head.
// Truth: mlx_lm/models/minicpm.py. MiniCPM5 is another family (minicpm5.cpp).
#include <array>
#include <cmath>

#include "base/error.h"
#include "checkpoint/gguf.h"
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

using checkpoint::Config;

constexpr std::array<checkpoint::Spelling, 3> kFactors = {{{"minicpm.embedding_scale", "scale_emb"},
                                                           {"minicpm.residual_scale", "residual_scale"},
                                                           {"minicpm.logit_scale", "logit_scale"}}};

void add_factors(const checkpoint::GgufFile& file, Json& config) {
  for (const auto& [from, to] : kFactors) {
    const auto value = file.metadata.number(from);
    if (!value)
      fail(ErrorCode::unsupported, "minicpm",
           "{}: {} is missing: the file is older than its converter's keys", file.metadata.origin(), from);
    config[to] = *value;
  }
}

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "minicpm", .rows_are_permuted = true, .complete = add_factors}}};
constexpr checkpoint::Dialect kDialect = {
    .model_type = "minicpm",
    .defaults = R"({"rope_theta": 1000000.0, "tie_word_embeddings": false})",
    .gguf = kGguf,
    .reads_windows = false};

double residual_scale(const Config& config) {
  return config.from_gguf ? config.number("residual_scale")
                          : config.number("scale_depth") / std::sqrt(config.layers);
}

double head_divisor(const Config& config) {
  return config.from_gguf ? config.number("logit_scale") : config.hidden / config.number("dim_model_base");
}

DenseSpec spec(const Config& config) {
  require_plain_heads(config);
  // The oracle adds a head to such a checkpoint and then refuses it as one too many.
  if (!config.from_gguf && config.tie_word_embeddings.value_or(false))
    fail(ErrorCode::unsupported, config.model_type,
         "{}: tie_word_embeddings is true; leave the key out: a file without lm_head is tied by that",
         config.origin);
  DenseSpec spec = llama_spec(config);
  spec.attention.qkv_bias = spec.attention.output_bias = spec.mlp.bias = false;
  spec.embedding_scale = mx::array(static_cast<float>(config.number("scale_emb")));
  spec.residual_multiplier = residual_scale(config);
  spec.head.input_divisor = head_divisor(config);
  spec.tie = DenseTie::when_absent;
  return spec;
}

}  // namespace

const Family minicpm = dense_family<spec>("minicpm", &kDialect);

}  // namespace godwit::models
