#include "nn/attention.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::nn {
namespace {

QkvShape shape_of(const Attention::Options& o) { return {o.hidden, o.heads, o.kv_heads, o.head_dim}; }

bool is_widened(Widened when, const mx::array& q) {
  return when == Widened::always || (when == Widened::from_f16 && q.dtype() == mx::float16);
}

const char* beyond_native(const Attention::Options& o) {
  if (o.soft_cap != 0.0f) return "a soft cap on scores";
  if (o.widened != Widened::never) return "queries in f32 beside keys of another dtype";
  if (o.position_gain) return "a gain of queries by position";
  return nullptr;
}

}  // namespace

Attention::Attention(const checkpoint::WeightScope& scope, const Options& o, std::optional<Rope> rope)
    : options_(o),
      qkv_(scope, shape_of(o), o.packing, o.qkv_bias),
      o_(scope / "o_proj", o.heads * o.head_dim, o.hidden, o.output_bias),
      rope_(std::move(rope)) {
  if (!o.qk_norm) return;
  q_norm_.emplace(scope / "q_norm", o.heads, o.head_dim, *o.qk_norm);
  k_norm_.emplace(scope / "k_norm", o.kv_heads, o.head_dim, *o.qk_norm);
}

MixerPlan Attention::plan() const {
  if (const char* what = beyond_native(options_))
    fail(ErrorCode::unsupported, "attention", "native mode has no {}", what);
  ops::AttentionPlan plan{.heads = options_.heads,
                          .kv_heads = options_.kv_heads,
                          .head_dim = options_.head_dim,
                          .scale = static_cast<float>(options_.scale),
                          .before = {},
                          .is_gated = options_.packing == QkvPacking::gated,
                          .q = qkv_.q(),
                          .k = qkv_.k(),
                          .v = qkv_.v(),
                          .o = o_.native(),
                          .q_norm = {},
                          .k_norm = {},
                          .rope = {},
                          .after = {}};
  if (q_norm_) plan.q_norm = q_norm_->plan();
  if (k_norm_) plan.k_norm = k_norm_->plan();
  if (rope_) plan.rope = rope_->plan();
  return plan;
}

mx::array Attention::placed(const mx::array& x, const std::optional<HeadNorm>& norm, const cache::Step& step) const {
  const bool is_late = norm && norm->after_rope();
  const mx::array before = norm && !is_late ? (*norm)(x) : x;
  const mx::array turned = rope_ ? (*rope_)(before, step) : before;
  return is_late ? (*norm)(turned) : turned;
}

mx::array Attention::grown(const mx::array& q, const cache::Step& step) const {
  if (!options_.position_gain) return q;
  const auto [beta, length] = *options_.position_gain;
  std::vector<mx::array> rows;
  for (std::size_t row = 0; row < step.row_tokens().size(); ++row) {
    const mx::array positions = step.offset(static_cast<int>(row)) + mx::arange(step.row_tokens()[row], mx::int32);
    const mx::array laps = mx::floor(positions / mx::array(length, mx::int32));
    rows.push_back(mx::array(1.0f) + mx::array(static_cast<float>(beta)) * mx::log(mx::array(1.0f) + laps));
  }
  const mx::array gain = mx::astype(rows.size() == 1 ? rows[0] : mx::concatenate(rows, 0), q.dtype());
  return q * mx::reshape(gain, {-1, 1, 1});
}

mx::array Attention::operator()(const mx::array& x, const cache::Step& step, cache::LayerState& state) const {
  const QkvHeads heads = qkv_(x);
  const mx::array q = grown(placed(heads.q, q_norm_, step), step);
  const mx::array k = placed(heads.k, k_norm_, step);
  cache::AttendSpec spec;
  spec.scale = static_cast<float>(options_.scale);
  spec.soft_cap = options_.soft_cap;
  mx::array out = q;
  if (is_widened(options_.widened, q))
    out = mx::astype(state.attend(mx::astype(q, mx::float32), k, heads.v, spec), heads.v.dtype());
  else
    out = state.attend(q, k, heads.v, spec);
  const mx::Shape flat = {x.shape(0), options_.heads * options_.head_dim};
  out = mx::reshape(out, flat);
  return o_(heads.gate ? out * mx::sigmoid(mx::reshape(*heads.gate, flat)) : out);
}

}  // namespace godwit::nn
