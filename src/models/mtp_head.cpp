#include "models/mtp_head.h"

#include "checkpoint/weight_store.h"
#include "models/qwen_layers.h"

namespace godwit::models {

using checkpoint::Config;
using checkpoint::WeightScope;

bool MtpHead::is_in(const WeightScope& root) { return !root.store().names("mtp.").empty(); }

MtpHead MtpHead::read(const WeightScope& root, const Config& config, const HybridSpec& spec) {
  const WeightScope scope = root / "mtp";
  const nn::NormOptions norm = {.dims = config.hidden, .eps = config.norm_eps, .gain = spec.gain};
  const nn::Rope rope(spec.rope);
  const bool is_sparse = config.integer("num_experts", 0) > 0;
  const int count = config.has("mtp_num_hidden_layers") ? needed_size(config, "mtp_num_hidden_layers") : 1;
  Blocks layers;
  for (int i = 0; i < count; ++i)
    layers.push_back(hybrid_block(scope / "layers" / i, config, spec, rope, true, is_sparse));
  return {.embedding_norm = nn::Norm(scope / "pre_fc_norm_embedding", norm),
          .hidden_norm = nn::Norm(scope / "pre_fc_norm_hidden", norm),
          .fc = nn::Linear(scope / "fc", 2 * config.hidden, config.hidden),
          .layers = std::move(layers),
          .norm = nn::Norm(scope / "norm", norm)};
}

}  // namespace godwit::models
