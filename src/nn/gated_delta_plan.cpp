#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/weight_store.h"
#include "nn/gated_delta_parts.h"
#include "nn/linear.h"
#include "nn/native_values.h"

namespace godwit::nn {
namespace {

using checkpoint::WeightScope;
using Options = GatedDeltaOptions;

bool is_grouped(const WeightScope& scope, const Options& o, const char* grouped, const char* flat) {
  const bool has_grouped = (scope / grouped).has("weight"), has_flat = (scope / flat).has("weight");
  return has_grouped || (!has_flat && o.is_grouped);
}

std::vector<float> a_log_of(const WeightScope& scope, const Options& o) {
  std::vector<float> values = native_values(scope.dense("A_log", {o.value_heads}));
  if (o.a_log_is_rate)
    for (float& value : values) value = static_cast<float>(std::log(-double{value}));
  return values;
}

std::shared_ptr<const ops::GatedDeltaWeights> weights_of(const WeightScope& scope, const Options& o) {
  return std::make_shared<const ops::GatedDeltaWeights>(
      ops::GatedDeltaWeights{.sizes = {.key_heads = o.key_heads,
                                       .value_heads = o.value_heads,
                                       .key_dim = o.key_dim,
                                       .value_dim = o.value_dim,
                                       .kernel = o.kernel,
                                       .has_tiled_values = o.has_tiled_values},
                             .convolution = native_values(short_convolution(scope, o)),
                             .a_log = a_log_of(scope, o),
                             .dt_bias = native_values(scope.dense("dt_bias", {o.value_heads}))});
}

// The rows to b and to a, of which in_proj_ba has for each key head those of its value heads.
void take_gates(const WeightScope& scope, const Options& o, bool are_grouped, ops::GatedDeltaPlan& plan) {
  if (!are_grouped) {
    plan.update = (scope / "in_proj_b").values(o.value_heads, o.hidden);
    plan.decay = (scope / "in_proj_a").values(o.value_heads, o.hidden);
    return;
  }
  const std::vector<float> rows = (scope / "in_proj_ba").values(2 * o.value_heads, o.hidden);
  const std::ptrdiff_t part = std::ptrdiff_t{values_per_key(o)} * o.hidden;
  for (auto at = rows.begin(); at != rows.end(); at += 2 * part) {
    plan.update.insert(plan.update.end(), at, at + part);
    plan.decay.insert(plan.decay.end(), at + part, at + 2 * part);
  }
}

}  // namespace

GroupedProjections grouped_projections(const WeightScope& scope, const Options& o) {
  const GroupedProjections grouped{.values = is_grouped(scope, o, "in_proj_qkvz", "in_proj_qkv"),
                                   .gates = is_grouped(scope, o, "in_proj_ba", "in_proj_b")};
  if (o.has_tiled_values && (grouped.values || grouped.gates))
    fail(ErrorCode::corrupt_file, "gated delta", "{}: projections grouped by key head beside tiled value heads",
         scope.path());
  return grouped;
}

mx::array short_convolution(const WeightScope& scope, const Options& o) {
  const int channels = o.need().channels;
  const WeightScope conv = scope / "conv1d";
  mx::Shape shape = {channels, o.kernel, 1};
  if (conv.has("weight")) {
    const mx::Shape& found = scope.store().entry(conv.path() + ".weight").shape;
    if (found.size() == 2) shape = {channels, o.kernel};
    if (found.size() == 3 && found[2] != 1) shape = {channels, 1, o.kernel};
  }
  return mx::reshape(conv.dense("weight", shape), {channels, o.kernel});
}

std::optional<ops::GatedDeltaPlan> gated_delta_plan(const WeightScope& scope, const Options& o) {
  const GroupedProjections grouped = grouped_projections(scope, o);
  const int mixed_rows = grouped.values ? 2 * (key_channels(o) + value_channels(o)) : o.need().channels;
  const Linear mixed(scope / (grouped.values ? "in_proj_qkvz" : "in_proj_qkv"), o.hidden, mixed_rows);
  std::optional<Linear> z;
  if (!grouped.values) z.emplace(scope / "in_proj_z", o.hidden, value_channels(o));
  const Linear out(scope / "out_proj", value_channels(o), o.hidden);
  ops::GatedDeltaPlan plan{.weights = weights_of(scope, o),
                           .before = {},
                           .mixed = {},
                           .z = {},
                           .decay = {},
                           .update = {},
                           .norm = {native_values((scope / "norm").dense("weight", {o.value_dim})),
                                    static_cast<float>(o.norm_eps)},
                           .out = {},
                           .after = {}};
  take_gates(scope, o, grouped.gates, plan);
  if (!mixed.is_native() || !out.is_native() || (z && !z->is_native())) return std::nullopt;
  plan.mixed = mixed.native();
  if (z) plan.z = z->native();
  plan.out = out.native();
  return plan;
}

}  // namespace godwit::nn
