#include "checkpoint/config_rope.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

namespace godwit::checkpoint {
namespace {

constexpr std::int64_t kMaxPositions = 1ll << 30;

double positive(const ConfigKeys& keys, std::string_view key, double absent) {
  const double value = keys.number(key).value_or(absent);
  // The graphs compute in f32.
  if (!(value > 0) || !std::isnormal(static_cast<float>(value))) keys.bad(key, Json(value), "a number above 0 that f32 holds");
  return value;
}

// The type of a scaling object, "default" when it names none.
std::string type_of(const ConfigKeys& keys) {
  if (const auto type = keys.string("type")) return *type;
  return keys.string("rope_type").value_or("default");
}

RopeScaling read_scaling(const Json& object, const std::string& origin) {
  const ConfigKeys keys(object, origin);
  RopeScaling scaling;
  scaling.type = type_of(keys);
  const bool needs_factor =
      scaling.type == "linear" || scaling.type == "llama3" || scaling.type.ends_with("yarn");
  if (needs_factor && !keys.find("factor")) keys.missing("factor");
  scaling.factor = positive(keys, "factor", 1.0);
  scaling.original_max_position = keys.size("original_max_position_embeddings", kMaxPositions);
  scaling.low_freq_factor = positive(keys, "low_freq_factor", scaling.low_freq_factor);
  scaling.high_freq_factor = positive(keys, "high_freq_factor", scaling.high_freq_factor);
  scaling.beta_fast = positive(keys, "beta_fast", scaling.beta_fast);
  scaling.beta_slow = positive(keys, "beta_slow", scaling.beta_slow);
  scaling.mscale = keys.number("mscale").value_or(scaling.mscale);
  scaling.mscale_all_dim = keys.number("mscale_all_dim").value_or(scaling.mscale_all_dim);
  scaling.attention_factor = keys.number("attention_factor");
  scaling.short_factor = keys.numbers("short_factor").value_or(std::vector<double>{});
  scaling.long_factor = keys.numbers("long_factor").value_or(std::vector<double>{});
  for (const double section : keys.numbers("mrope_section").value_or(std::vector<double>{})) {
    if (!(section >= 0 && section <= 4096))
      keys.bad("mrope_section", Json(section), "a section of 0 to 4096");
    scaling.mrope_section.push_back(static_cast<int>(section));
  }
  return scaling;
}

const Json* part_of(const Json& parameters, const char* layer_type) {
  const auto found = parameters.find(layer_type);
  return found != parameters.end() && found->is_object() ? &*found : nullptr;
}

struct Source {
  const Json* full = nullptr;     // rope_parameters, or its part for full-attention layers
  const Json* sliding = nullptr;  // its part for sliding layers
};

Source parameters_of(const ConfigKeys& keys) {
  const Json* const parameters = keys.find("rope_parameters");
  if (!parameters) return {};
  if (!parameters->is_object()) keys.bad("rope_parameters", *parameters, "an object");
  const Json* const full = part_of(*parameters, "full_attention");
  return {full ? full : parameters, part_of(*parameters, "sliding_attention")};
}

}  // namespace

std::optional<RopeScaling> rope_scaling_of(const Json& parameters, const std::string& origin) {
  if (type_of(ConfigKeys(parameters, origin)) == "default") return std::nullopt;
  return read_scaling(parameters, origin);
}

void read_rope(const ConfigKeys& keys, const Json& given, RopeParameters oracle, Config& config) {
  const Source source = parameters_of(keys);
  const std::string inner_origin = config.origin + ": rope_parameters";
  const Json empty = Json::object();
  const ConfigKeys full(source.full ? *source.full : empty, inner_origin);
  const ConfigKeys sliding(source.sliding ? *source.sliding : empty, inner_origin);

  // A theta inside rope_parameters is what the file's author set; a family default must not hide it. An outer one that
  // the file has, too, wins where the oracle does not read rope_parameters first.
  const double outer_theta = positive(keys, "rope_theta", 10000.0);
  const bool has_outer = given.contains("rope_theta") && !given["rope_theta"].is_null();
  const bool inner_counts = full.find("rope_theta") && (oracle == RopeParameters::first || !has_outer);
  config.rope_theta = inner_counts ? positive(full, "rope_theta", 1) : outer_theta;
  if (sliding.find("rope_theta"))
    config.rope_local_theta = positive(sliding, "rope_theta", 1);
  else if (keys.find("rope_local_base_freq"))
    config.rope_local_theta = positive(keys, "rope_local_base_freq", 1);
  config.rope_traditional = keys.boolean("rope_traditional").value_or(false);

  const auto partial = full.number("partial_rotary_factor");
  config.partial_rotary_factor = partial ? *partial : keys.number("partial_rotary_factor").value_or(1.0);
  if (!(config.partial_rotary_factor > 0 && config.partial_rotary_factor <= 1))
    keys.bad("partial_rotary_factor", Json(config.partial_rotary_factor), "in (0, 1]");

  const Json* const scaling = keys.find("rope_scaling");
  const bool is_inner = source.full && (oracle == RopeParameters::first || !scaling);
  if (scaling && !scaling->is_object()) keys.bad("rope_scaling", *scaling, "an object");
  if (is_inner) {
    config.rope_scaling = rope_scaling_of(*source.full, inner_origin);
  } else if (scaling) {
    config.rope_scaling = read_scaling(*scaling, config.origin + ": rope_scaling");
  }
  const bool departs = config.rope_theta != outer_theta || (is_inner && config.rope_scaling) || partial;
  if (oracle != RopeParameters::unread || !departs) return;
  config.departure = fmt::format("rope_parameters is honoured here, while mlx-lm ignores it for {}", config.model_type);
  config.warnings.push_back(fmt::format("{}: {}", config.origin, config.departure));
}

}  // namespace godwit::checkpoint
