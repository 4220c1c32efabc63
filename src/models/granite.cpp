// Granite 3: the llama graph with multipliers on the embeddings, the scores, the branches and, as a divisor,
// the logits. Truth: mlx_lm/models/granite.py.
#include <array>

#include "base/error.h"
#include "checkpoint/gguf.h"
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

using checkpoint::Config;

constexpr std::array<checkpoint::Spelling, 4> kMultipliers = {
    {{"granite.attention.scale", "attention_multiplier"},
     {"granite.embedding_scale", "embedding_multiplier"},
     {"granite.residual_scale", "residual_multiplier"},
     {"granite.logit_scale", "logits_scaling"}}};

// Converters leave a multiplier out that the config does not have.
void add_multipliers(const checkpoint::GgufFile& file, Json& config) {
  for (const auto& [from, to] : kMultipliers)
    if (const auto value = file.metadata.number(from)) config[to] = *value;
  if (!file.metadata.boolean("granite.rope.scaling.finetuned").value_or(true))
    fail(ErrorCode::unsupported, "granite",
         "{}: granite.rope.scaling.finetuned is false: a model without rotation", file.metadata.origin());
}

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "granite", .rows_are_permuted = true, .complete = add_multipliers}}};
constexpr checkpoint::Dialect kDialect = {.model_type = "granite", .gguf = kGguf, .reads_windows = false};

// Required in a config, since the graph is another one without; 1 where a GGUF file has none.
double multiplier(const Config& config, std::string_view key) {
  return config.from_gguf ? config.number(key, 1.0) : config.number(key);
}

DenseSpec spec(const Config& config) {
  require_plain_heads(config);
  DenseSpec spec = llama_spec(config);
  spec.attention.scale = config.from_gguf ? config.number("attention_multiplier", spec.attention.scale)
                                          : config.number("attention_multiplier");
  spec.embedding_scale = mx::array(static_cast<float>(multiplier(config, "embedding_multiplier")));
  spec.residual_multiplier = multiplier(config, "residual_multiplier");
  spec.head.divisor = multiplier(config, "logits_scaling");
  spec.ropes[0].options.traditional = false;
  return spec;
}

}  // namespace

const Family granite = dense_family<spec>("granite", &kDialect);

}  // namespace godwit::models
