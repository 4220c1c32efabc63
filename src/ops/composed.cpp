#include "ops/composed.h"

#include <cmath>
#include <numbers>

#include "base/checked.h"
#include "base/error.h"
#include "base/mx_ops.h"
#include "kernels/rope.h"
#include "ops/dequantize.h"

namespace godwit::ops {
namespace {

int size_of(std::int64_t n) { return checked_cast<int>(n, "a size of a composed form"); }

}  // namespace

mx::array Constants::taken(const std::string& name, const mx::array& own) {
  const auto found = replaced_.find(name);
  if (found != replaced_.end()) {
    GODWIT_CHECK(found->second.shape() == own.shape(), "{} in another shape", name);
    return found->second;
  }
  parameters_.insert_or_assign(name, own);
  return own;
}

mx::array Constants::floats(const std::string& name, std::span<const float> values, const mx::Shape& shape) {
  return taken(name, mx::array(values.begin(), shape));
}

mx::array Constants::matrix(const std::string& name, const std::shared_ptr<const PackedMatrix>& matrix) {
  const mx::array values = dequantize(matrix);
  return matrix->shape().format.codes == kernels::PackedCodes::dense ? taken(name, values) : values;
}

mx::array composed_norm(const mx::array& x, const NormPlan& norm, const std::string& name, Constants& constants) {
  const mx::array weight =
      constants.floats(name, norm.weight, {size_of(static_cast<std::int64_t>(norm.weight.size()))});
  const mx::array mean = mx::mean(mx::square(x), -1, /*keepdims=*/true);
  return x * mx::rsqrt(mean + scalar_like(norm.epsilon, x)) * mx::astype(weight, x.dtype());
}

mx::array composed_product(const mx::array& x, const std::shared_ptr<const PackedMatrix>& matrix,
                           const std::string& name, Constants& constants) {
  return mx::matmul(x, mx::transpose(mx::astype(constants.matrix(name, matrix), x.dtype())));
}

mx::array composed_linear(const mx::array& x, const PackedLinear& layer, const std::string& name,
                          Constants& constants) {
  const mx::array y = composed_product(x, layer.matrix, name, constants);
  if (layer.bias.empty()) return y;
  return y + mx::astype(constants.floats(name + ".bias", layer.bias, {size_of(layer.outputs())}), x.dtype());
}

mx::array composed_dots(const mx::array& x, std::span<const float> weights, const std::string& name,
                        Constants& constants) {
  const int n = x.shape(-1), outputs = size_of(static_cast<std::int64_t>(weights.size()) / n);
  return mx::matmul(x, mx::transpose(mx::astype(constants.floats(name, weights, {outputs, n}), x.dtype())));
}

mx::array composed_gated(kernels::Activation activation, const mx::array& gate, const mx::array& up) {
  switch (activation) {
    case kernels::Activation::silu: return gate * mx::sigmoid(gate) * up;
    case kernels::Activation::sigmoid: return mx::sigmoid(gate) * up;
    case kernels::Activation::gelu_tanh: break;
  }
  const mx::array cubed = gate * gate * gate * scalar_like(0.044715, gate);
  const double twice_root = 2 * std::sqrt(2 / std::numbers::pi);
  return gate * mx::sigmoid((gate + cubed) * scalar_like(twice_root, gate)) * up;
}

mx::array composed_rope(const mx::array& x, const RopePlan& rope, const std::vector<std::int32_t>& positions) {
  const int tokens = x.shape(0), heads = x.shape(1), half = size_of(rope.dims / 2);
  std::vector<float> cosines(positions.size() * static_cast<std::size_t>(half)), sines(cosines.size());
  kernels::rope_table({positions.data(), rope.inverse_frequencies.data(), cosines.data(), sines.data(), tokens, half});
  const auto table = [&](const std::vector<float>& values) {
    return mx::astype(mx::array(values.begin(), {tokens, 1, half}), x.dtype());
  };
  const mx::array cosine = table(cosines), sine = table(sines);
  const auto part = [&](int begin, int end) { return mx::slice(x, {0, 0, begin}, {tokens, heads, end}); };
  const mx::array first = part(0, half), second = part(half, 2 * half);
  return mx::concatenate({first * cosine - second * sine, second * cosine + first * sine, part(2 * half, x.shape(2))},
                         -1);
}

mx::array composed_residual(const mx::array& x, const mx::array& inner, const PackedLinear& layer,
                            const std::string& name, const std::optional<NormPlan>& after, Constants& constants) {
  const mx::array branch = composed_linear(inner, layer, name, constants);
  return x + (after ? composed_norm(branch, *after, "after", constants) : branch);
}

}  // namespace godwit::ops
