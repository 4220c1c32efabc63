#include "cache/dense_attention.h"

#include <optional>

#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::cache {
namespace {

// The mask that the form does not say in words: a window's, an image's, or the selection of each query.
std::optional<mx::array> array_mask(const Visibility& visibility, const AttendSpec& spec, int columns) {
  const MaskForm form = mask_form(visibility);
  if (!spec.selected)
    return form == MaskForm::array ? std::optional(visibility_mask(visibility)) : std::nullopt;
  const mx::array named = selection_mask(*spec.selected, columns);
  return form == MaskForm::none ? named : mx::logical_and(named, visibility_mask(visibility));
}

// Some mask wherever a query does not see all columns.
std::optional<mx::array> whole_mask(const Visibility& visibility, const AttendSpec& spec, int columns) {
  std::optional<mx::array> mask = array_mask(visibility, spec, columns);
  if (!mask && mask_form(visibility) == MaskForm::causal) mask = visibility_mask(visibility);
  return mask;
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
  const std::optional<mx::array> mask = whole_mask(visibility, spec, k.shape(2));
  if (mask) scores = mx::where(*mask, scores, lowest_score(scores.dtype()));
  mx::array out = mx::matmul(mx::softmax(scores, -1, /*precise=*/true), values);
  return repeats > 1 ? mx::reshape(out, {1, q.shape(1), q.shape(2), v.shape(3)}) : out;
}

// The last `count` elements of every head, or all but those.
mx::array tail(const mx::array& x, int count) {
  return mx::slice(x, {0, 0, 0, x.shape(3) - count}, x.shape());
}
mx::array without_tail(const mx::array& x, int count) {
  return mx::slice(x, {0, 0, 0, 0}, {x.shape(0), x.shape(1), x.shape(2), x.shape(3) - count});
}

}  // namespace

mx::array dense_attention(const mx::array& q, const mx::array& k, const mx::array& v,
                          const Visibility& visibility, const AttendSpec& spec) {
  if (spec.soft_cap != 0.0f) {
    if (spec.sinks) fail(ErrorCode::unsupported, "attention", "a score cap together with attention sinks");
    return capped_attention(q, k, v, visibility, spec);
  }
  const std::optional<mx::array> mask = array_mask(visibility, spec, k.shape(2));
  const bool is_causal = !mask && mask_form(visibility) == MaskForm::causal;
  return mx::fast::scaled_dot_product_attention(q, k, v, spec.scale, is_causal ? "causal" : "", mask, spec.sinks);
}

mx::array latent_attention(const mx::array& q, const mx::array& latents, const mx::array& rotary,
                           const Visibility& visibility, const AttendSpec& spec) {
  if (spec.soft_cap != 0.0f || spec.sinks)
    fail(ErrorCode::unsupported, "attention",
         "a score cap or attention sinks over latents: mlx-lm has no such arithmetic");
  const int rotary_dim = rotary.shape(3);
  const mx::array turned = tail(q, rotary_dim);
  mx::array scores = mx::matmul(turned * scalar_like(spec.scale, q), mx::swapaxes(rotary, -1, -2));
  if (const std::optional<mx::array> mask = whole_mask(visibility, spec, latents.shape(2)))
    scores = mx::where(*mask, scores, lowest_score(scores.dtype()));
  return mx::fast::scaled_dot_product_attention(without_tail(q, rotary_dim), latents, latents, spec.scale, "", scores);
}

}  // namespace godwit::cache
