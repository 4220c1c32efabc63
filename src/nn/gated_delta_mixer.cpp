#include "nn/gated_delta_mixer.h"

#include <vector>

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/weight_store.h"
#include "nn/activations.h"
#include "nn/gated_delta_parts.h"
#include "nn/linear.h"

namespace godwit::nn {
namespace {

using checkpoint::Weight;
using checkpoint::WeightScope;
using Options = GatedDeltaOptions;

// Where the file has the value heads of this graph, in order.
std::vector<int> places_of_heads(const Options& o) {
  std::vector<int> places;
  for (int head = 0; head < o.value_heads; ++head)
    places.push_back(o.has_tiled_values ? head % values_per_key(o) * o.key_heads + head / values_per_key(o)
                                        : head);
  return places;
}

mx::array indices(const std::vector<int>& values) {
  return mx::array(values.data(), {static_cast<int>(values.size())}, mx::int32);
}

// Rows `before` and then the value heads, each `width` rows, in this graph's order.
mx::array rows_of_heads(const Options& o, int before, int width) {
  std::vector<int> rows;
  for (int row = 0; row < before; ++row) rows.push_back(row);
  for (const int place : places_of_heads(o))
    for (int i = 0; i < width; ++i) rows.push_back(before + place * width + i);
  return indices(rows);
}

// The file's rows in this graph's order: exact in every format, since no quantized group crosses a row.
Linear projection(const WeightScope& scope, const Options& o, int before, int width) {
  Weight weight = scope.matrix(before + o.value_heads * width, o.hidden);
  if (o.has_tiled_values) {
    weight = weight.take_rows(rows_of_heads(o, before, width));
    weight.evaluate();
  }
  return Linear(std::move(weight));
}

mx::array per_head(const WeightScope& scope, const char* leaf, const Options& o) {
  mx::array values = scope.dense(leaf, {o.value_heads});
  if (!o.has_tiled_values) return values;
  values = mx::take(values, rows_of_heads(o, 0, 1), 0);
  values.eval();
  return values;
}

mx::array convolution(const WeightScope& scope, const Options& o) {
  mx::array weight = short_convolution(scope, o);
  if (o.has_tiled_values) weight = mx::take(weight, rows_of_heads(o, 2 * key_channels(o), o.value_dim), 0);
  weight.eval();
  return weight;
}

Linear output(const WeightScope& scope, const Options& o) {
  Weight weight = scope.matrix(o.hidden, value_channels(o));
  if (o.has_tiled_values) {
    weight = weight.take_column_heads(indices(places_of_heads(o)), o.value_dim);
    weight.evaluate();
  }
  return Linear(std::move(weight));
}

}  // namespace

cache::RecurrentNeed Options::need() const {
  return {.key_heads = key_heads,
          .value_heads = value_heads,
          .key_dim = key_dim,
          .value_dim = value_dim,
          .channels = 2 * key_heads * key_dim + value_heads * value_dim,
          .kernel = kernel};
}

// MLX's operations, in the order of value heads of mlx-lm.
class GatedDeltaMixer::Composed {
 public:
  Composed(const WeightScope& scope, const Options& o)
      : options_(o),
        grouped_(grouped_projections(scope, o)),
        first_(grouped_.values ? Linear(scope / "in_proj_qkvz", o.hidden, 2 * (key_channels(o) + value_channels(o)))
                               : projection(scope / "in_proj_qkv", o, 2 * key_channels(o), o.value_dim)),
        gates_(grouped_.gates ? Linear(scope / "in_proj_ba", o.hidden, 2 * o.value_heads)
                              : projection(scope / "in_proj_b", o, 0, 1)),
        conv_(convolution(scope, o)),
        a_log_(per_head(scope, "A_log", o)),
        dt_bias_(per_head(scope, "dt_bias", o)),
        norm_((scope / "norm").dense("weight", {o.value_dim})),
        out_(output(scope / "out_proj", o)) {
    if (!grouped_.values) z_ = projection(scope / "in_proj_z", o, 0, o.value_dim);
    if (!grouped_.gates) a_ = projection(scope / "in_proj_a", o, 0, 1);
  }

  mx::array operator()(const mx::array& x, cache::LayerState& state) const;

 private:
  struct Projected {
    mx::array mixed;  // [tokens, channels]: q, k and v flat
    mx::array z;      // [tokens, value_heads, value_dim]
    mx::array a, b;   // [tokens, value_heads]
  };
  Projected projected(const mx::array& x) const;

  Options options_;
  GroupedProjections grouped_;
  Linear first_;  // in_proj_qkv or in_proj_qkvz
  std::optional<Linear> z_;
  Linear gates_;  // in_proj_b or in_proj_ba
  std::optional<Linear> a_;
  mx::array conv_;  // [channels, kernel]
  mx::array a_log_;
  mx::array dt_bias_;
  mx::array norm_;
  Linear out_;
};

GatedDeltaMixer::Composed::Projected GatedDeltaMixer::Composed::projected(const mx::array& x) const {
  const Options& o = options_;
  const int tokens = x.shape(0), group = values_per_key(o);
  const auto flat = [&](const mx::array& part) { return mx::reshape(part, {tokens, -1}); };
  const mx::Shape values = {tokens, o.value_heads, o.value_dim};
  mx::array mixed = first_(x), z = mixed;
  if (grouped_.values) {  // for each key head: q, k, its values, their z
    const int width = group * o.value_dim;
    const std::vector<mx::array> parts =
        mx::split(mx::reshape(mixed, {tokens, o.key_heads, 2 * (o.key_dim + width)}),
                  mx::Shape{o.key_dim, 2 * o.key_dim, 2 * o.key_dim + width}, -1);
    mixed = mx::concatenate({flat(parts[0]), flat(parts[1]), flat(parts[2])}, -1);
    z = mx::reshape(parts[3], values);
  } else {
    z = mx::reshape((*z_)(x), values);
  }
  if (!grouped_.gates) return {mixed, z, (*a_)(x), gates_(x)};
  const std::vector<mx::array> gates =
      mx::split(mx::reshape(gates_(x), {tokens, o.key_heads, 2 * group}), mx::Shape{group}, -1);
  return {mixed, z, flat(gates[1]), flat(gates[0])};
}

mx::array GatedDeltaMixer::Composed::operator()(const mx::array& x, cache::LayerState& state) const {
  const Projected in = projected(x);
  const mx::array out = state.recur({.mixed = in.mixed,
                                     .conv_weight = conv_,
                                     .decay = in.a,
                                     .update = in.b,
                                     .a_log = a_log_,
                                     .dt_bias = dt_bias_,
                                     .a_log_is_rate = options_.a_log_is_rate});
  const mx::array normed = mx::fast::rms_norm(out, norm_, static_cast<float>(options_.norm_eps));
  // The gate and its product in f32, rounded once.
  const mx::array gated = silu(mx::astype(in.z, mx::float32)) * mx::astype(normed, mx::float32);
  return out_(mx::reshape(mx::astype(gated, out.dtype()), {x.shape(0), value_channels(options_)}));
}

GatedDeltaMixer::GatedDeltaMixer(const WeightScope& scope, const Options& options) {
  if (scope.store().native())
    native_ = gated_delta_plan(scope, options);
  else
    composed_ = std::make_unique<const Composed>(scope, options);
}

GatedDeltaMixer::~GatedDeltaMixer() = default;

mx::array GatedDeltaMixer::operator()(const mx::array& x, const cache::Step&, cache::LayerState& state) const {
  GODWIT_CHECK(composed_, "the composed form of a gated delta layer in native mode");
  return (*composed_)(x, state);
}

}  // namespace godwit::nn
