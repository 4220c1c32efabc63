#include "cache/dense_attention.h"

#include <string>

#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::cache {
namespace {

enum class MaskForm { none, causal, array };

// One query sees all columns: the ring has dropped what lies outside the window. The array is made only where
// a window cuts something off, because the string form is what the oracle passes otherwise.
MaskForm mask_form(const Visibility& v) {
  if (v.queries == 1) return MaskForm::none;
  const bool cut = v.window > 0 && v.context + v.queries > v.window;
  if (v.kind == SpanKind::bidirectional) return cut ? MaskForm::array : MaskForm::none;
  return cut ? MaskForm::array : MaskForm::causal;
}

mx::array lowest(mx::Dtype dtype) {
  // The value of mx.finfo(dtype).min; bf16's is not that of f32.
  if (dtype == mx::float16) return mx::array(-65504.0f, dtype);
  if (dtype == mx::bfloat16) return mx::array(-3.3895313892515355e38f, dtype);
  return mx::array(std::numeric_limits<float>::lowest(), dtype);
}

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
    scores = mx::where(visibility_mask(visibility), scores, lowest(scores.dtype()));
  mx::array out = mx::matmul(mx::softmax(scores, -1, /*precise=*/true), values);
  return repeats > 1 ? mx::reshape(out, {1, q.shape(1), q.shape(2), v.shape(3)}) : out;
}

}  // namespace

mx::array visibility_mask(const Visibility& v) {
  mx::array column = mx::arange(v.context + v.queries);
  const mx::array query = mx::expand_dims(mx::arange(v.context, v.context + v.queries), 1);
  column = mx::expand_dims(column, 0);
  // A query of a bidirectional span sees the whole span, and of the context what its window still holds.
  mx::array mask = v.kind == SpanKind::causal
                       ? query >= column
                       : mx::broadcast_to(mx::array(true), {v.queries, v.context + v.queries});
  if (v.window > 0) {
    mx::array inside = query < column + mx::array(v.window);
    if (v.kind == SpanKind::bidirectional) inside = mx::logical_or(inside, column >= mx::array(v.context));
    mask = mx::logical_and(mask, inside);
  }
  return mask;
}

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
