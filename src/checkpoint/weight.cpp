#include "checkpoint/weight.h"

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/repack.h"
#include "ops/dequantize.h"

namespace godwit::checkpoint {

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
  if (data.size() == 0) return mx::zeros({rows, columns}, dtype);  // MLX's own decoders refuse empty planes
  if (kind == WeightKind::blocks) return ops::dequantize(data, block_format(format), dtype);
  // Affine planes decode in the dtype of their scales; the fp modes take theirs as an argument.
  if (kind == WeightKind::affine)
    return mx::astype(mx::dequantize(data, *scales, biases, group, bits), dtype);
  return mx::dequantize(data, *scales, std::nullopt, group, bits, mlx_mode(), std::nullopt, dtype);
}

Weight Weight::take_rows(const mx::array& order) const {
  GODWIT_CHECK(kind != WeightKind::packed, "rows of a packed matrix");
  Weight taken = *this;
  taken.rows = static_cast<int>(order.size());
  taken.data = mx::take(data, order, 0);
  if (scales) taken.scales = mx::take(*scales, order, 0);
  if (biases) taken.biases = mx::take(*biases, order, 0);
  return taken;
}

Weight Weight::slice_rows(int begin, int end) const {
  GODWIT_CHECK(0 <= begin && begin <= end && end <= rows, "rows {}..{} of {}", begin, end, rows);
  GODWIT_CHECK(kind != WeightKind::packed, "rows of a packed matrix");
  const auto cut = [&](const mx::array& plane) {
    mx::Shape from(plane.ndim(), 0), to = plane.shape();
    from[0] = begin;
    to[0] = end;
    return mx::slice(plane, from, to);
  };
  Weight part = *this;
  part.rows = end - begin;
  part.data = cut(data);
  if (scales) part.scales = cut(*scales);
  if (biases) part.biases = cut(*biases);
  return part;
}

}  // namespace godwit::checkpoint
