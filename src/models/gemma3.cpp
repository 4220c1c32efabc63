// Gemma 3 as its multimodal files hold it: the text decoder under language_model, beside an image encoder
// that is left out. Truth: mlx_lm/models/gemma3.py, whose defaults are those of the 4B release.
#include "models/families.h"
#include "models/gemma3_text.h"

namespace godwit::models {
namespace {

constexpr checkpoint::Dialect kDialect = {
    .model_type = "gemma3",
    .defaults = R"({"hidden_size": 1152, "num_hidden_layers": 26, "intermediate_size": 6912,
                    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "rms_norm_eps": 1e-6,
                    "vocab_size": 262208, "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
                    "query_pre_attn_scalar": 256, "sliding_window": 512, "sliding_window_pattern": 6,
                    "max_position_embeddings": 32768})"};

DenseSpec spec(const checkpoint::Config& config) {
  DenseSpec spec = gemma3_text_spec(config);
  spec.names = {{"language_model", ""}};
  spec.drop.insert(spec.drop.end(), {"vision_tower.", "multi_modal_projector."});
  return spec;
}

}  // namespace

const Family gemma3 = dense_family<spec>("gemma3", &kDialect);

}  // namespace godwit::models
