#include "nn/switch_glu.h"

#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::nn {
namespace {

using checkpoint::ExpertNames;
using checkpoint::Weight;
using checkpoint::WeightKind;

constexpr std::size_t kSortFrom = 64;  // indices

mx::array gathered(const mx::array& x, const mx::array& stack, const mx::array& chosen, bool sorted) {
  return mx::gather_mm(x, mx::swapaxes(stack, -1, -2), std::nullopt, chosen, sorted);
}

}  // namespace

SwitchLinear::SwitchLinear(const checkpoint::WeightScope& scope, const ExpertNames& names, int experts,
                           int inputs, int outputs, bool bias)
    : weight_(scope.experts(names, experts, outputs, inputs)) {
  if (bias) bias_ = (scope / names.stacked).dense("bias", {experts, outputs});
}

mx::array SwitchLinear::operator()(const mx::array& x, const mx::array& chosen, bool sorted) const {
  const mx::array y = product(x, chosen, sorted);
  return bias_ ? y + mx::expand_dims(mx::take(*bias_, chosen, 0), -2) : y;
}

mx::array SwitchLinear::product(const mx::array& x, const mx::array& chosen, bool sorted) const {
  switch (weight_.kind) {
    case WeightKind::packed:
      break;
    case WeightKind::dense: {
      const bool is_wide = weight_.data.dtype() == mx::float32 && x.dtype() == mx::float32;
      if (!is_wide && mx::default_device() == mx::Device::cpu) return widened_product(x, chosen, sorted);
      return gathered(x, weight_.data, chosen, sorted);
    }
    case WeightKind::blocks:
      return widened_product(x, chosen, sorted);
    case WeightKind::affine:
    case WeightKind::mxfp4:
    case WeightKind::mxfp8:
    case WeightKind::nvfp4:
      return mx::gather_qmm(x, weight_.data, weight_.scales.value(), weight_.biases, std::nullopt, chosen,
                            /*transpose=*/true, weight_.group, weight_.bits, weight_.mlx_mode(), std::nullopt,
                            sorted);
  }
  GODWIT_CHECK(false, "experts of kind {}", static_cast<int>(weight_.kind));
}

mx::array SwitchLinear::widened_product(const mx::array& x, const mx::array& chosen, bool sorted) const {
  const mx::array wide = mx::astype(x, mx::float32);
  const mx::Dtype output =
      weight_.kind == WeightKind::dense ? mx::promote_types(x.dtype(), weight_.data.dtype()) : x.dtype();
  const auto count = static_cast<int>(chosen.size());
  if (count >= weight_.experts)
    return mx::astype(gathered(wide, weight_.dequantize(mx::float32), chosen, sorted), output);
  const Weight some = weight_.take_experts(mx::flatten(chosen));
  const mx::array own = mx::reshape(mx::arange(count, mx::uint32), chosen.shape());
  return mx::astype(gathered(wide, some.dequantize(mx::float32), own, true), output);
}

SwitchGlu::Names SwitchGlu::usual_names() {
  const auto of = [](const std::string& name) {
    return ExpertNames{.stacked = "switch_mlp." + name, .each = "experts.{}." + name};
  };
  return {of("gate_proj"), of("up_proj"), of("down_proj")};
}

SwitchGlu::Names SwitchGlu::fused_names(const std::string& stacked) {
  using Part = ExpertNames::Part;
  return {{.stacked = stacked + ".gate_proj", .fused = "experts.gate_up_proj", .part = Part::first_half},
          {.stacked = stacked + ".up_proj", .fused = "experts.gate_up_proj", .part = Part::second_half},
          {.stacked = stacked + ".down_proj", .fused = "experts.down_proj"}};
}

SwitchGlu::SwitchGlu(const checkpoint::WeightScope& scope, const Options& o)
    : gate_(scope, o.names.gate, o.experts, o.hidden, o.intermediate, o.bias),
      up_(scope, o.names.up, o.experts, o.hidden, o.intermediate, o.bias),
      down_(scope, o.names.down, o.experts, o.intermediate, o.hidden, o.bias),
      activation_(o.activation),
      has_bias_(o.bias) {}

std::vector<ops::GatedMatrices> SwitchGlu::native() const {
  if (has_bias_) fail(ErrorCode::unsupported, "experts", "native mode has no experts with biases");
  std::vector<ops::GatedMatrices> experts;
  for (std::size_t e = 0; e < gate_.native().size(); ++e)
    experts.push_back({gate_.native()[e], up_.native()[e], down_.native()[e]});
  return experts;
}

mx::array SwitchGlu::forward(const mx::array& x, const mx::array& chosen, bool sorted) const {
  const mx::array up = up_(x, chosen, sorted);
  const mx::array gate = gate_(x, chosen, sorted);
  return down_(activate(activation_, gate) * up, chosen, sorted);
}

mx::array SwitchGlu::operator()(const mx::array& x, const mx::array& chosen) const {
  GODWIT_CHECK(x.ndim() == 2 && chosen.ndim() == 2 && chosen.shape(0) == x.shape(0),
               "experts for {} tokens chosen for {}", x.shape(0), chosen.shape(0));
  if (chosen.size() < kSortFrom) return mx::squeeze(forward(mx::expand_dims(x, {-2, -3}), chosen, false), -2);
  const mx::array flat = mx::flatten(chosen);
  const mx::array order = mx::argsort(flat);
  const mx::array token = mx::floor_divide(order, mx::array(chosen.shape(1), order.dtype()));
  const mx::array y = forward(mx::expand_dims(mx::take(x, token, 0), -2), mx::take(flat, order, 0), true);
  const mx::array back = mx::take(mx::squeeze(y, -2), mx::argsort(order), 0);
  return mx::unflatten(back, 0, chosen.shape());
}

}  // namespace godwit::nn
