// Hunyuan dense: the llama graph with norms on q and k behind their rotation, whose base an alpha raises.
// Truth: mlx_lm/models/hunyuan_v1_dense.py.
#include <array>
#include <cmath>
#include <string>

#include "checkpoint/config_keys.h"
#include "checkpoint/gguf.h"
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

using checkpoint::Config;
using checkpoint::ConfigKeys;

// The base of a GGUF file is the raised one already.
void add_head_norms(const checkpoint::GgufFile& file, Json& config) {
  config["use_qk_norm"] = file.has("blk.0.attn_q_norm.weight");
}

constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "hunyuan-dense", .complete = add_head_norms}}};
constexpr checkpoint::Dialect kDialect = {.model_type = "hunyuan_v1_dense",
                                          .defaults = R"({"tie_word_embeddings": false})",
                                          .gguf = kGguf,
                                          .reads_windows = false};

double alpha_of(const Config& config) {
  for (const char* const key : {"rope_scaling", "rope_parameters"}) {
    if (!config.has(key) || config.raw[key].empty()) continue;
    const std::string origin = config.origin + ": " + key;
    const ConfigKeys keys(config.raw[key], origin);
    const std::optional<double> alpha = keys.number("alpha");
    if (!alpha && key == std::string_view("rope_scaling")) keys.missing("alpha");
    if (alpha && !(*alpha > 0)) keys.bad("alpha", Json(*alpha), "a number above 0");
    if (alpha) return *alpha;
  }
  return 1.0;
}

// Whatever type it names: alpha is all that the oracle reads of a scaling.
nn::Rope::Options raised_rope(const Config& config) {
  nn::Rope::Options options = dense_rope(config);
  options.base *= std::pow(alpha_of(config), options.dims / (options.dims - 2.0));
  options.by_periods = true;
  options.traditional = false;
  options.scaling.reset();
  return options;
}

DenseSpec spec(const Config& config) {
  if (config.from_gguf) require_rope_types(config);
  DenseSpec spec = llama_spec(config);
  spec.mlp.bias = false;
  if (config.boolean("use_qk_norm", true))
    spec.attention.qk_norm = nn::HeadNormOptions{.eps = config.norm_eps, .after_rope = true};
  spec.ropes = {{.options = raised_rope(config)}};
  spec.names = {{"query_layernorm", "q_norm"}, {"key_layernorm", "k_norm"}};
  return spec;
}

}  // namespace

const Family hunyuan_v1_dense = dense_family<spec>("hunyuan_v1_dense", &kDialect);

}  // namespace godwit::models
