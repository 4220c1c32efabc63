#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "base/mx_ops.h"
#include "ops/composed_branches.h"

namespace godwit::ops {
namespace {

int int_of(std::int64_t n) { return checked_cast<int>(n, "a size of a recurrence"); }

// All of a step's tokens, [tokens, ...]: q, k and v before the convolution, the logits of the gates, z.
struct Projected {
  mx::array mixed, decay, update, z;
};

class ComposedGatedDelta {
 public:
  ComposedGatedDelta(const GatedDeltaPlan& plan, Constants& constants)
      : plan_(plan), sizes_(plan.weights->sizes), constants_(constants) {}

  Projected projected(const mx::array& n) const {
    const mx::array decay = composed_dots(n, plan_.decay, "decay", constants_);
    const mx::array update = composed_dots(n, plan_.update, "update", constants_);
    const mx::array mixed = composed_linear(n, plan_.mixed, "mixed", constants_);
    if (plan_.z) return {mixed, decay, update, composed_linear(n, *plan_.z, "z", constants_)};
    const int tokens = n.shape(0), key = int_of(sizes_.key_dim),
              values = int_of(sizes_.value_channels() / sizes_.key_heads);
    const std::vector<mx::array> parts = mx::split(mx::reshape(mixed, {tokens, int_of(sizes_.key_heads), -1}),
                                                   mx::Shape{key, 2 * key, 2 * key + values}, 2);
    const auto flat = [&](const mx::array& x) { return mx::reshape(x, {tokens, -1}); };
    return {mx::concatenate({flat(parts[0]), flat(parts[1]), flat(parts[2])}, 1), decay, update, flat(parts[3])};
  }

  // What the memory of one row gives for its tokens: [tokens, value_heads, value_dim].
  mx::array moved(const Projected& row) const {
    const int keys = int_of(sizes_.key_channels());
    const std::vector<mx::array> qkv = mx::split(convolved(row.mixed), mx::Shape{keys, 2 * keys}, 1);
    const mx::array q =
        of_value_heads(unit(qkv[0]) * scalar_like(1 / std::sqrt(static_cast<double>(sizes_.key_dim)), row.mixed));
    const mx::array k = of_value_heads(unit(qkv[1])), v = by(qkv[2], sizes_.value_heads);
    const mx::array decay = decays(row.decay), update = mx::sigmoid(row.update);
    mx::array state =
        mx::zeros({int_of(sizes_.value_heads), int_of(sizes_.value_dim), int_of(sizes_.key_dim)}, q.dtype());
    std::vector<mx::array> out;
    for (int token = 0; token < row.mixed.shape(0); ++token) {
      const auto at = [&](const mx::array& x) { return mx::take(x, token, 0); };
      const mx::array key = mx::expand_dims(at(k), 1), kept = state * mx::reshape(at(decay), {-1, 1, 1});
      const mx::array delta = (at(v) - mx::sum(kept * key, -1)) * mx::expand_dims(at(update), 1);
      state = kept + mx::expand_dims(delta, 2) * key;
      out.push_back(mx::sum(state * mx::expand_dims(at(q), 1), -1));
    }
    return mx::stack(out, 0);
  }

  mx::array gated(const mx::array& y, const mx::array& z) const {
    const mx::array normed = composed_norm(y, plan_.norm, "norm", constants_);
    return mx::reshape(composed_gated(kernels::Activation::silu, by(z, sizes_.value_heads), normed), {y.shape(0), -1});
  }

 private:
  mx::array of_weights(const char* name, const std::vector<float>& values, const mx::Shape& shape,
                       const mx::array& like) const {
    return mx::astype(constants_.floats(name, values, shape), like.dtype());
  }
  mx::array by(const mx::array& x, std::int64_t heads) const { return mx::reshape(x, {x.shape(0), int_of(heads), -1}); }

  mx::array convolved(const mx::array& mixed) const {
    const int tokens = mixed.shape(0), kernel = int_of(sizes_.kernel), channels = int_of(sizes_.channels());
    const mx::array weight = of_weights("convolution", plan_.weights->convolution, {channels, kernel}, mixed);
    const mx::array padded = mx::concatenate({mx::zeros({kernel - 1, channels}, mixed.dtype()), mixed}, 0);
    mx::array sum = mx::zeros_like(mixed);
    for (int j = 0; j < kernel; ++j)
      sum = sum + mx::slice(padded, {j, 0}, {j + tokens, channels}) * mx::take(weight, j, 1);
    return sum * mx::sigmoid(sum);
  }

  mx::array unit(const mx::array& x) const {
    const mx::array heads = by(x, sizes_.key_heads);
    return heads * mx::rsqrt(mx::sum(mx::square(heads), -1, /*keepdims=*/true) + scalar_like(1e-6, x));
  }

  mx::array of_value_heads(const mx::array& x) const {
    const int times = int_of(sizes_.value_heads / sizes_.key_heads);
    return sizes_.has_tiled_values ? mx::tile(x, {1, times, 1}) : mx::repeat(x, times, 1);
  }

  mx::array decays(const mx::array& logits) const {
    const mx::Shape shape = {int_of(sizes_.value_heads)};
    const mx::array a_log = of_weights("a_log", plan_.weights->a_log, shape, logits);
    const mx::array bias = of_weights("dt_bias", plan_.weights->dt_bias, shape, logits);
    return mx::exp(mx::negative(mx::exp(a_log) * mx::logaddexp(logits + bias, scalar_like(0, logits))));
  }

  const GatedDeltaPlan& plan_;
  const GatedDeltaSizes& sizes_;
  Constants& constants_;
};

}  // namespace

mx::array composed_gated_delta(const mx::array& x, const GatedDeltaPlan& plan, const DeltaLayer& layer,
                               Constants& constants) {
  const ComposedGatedDelta form(plan, constants);
  const Projected all = form.projected(composed_norm(x, plan.before, "before", constants));
  std::vector<mx::array> rows;
  int first = 0;
  for (const DeltaRow& row : layer.rows) {
    if (row.memory.state != nullptr || row.memory.tail != nullptr)
      fail(ErrorCode::unsupported, "gradient",
           "NativeGatedDelta: none passes through the memory that a row begins with");
    const int end = first + int_of(row.tokens);
    const auto own = [&](const mx::array& y) { return mx::slice(y, {first, 0}, {end, y.shape(1)}); };
    rows.push_back(form.moved({own(all.mixed), own(all.decay), own(all.update), own(all.z)}));
    first = end;
  }
  return composed_residual(x, form.gated(mx::concatenate(rows, 0), all.z), plan.out, "out", plan.after, constants);
}

}  // namespace godwit::ops
