#include <limits>

#include "base/checked.h"
#include "base/error.h"
#include "base/mx_ops.h"
#include "ops/composed_branches.h"
#include "ops/kv_visibility.h"

namespace godwit::ops {
namespace {

void check_row(const KvLayer& layer, const KvRow& row) {
  if (row.keys.form != kernels::KvForm::f32 || row.values.form != kernels::KvForm::f32)
    fail(ErrorCode::unsupported, "gradient", "NativeAttention: none passes through keys and values that are encoded");
  for (std::int64_t i = 0; i < row.tokens; ++i)
    if (seen_by(layer, row, i).lo < row.position)
      fail(ErrorCode::unsupported, "gradient",
           "NativeAttention: none passes through stored keys and values, and the token at {} sees those before {}",
           row.position + i, row.position);
}

// Which of the step's tokens each of them sees, [tokens, tokens].
mx::array visible(const KvLayer& layer, int tokens) {
  std::vector<char> sees(static_cast<std::size_t>(tokens) * static_cast<std::size_t>(tokens));
  std::int64_t first = 0;
  for (const KvRow& row : layer.rows) {
    for (std::int64_t i = 0; i < row.tokens; ++i) {
      const kernels::Interval seen = seen_by(layer, row, i);
      for (std::int64_t at = seen.lo - row.position; at < seen.hi - row.position; ++at)
        sees[static_cast<std::size_t>((first + i) * tokens + first + at)] = 1;
    }
    first += row.tokens;
  }
  return mx::astype(mx::array(sees.begin(), {tokens, tokens}, mx::int8), mx::bool_);
}

std::vector<std::int32_t> positions_of(const KvLayer& layer) {
  std::vector<std::int32_t> positions;
  for (const KvRow& row : layer.rows)
    for (std::int64_t i = 0; i < row.tokens; ++i)
      positions.push_back(checked_cast<std::int32_t>(row.position + i, "position"));
  return positions;
}

class ComposedAttention {
 public:
  ComposedAttention(const AttentionPlan& plan, const KvLayer& layer, Constants& constants)
      : plan_(plan), layer_(layer), constants_(constants), positions_(positions_of(layer)) {}

  mx::array operator()(const mx::array& x) const {
    const int tokens = x.shape(0), dim = int_of(plan_.head_dim), heads = int_of(plan_.heads);
    const mx::array n = composed_norm(x, plan_.before, "before", constants_);
    const std::vector<mx::array> q = mx::split(by_heads(n, plan_.q, "q", plan_.heads), plan_.is_gated ? 2 : 1, -1);
    const mx::array k = by_heads(n, plan_.k, "k", plan_.kv_heads), v = by_heads(n, plan_.v, "v", plan_.kv_heads);
    const mx::array attended = attend(placed(q[0], plan_.q_norm, "q_norm"), placed(k, plan_.k_norm, "k_norm"), v);
    const mx::array out = plan_.is_gated ? attended * mx::sigmoid(q[1]) : attended;
    return composed_residual(x, mx::reshape(out, {tokens, heads * dim}), plan_.o, "o", plan_.after, constants_);
  }

 private:
  static int int_of(std::int64_t n) { return checked_cast<int>(n, "a size of attention"); }

  mx::array by_heads(const mx::array& n, const PackedLinear& layer, const char* name, std::int64_t heads) const {
    return mx::reshape(composed_linear(n, layer, name, constants_), {n.shape(0), int_of(heads), -1});
  }

  mx::array placed(const mx::array& x, const std::optional<NormPlan>& norm, const char* name) const {
    const mx::array normed = norm ? composed_norm(x, *norm, name, constants_) : x;
    return plan_.rope ? composed_rope(normed, *plan_.rope, positions_) : normed;
  }

  // All [tokens, heads, head_dim].
  mx::array attend(const mx::array& q, const mx::array& k, const mx::array& v) const {
    const int group = int_of(plan_.heads / plan_.kv_heads);
    const auto heads_first = [](const mx::array& x) { return mx::transpose(x, {1, 0, 2}); };
    const mx::array keys = mx::repeat(heads_first(k), group, 0), values = mx::repeat(heads_first(v), group, 0);
    const mx::array scores = mx::matmul(heads_first(q), mx::transpose(keys, {0, 2, 1})) * scalar_like(plan_.scale, q);
    const mx::array hidden = scalar_like(-std::numeric_limits<float>::infinity(), q);
    const mx::array shares = mx::softmax(mx::where(visible(layer_, q.shape(0)), scores, hidden), -1);
    return heads_first(mx::matmul(shares, values));
  }

  const AttentionPlan& plan_;
  const KvLayer& layer_;
  Constants& constants_;
  std::vector<std::int32_t> positions_;
};

}  // namespace

mx::array composed_attention(const mx::array& x, const AttentionPlan& plan, const KvLayer& layer,
                             Constants& constants) {
  for (const KvRow& row : layer.rows) check_row(layer, row);
  return ComposedAttention(plan, layer, constants)(x);
}

}  // namespace godwit::ops
