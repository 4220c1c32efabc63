#include "models/gemma4_widths.h"

#include <optional>
#include <string>

#include "base/error.h"
#include "checkpoint/weight_store.h"
#include "models/decoder.h"

namespace godwit::models {
namespace {

using checkpoint::Config;
using checkpoint::WeightScope;

// Rows of a matrix in any format; absent where there is no such tensor: the audit names it.
std::optional<int> rows_of(const WeightScope& scope) {
  if (!scope.has("weight")) return std::nullopt;
  const mx::Shape& shape = scope.store().entry(scope.path() + ".weight").shape;
  return shape.empty() ? std::nullopt : std::optional<int>(shape[0]);
}

void expect_rows(const WeightScope& scope, int wanted, const Config& config, const std::string& reason) {
  const std::optional<int> rows = rows_of(scope);
  if (rows && *rows != wanted)
    fail(ErrorCode::corrupt_file, "gemma4", "{}: {} has {} rows, but the config says {}: {}", config.origin,
         scope.path(), *rows, wanted, reason);
}

void settle_mlp(const WeightScope& scope, const Config& config, const Gemma4Plan& plan,
                Gemma4LayerPlan& layer) {
  if (!layer.owns_keys && !plan.doubles_shared_mlp && rows_of(scope) == config.intermediate)
    layer.intermediate = config.intermediate;
  const char* doubled = layer.owns_keys                          ? ""
                        : plan.doubles_shared_mlp.value_or(true) ? ", doubled by use_double_wide_mlp"
                                                                 : ", not doubled by use_double_wide_mlp";
  expect_rows(scope, layer.intermediate, config,
              fmt::format("intermediate_size {}{}", config.intermediate, doubled));
}

}  // namespace

void settle_gemma4_widths(const WeightScope& root, const Config& config, Gemma4Plan& plan) {
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    Gemma4LayerPlan& layer = plan.layers[i];
    const WeightScope scope = layer_scope(root, static_cast<int>(i));
    settle_mlp(scope / "mlp" / "gate_proj", config, plan, layer);
    if (layer.owns_keys)
      expect_rows(scope / "self_attn" / "k_proj", layer.kv_heads * layer.head_dim, config,
                  fmt::format("{} heads of keys of {} elements", layer.kv_heads, layer.head_dim));
    expect_rows(scope / "per_layer_input_gate", plan.layer_input_dims, config, "hidden_size_per_layer_input");
  }
}

int gemma4_layer_vocabulary(const WeightScope& root, const Config& config) {
  const int rows = rows_of(root / "model.embed_tokens_per_layer").value_or(config.vocabulary);
  if (rows < config.vocabulary)
    fail(ErrorCode::corrupt_file, "gemma4",
         "{}: embed_tokens_per_layer has {} rows for a vocabulary of {} tokens", config.origin, rows,
         config.vocabulary);
  return rows;
}

}  // namespace godwit::models
