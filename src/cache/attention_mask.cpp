#include "cache/attention_mask.h"

#include <algorithm>
#include <limits>

#include "base/mx_ops.h"

namespace godwit::cache {
namespace {

bool has_images(const Visibility& v) {
  return std::ranges::any_of(v.together, [](const Together& t) { return t.end - t.begin > 1; });
}

// True where query and column belong to one image of the span.
mx::array same_image(const Visibility& v, const Together& image, const mx::array& query,
                     const mx::array& column) {
  const auto within = [&](const mx::array& position) {
    return mx::logical_and(position >= mx::array(v.context + image.begin),
                           position < mx::array(v.context + image.end));
  };
  return mx::logical_and(within(query), within(column));
}

}  // namespace

MaskForm mask_form(const Visibility& v) {
  if (v.queries == 1) return MaskForm::none;
  const bool cut = v.window > 0 && v.context + v.queries > v.window;
  if (v.kind == SpanKind::bidirectional) return cut ? MaskForm::array : MaskForm::none;
  return cut || has_images(v) ? MaskForm::array : MaskForm::causal;
}

mx::array visibility_mask(const Visibility& v) {
  const mx::array column = mx::expand_dims(mx::arange(v.context + v.queries), 0);
  const mx::array query = mx::expand_dims(mx::arange(v.context, v.context + v.queries), 1);
  // A query of a bidirectional span sees the whole span, and of the context what its window still holds.
  const bool forward = v.kind == SpanKind::bidirectional;
  mx::array mask =
      forward ? mx::broadcast_to(mx::array(true), {v.queries, v.context + v.queries}) : query >= column;
  if (v.window > 0) {
    mx::array inside = query < column + mx::array(v.window);
    if (forward) inside = mx::logical_or(inside, column >= mx::array(v.context));
    mask = mx::logical_and(mask, inside);
  }
  for (const Together& image : v.together) mask = mx::logical_or(mask, same_image(v, image, query, column));
  return mask;
}

mx::array selection_mask(const mx::array& selected, int columns) {
  // One column more takes what names none.
  const mx::array none(columns);
  const mx::array is_there = mx::logical_and(selected >= mx::array(0), selected < none);
  const mx::array index = mx::where(is_there, selected, none);
  const mx::array empty = mx::zeros({selected.shape(0), columns + 1}, mx::bool_);
  const mx::array named = mx::put_along_axis(empty, index, mx::broadcast_to(mx::array(true), index.shape()), 1);
  return mx::slice(named, {0, 0}, {selected.shape(0), columns});
}

mx::array lowest_score(mx::Dtype dtype) {
  // bf16's lowest is not that of f32.
  if (dtype == mx::float16) return mx::array(-65504.0f, dtype);
  if (dtype == mx::bfloat16) return mx::array(-3.3895313892515355e38f, dtype);
  return mx::array(std::numeric_limits<float>::lowest(), dtype);
}

}  // namespace godwit::cache
