#include "cache/dense_attention.h"

#include <optional>

#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::cache {
namespace {

// Scores pass through cap * tanh(s / cap), which no fused kernel offers: Gemma 2's composition.
mx::array capped_attention(const mx::array& q, const mx::array& k, const mx::array& v,
                           const Visibility& visibility, const AttendSpec& spec) {
  const int kv_heads = k.shape(1);
  const int repeats = q.shape(1) / kv_heads;
  mx::array queries = q * scalar_like(spec.scale, q);
  mx::array keys = k;
  mx::array values = v;
  if (repeats > 1) {
    queries = mx::reshape(queries, {1, kv_heads, repeats, q.shape(2), q.shape(3)});
    keys = mx::expand_dims(k, 2);
    values = mx::expand_dims(v, 2);
  }
  mx::array scores = mx::matmul(queries, mx::swapaxes(keys, -1, -2));
  scores = mx::tanh(scores / scalar_like(spec.soft_cap, scores));
  scores = scores * scalar_like(spec.soft_cap, scores);
  if (mask_form(visibility) != MaskForm::none)
    scores = mx::where(visibility_mask(visibility), scores, lowest_score(scores.dtype()));
  mx::array out = mx::matmul(mx::softmax(scores, -1, /*precise=*/true), values);
  return repeats > 1 ? mx::reshape(out, {1, q.shape(1), q.shape(2), v.shape(3)}) : out;
}

}  // namespace

mx::array dense_attention(const mx::array& q, const mx::array& k, const mx::array& v,
                          const Visibility& visibility, const AttendSpec& spec) {
  if (spec.soft_cap != 0.0f) {
    if (spec.sinks) fail(ErrorCode::unsupported, "attention", "a score cap together with attention sinks");
    return capped_attention(q, k, v, visibility, spec);
  }
  const MaskForm form = mask_form(visibility);
  std::optional<mx::array> mask;
  if (form == MaskForm::array) mask = visibility_mask(visibility);
  return mx::fast::scaled_dot_product_attention(q, k, v, spec.scale, form == MaskForm::causal ? "causal" : "",
                                                mask, spec.sinks);
}

}  // namespace godwit::cache
