#include "ops/mixed_graph.h"

#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/mx_ops.h"
#include "ops/composed.h"
#include "ops/native_primitive.h"

namespace godwit::ops {

void bind_runtime(const mx::array& output, NativeRuntime& runtime, const StepLayers& layers) {
  std::unordered_set<std::uintptr_t> seen;
  std::vector<mx::array> left = {output};
  while (!left.empty()) {
    const mx::array at = std::move(left.back());
    left.pop_back();
    if (!at.has_primitive() || !seen.insert(at.id()).second) continue;
    if (auto* const native = dynamic_cast<NativePrimitive*>(&at.primitive())) native->bind(runtime, layers);
    left.insert(left.end(), at.inputs().begin(), at.inputs().end());
  }
}

std::map<std::string, mx::array> parameter_gradients(const mx::array& y, const mx::array& cotangent) {
  const auto* const native = y.has_primitive() ? dynamic_cast<const NativePrimitive*>(&y.primitive()) : nullptr;
  if (native == nullptr) fail(ErrorCode::invalid_argument, "gradient", "no native node that is still to be evaluated");
  const mx::array& x = y.inputs()[0];
  Constants own;
  native->composed(x, own, native->bound_layers());
  std::vector<mx::array> values;
  for (const auto& [name, value] : own.parameters()) values.push_back(value);
  const auto with = [&](const std::vector<mx::array>& replaced) -> std::vector<mx::array> {
    std::map<std::string, mx::array> by_name;
    for (const auto& [name, value] : own.parameters()) by_name.emplace(name, replaced[by_name.size()]);
    Constants constants(std::move(by_name));
    return {native->composed(x, constants, native->bound_layers())};
  };
  const std::vector<mx::array> gradients = mx::vjp(with, values, {cotangent}).second;
  std::map<std::string, mx::array> result;
  for (const auto& [name, value] : own.parameters()) result.emplace(name, gradients[result.size()]);
  return result;
}

}  // namespace godwit::ops
