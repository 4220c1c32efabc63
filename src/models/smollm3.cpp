// SmolLM3: the llama graph in which every fourth layer, or those that the config lists, does not encode
// positions. Truth: mlx_lm/models/smollm3.py.
#include <array>
#include <vector>

#include "base/error.h"
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

using checkpoint::Config;

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "smollm3", .rows_are_permuted = true}}};
constexpr checkpoint::Dialect kDialect = {.model_type = "smollm3", .gguf = kGguf};

// One entry per layer: 0 where positions are not encoded.
std::vector<int> turning_layers(const Config& config) {
  if (config.has("no_rope_layers")) {
    std::vector<int> layers = config.integers("no_rope_layers");
    if (static_cast<int>(layers.size()) != config.layers)
      fail(ErrorCode::corrupt_file, config.model_type, "{}: no_rope_layers has {} entries for {} layers",
           config.origin, layers.size(), config.layers);
    return layers;
  }
  const std::int64_t interval = config.integer("no_rope_layer_interval", 4);
  if (interval < 1)
    fail(ErrorCode::corrupt_file, config.model_type, "{}: no_rope_layer_interval is {}", config.origin,
         interval);
  std::vector<int> layers;
  for (int i = 0; i < config.layers; ++i) layers.push_back((i + 1) % interval != 0);
  return layers;
}

DenseSpec spec(const Config& config) {
  DenseSpec spec = llama_spec(config);
  const std::vector<int> turning = turning_layers(config);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    // The oracle's caches keep everything, so that its windows hold within one prompt and not behind it.
    if (spec.layers[i].window)
      fail(ErrorCode::unsupported, config.model_type, "{}: layer {} slides; smollm3 has full layers only",
           config.origin, i);
    if (turning[i] == 0) spec.layers[i].rope.reset();
  }
  return spec;
}

}  // namespace

const Family smollm3 = dense_family<spec>("smollm3", &kDialect);

}  // namespace godwit::models
