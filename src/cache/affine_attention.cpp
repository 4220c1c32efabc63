#include "cache/affine_attention.h"

#include <algorithm>
#include <optional>

#include "base/mx_ops.h"

namespace godwit::cache {
namespace {

constexpr int kTile = 512;  // mlx-optiq's n_chunk

using Planes = std::vector<mx::array>;

// Queries scaled and, where several share a key head, [1, kv_heads, repeats, queries, dim]; the planes then
// have an axis to be broadcast over. Repeating the planes instead would choose other kernels.
struct Grouped {
  mx::array queries;
  Planes keys, values;
  mx::Shape shape;  // of the answer, its last axis left open
  int repeats;
};

Planes with_repeat_axis(Planes planes) {
  for (mx::array& plane : planes) plane = mx::expand_dims(plane, -3);
  return planes;
}

Grouped grouped(const mx::array& q, const AffinePlanes& planes, float scale) {
  const int kv_heads = planes.keys[0].shape(1);
  Grouped g{q * scalar_like(scale, q),
            planes.keys,
            planes.values,
            {1, q.shape(1), q.shape(2), -1},
            q.shape(1) / kv_heads};
  if (g.repeats == 1) return g;
  g.queries = mx::reshape(g.queries, {1, kv_heads, g.repeats, q.shape(2), q.shape(3)});
  g.keys = with_repeat_axis(std::move(g.keys));
  g.values = with_repeat_axis(std::move(g.values));
  return g;
}

mx::array product(const mx::array& x, const Planes& planes, bool transpose, const Codec& codec) {
  return mx::quantized_matmul(x, planes[0], planes[1], planes[2], transpose, codec.group, codec.bits);
}

mx::array answer(const Grouped& g, const mx::array& out) {
  return g.repeats > 1 ? mx::reshape(out, g.shape) : out;
}

// Softmax with one more column per head, which takes weight and carries no value.
mx::array softmax_with_sinks(const mx::array& narrow, const mx::array& sinks, mx::Dtype dtype) {
  const mx::array scores = mx::astype(narrow, mx::float32);
  mx::Shape shape(scores.ndim(), 1);  // [heads, 1, 1], or [kv_heads, repeats, 1, 1]
  shape[1] = scores.shape(1);
  if (scores.ndim() == 5) shape[2] = scores.shape(2);
  const mx::array sink = mx::reshape(mx::astype(sinks, mx::float32), shape);
  const mx::array peak = mx::maximum(mx::max(scores, -1, true), sink);
  const mx::array weights = mx::exp(scores - peak);
  const mx::array total = mx::sum(weights, -1, true) + mx::exp(sink - peak);
  return mx::astype(weights / total, dtype);
}

Planes columns_of(const Planes& planes, int begin, int end) {
  Planes part;
  for (const mx::array& plane : planes) {
    mx::Shape start(plane.ndim(), 0), stop = plane.shape();
    start[plane.ndim() - 2] = begin;
    stop[plane.ndim() - 2] = end;
    part.push_back(mx::slice(plane, start, stop));
  }
  return part;
}

// What the tiles before have seen of every query: the largest score, and sums relative to it.
struct Running {
  mx::array peak, total, values;
};

Running first_tile(const mx::array& scores, const Planes& values, const Codec& codec) {
  const mx::array peak = mx::max(scores, -1, true);
  const mx::array weights = mx::exp(scores - peak);
  return {peak, mx::sum(weights, -1, true), product(weights, values, false, codec)};
}

Running next_tile(const Running& before, const mx::array& scores, const Planes& values, const Codec& codec) {
  const mx::array peak = mx::maximum(before.peak, mx::max(scores, -1, true));
  const mx::array factor = mx::exp(before.peak - peak);
  const mx::array weights = mx::exp(scores - peak);
  return {peak, factor * before.total + mx::sum(weights, -1, true),
          before.values * factor + product(weights, values, false, codec)};
}

}  // namespace

mx::array affine_attention(const mx::array& q, const AffinePlanes& planes, const Visibility& visibility,
                           const AttendSpec& spec) {
  const Grouped g = grouped(q, planes, spec.scale);
  mx::array scores = product(g.queries, g.keys, true, planes.codec);
  if (mask_form(visibility) != MaskForm::none)
    scores = mx::where(visibility_mask(visibility), scores, lowest_score(scores.dtype()));
  const mx::array weights = spec.sinks ? softmax_with_sinks(scores, *spec.sinks, q.dtype())
                                       : mx::softmax(scores, -1, /*precise=*/true);
  return answer(g, product(weights, g.values, false, planes.codec));
}

mx::array tiled_affine_attention(const mx::array& q, const AffinePlanes& planes, const Visibility& visibility,
                                 const AttendSpec& spec) {
  const Grouped g = grouped(q, planes, spec.scale);
  const int columns = planes.keys[0].shape(2);
  std::optional<mx::array> mask;
  if (mask_form(visibility) == MaskForm::causal) mask = visibility_mask(visibility);
  std::optional<Running> running;
  for (int begin = 0; begin < columns; begin += kTile) {
    const int end = std::min(begin + kTile, columns);
    mx::array scores = product(g.queries, columns_of(g.keys, begin, end), true, planes.codec);
    if (mask) {
      const mx::array part = mx::slice(*mask, {0, begin}, {mask->shape(0), end});
      scores = mx::where(part, scores, lowest_score(scores.dtype()));
    }
    const Planes values = columns_of(g.values, begin, end);
    running = running ? next_tile(*running, scores, values, planes.codec)
                      : first_tile(scores, values, planes.codec);
  }
  return answer(g, running->values / running->total);
}

bool is_tiled(const mx::array& q, const Codec& codec, const Visibility& visibility) {
  const bool half = q.dtype() == mx::float16 || q.dtype() == mx::bfloat16;
  return half && (codec.bits == 4 || codec.bits == 8) && mask_form(visibility) != MaskForm::array;
}

}  // namespace godwit::cache
