#include "checkpoint/weight.h"

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/repack.h"
#include "ops/dequantize.h"

namespace godwit::checkpoint {
namespace {

// Calls `change` on every plane that the weight has.
template <typename Change>
Weight with_planes(const Weight& weight, Change&& change) {
  Weight changed = weight;
  changed.data = change(weight.data);
  if (weight.scales) changed.scales = change(*weight.scales);
  if (weight.biases) changed.biases = change(*weight.biases);
  return changed;
}

// The last axis of `plane` as heads, taken in their new order.
mx::array with_column_heads(const mx::array& plane, const mx::array& heads) {
  const int count = static_cast<int>(heads.size());
  mx::Shape split = plane.shape();
  split.back() /= count;
  split.insert(split.end() - 1, count);
  const mx::array moved = mx::take(mx::reshape(plane, split), heads, static_cast<int>(split.size()) - 2);
  return mx::contiguous(mx::reshape(moved, plane.shape()));
}

}  // namespace

std::string Weight::mlx_mode() const {
  switch (kind) {
    case WeightKind::affine:
      return "affine";
    case WeightKind::mxfp4:
      return "mxfp4";
    case WeightKind::mxfp8:
      return "mxfp8";
    case WeightKind::nvfp4:
      return "nvfp4";
    default:
      fail(ErrorCode::internal, "weight", "a {} weight has no quantization mode", info(format).name);
  }
}

mx::array Weight::dequantize(mx::Dtype dtype) const {
  GODWIT_CHECK(kind != WeightKind::packed, "a packed matrix as an MLX array");
  if (kind == WeightKind::dense) return mx::astype(data, dtype);
  if (data.size() == 0) {  // MLX's own decoders refuse empty planes
    mx::Shape shape = {rows, columns};
    if (experts > 0) shape.insert(shape.begin(), experts);
    return mx::zeros(std::move(shape), dtype);
  }
  if (kind == WeightKind::blocks) return ops::dequantize(data, block_format(format), dtype);
  // Affine planes decode in the dtype of their scales; the fp modes take theirs as an argument.
  if (kind == WeightKind::affine)
    return mx::astype(mx::dequantize(data, *scales, biases, group, bits), dtype);
  return mx::dequantize(data, *scales, std::nullopt, group, bits, mlx_mode(), std::nullopt, dtype);
}

Weight Weight::take_rows(const mx::array& order) const {
  GODWIT_CHECK(kind != WeightKind::packed && experts == 0, "rows of a packed matrix or of experts");
  Weight taken = with_planes(*this, [&](const mx::array& plane) { return mx::take(plane, order, 0); });
  taken.rows = static_cast<int>(order.size());
  return taken;
}

Weight Weight::slice_rows(int begin, int end) const {
  GODWIT_CHECK(0 <= begin && begin <= end && end <= rows, "rows {}..{} of {}", begin, end, rows);
  GODWIT_CHECK(kind != WeightKind::packed, "rows of a packed matrix");
  const std::size_t axis = experts == 0 ? 0 : 1;
  Weight part = with_planes(*this, [&](const mx::array& plane) {
    mx::Shape from(plane.ndim(), 0), to = plane.shape();
    from[axis] = begin;
    to[axis] = end;
    return mx::slice(plane, from, to);
  });
  part.rows = end - begin;
  return part;
}

Weight Weight::take_experts(const mx::array& indices) const {
  GODWIT_CHECK(experts > 0 && indices.ndim() == 1, "experts of a weight that has {}", experts);
  Weight taken = with_planes(*this, [&](const mx::array& plane) { return mx::take(plane, indices, 0); });
  taken.experts = static_cast<int>(indices.size());
  return taken;
}

Weight Weight::take_column_heads(const mx::array& heads, int width) const {
  GODWIT_CHECK(kind != WeightKind::packed && static_cast<int>(heads.size()) * width == columns,
               "{} column heads of {} in {} columns", heads.size(), width, columns);
  // A group is whole words: 32 values of b bits fill b of them.
  const bool moves = kind == WeightKind::dense || (kind != WeightKind::blocks && width % group == 0);
  if (moves)
    return with_planes(*this, [&](const mx::array& plane) { return with_column_heads(plane, heads); });
  Weight wide{.kind = WeightKind::dense,
              .format = TensorFormat::f32,
              .rows = rows,
              .columns = columns,
              .experts = experts,
              .data = with_column_heads(dequantize(mx::float32), heads),
              .scales = std::nullopt,
              .biases = std::nullopt};
  return wide;
}

void Weight::evaluate() const {
  std::vector<mx::array> planes = {data};
  if (scales) planes.push_back(*scales);
  if (biases) planes.push_back(*biases);
  mx::eval(planes);
}

}  // namespace godwit::checkpoint
