#include "models/dense_experts.h"

#include <algorithm>

namespace godwit::models {
namespace {

using checkpoint::Config;

bool is_expert_module(std::string_view path) {
  return std::ranges::any_of(
      std::array<std::string_view, 3>{".experts", "switch_mlp", "switch_glu"},
      [&](std::string_view part) { return path.find(part) != std::string_view::npos; });
}

// Whether the file is not quantized, or says of some experts that they are not.
bool has_dense_experts(const Config& config) {
  if (config.quantization.empty()) return true;
  const Json map = config.quantization.to_json();
  const Json& overrides = map.at("overrides");
  for (const auto& [path, spec] : overrides.items())
    if (spec == false && is_expert_module(path)) return true;
  return false;
}

}  // namespace

bool has_narrow_dense_experts(const Config& config) {
  return !config.from_gguf && config.integer("num_experts", 0) > 0 && config.dtype != "float32" &&
         has_dense_experts(config);
}

}  // namespace godwit::models
