// Ministral 3: the llama graph whose queries grow with their position, everything about rotation in
// rope_parameters. Truth: mlx_lm/models/ministral3.py.
#include <array>
#include <string>

#include "checkpoint/config_keys.h"
#include "checkpoint/gguf.h"
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

using checkpoint::Config;
using checkpoint::ConfigKeys;

constexpr const char* kParameters = "rope_parameters";
constexpr const char* kGain = "llama_4_scaling_beta";
constexpr const char* kLength = "original_max_position_embeddings";

// The keys of a GGUF file, which has the gain only where the model does, as rope_parameters.
void gather_parameters(const checkpoint::GgufFile& file, Json& config) {
  Json parameters = config.contains("rope_scaling") ? config["rope_scaling"] : Json::object();
  config.erase("rope_scaling");
  parameters["rope_theta"] = config["rope_theta"];
  if (const auto all = file.metadata.number("mistral3.rope.scaling.yarn_log_multiplier"))
    parameters["mscale_all_dim"] = *all;
  if (const auto beta = file.metadata.number("mistral3.attention.temperature_scale"))
    parameters[kGain] = *beta;
  config[kParameters] = std::move(parameters);
}

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "mistral3", .rows_are_permuted = true, .complete = gather_parameters}}};
constexpr checkpoint::Dialect kDialect = {
    .model_type = "ministral3", .rope_parameters = checkpoint::RopeParameters::first, .gguf = kGguf};

std::optional<nn::PositionGain> gain_of(const Config& config) {
  const Json none = Json::object();
  const std::string origin = config.origin + ": rope_parameters";
  const ConfigKeys keys(config.has(kParameters) ? config.raw[kParameters] : none, origin);
  const std::optional<double> beta = keys.number(kGain);
  if (!beta && config.from_gguf) return std::nullopt;
  if (!beta) keys.missing(kGain);
  return nn::PositionGain{.beta = *beta, .length = keys.need_size(kLength, 1 << 30)};
}

DenseSpec spec(const Config& config) {
  DenseSpec spec = llama_spec(config);
  spec.attention.qkv_bias = spec.attention.output_bias = spec.mlp.bias = false;
  spec.attention.position_gain = gain_of(config);
  spec.ropes[0].options.traditional = false;
  return spec;
}

}  // namespace

const Family ministral3 = dense_family<spec>("ministral3", &kDialect);

}  // namespace godwit::models
