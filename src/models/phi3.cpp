// Phi-3 and Phi-4: llama with one matrix for q, k and v and one for gate and up, a part of each head turned,
// rotary scaling by factors of each pair, an untied head. Truth: mlx_lm/models/phi3.py, which takes the long
// factors at every length and reads every layer in full: sliding_window is not applied.
#include <array>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "checkpoint/gguf.h"
#include "models/dense.h"
#include "models/families.h"

namespace godwit::models {
namespace {

using checkpoint::Config;

// Numbers of an f32 vector as a config holds them.
Json numbers_of(const checkpoint::TensorEntry& entry) {
  if (entry.format != checkpoint::TensorFormat::f32 || entry.shape.size() != 1)
    fail(ErrorCode::corrupt_file, "phi3", "{}: wanted an f32 vector", checkpoint::describe(entry));
  std::vector<float> values(entry.size / sizeof(float));
  std::memcpy(values.data(), entry.bytes().data(), entry.size);
  return values;
}

// The factors of each pair lie in tensors, the lengths in the metadata. Phi-4's window of 0 says that there
// is none.
void add_factors(const checkpoint::GgufFile& file, Json& config) {
  if (config.value("sliding_window", Json()) == 0) config.erase("sliding_window");
  if (const auto original = file.metadata.integer("phi3.rope.scaling.original_context_length"))
    config["original_max_position_embeddings"] = *original;
  for (const checkpoint::TensorEntry& entry : file.tensors) {
    const bool is_long = entry.name == "rope_factors_long.weight";
    if (!is_long && entry.name != "rope_factors_short.weight") continue;
    config["rope_scaling"]["type"] = "longrope";
    config["rope_scaling"][is_long ? "long_factor" : "short_factor"] = numbers_of(entry);
  }
}

constexpr std::array<checkpoint::Spelling, 2> kNames = {
    {{"attn_qkv", "self_attn.qkv_proj"}, {"ffn_up", "mlp.gate_up_proj"}}};
constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "phi3", .names = kNames, .complete = add_factors}}};
constexpr checkpoint::Dialect kDialect = {
    .model_type = "phi3",
    .defaults = R"({"max_position_embeddings": 131072, "original_max_position_embeddings": 4096,
                    "tie_word_embeddings": false})",
    .gguf = kGguf,
    .reads_windows = false};

nn::Rope::Options rope_of(const Config& config) {
  require_rope_types(config, {"longrope", "su", "linear"});
  nn::Rope::Options options = partial_rope(config);
  if (!options.scaling || options.scaling->type == "linear") return options;
  options.traditional = false;
  // The oracle reads these lengths beside the scaling, not in it.
  options.scaling->original_max_position =
      static_cast<int>(config.integer("original_max_position_embeddings"));
  return options;
}

DenseSpec spec(const Config& config) {
  DenseSpec spec = llama_spec(config);
  spec.attention.packing = nn::QkvPacking::stacked;
  spec.attention.qkv_bias = spec.attention.output_bias = spec.mlp.bias = false;
  spec.mlp.form = nn::MlpForm::gated_packed;
  spec.ropes = {{.options = rope_of(config)}};
  spec.drop.emplace_back("rope_factors_");  // of GGUF files, read with the config
  return spec;
}

}  // namespace

const Family phi3 = dense_family<spec>("phi3", &kDialect);

}  // namespace godwit::models
