// Gemma 4: sandwich norms, a scalar on every layer, full and sliding layers with heads of different sizes,
// norms on values and, by size, inputs to every layer (E2B, E4B), layers that read another one's keys and
// values (same), keys that are values (12B and up) and experts beside the MLP (26B-A4B). Text only. Truth:
// mlx_lm/models/{gemma4,gemma4_text}.py.
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/weight_store.h"
#include "models/decoder.h"
#include "models/dense_experts.h"
#include "models/families.h"
#include "models/gemma4_gguf.h"
#include "models/gemma4_layer.h"
#include "models/gemma4_plan.h"
#include "models/gemma4_widths.h"
#include "models/renaming.h"

namespace godwit::models {
namespace {

using checkpoint::Config;
using checkpoint::Spelling;
using checkpoint::WeightScope;

constexpr std::array<std::string_view, 2> kAliases = {"gemma4_text", "gemma4_unified"};
// With "all" transformers lets every token see the ones after it, and halves the window.
constexpr std::array<Spelling, 1> kUnread = {{{"use_bidirectional_attention", "all"}}};
// use_double_wide_mlp is left out: libraries disagree about its default, so the tensors decide.
constexpr checkpoint::Dialect kDialect = {
    .model_type = "gemma4",
    .aliases = kAliases,
    .defaults = R"({"hidden_size": 1536, "num_hidden_layers": 35, "intermediate_size": 6144,
                    "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256, "global_head_dim": 512,
                    "rms_norm_eps": 1e-6, "vocab_size": 262144, "num_kv_shared_layers": 20,
                    "hidden_size_per_layer_input": 256, "sliding_window": 512, "sliding_window_pattern": 5,
                    "max_position_embeddings": 131072, "final_logit_softcapping": 30.0, "rope_parameters": {
                      "full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0,
                                         "rope_type": "proportional"},
                      "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}}})",
    .rope_parameters = checkpoint::RopeParameters::first,
    .gguf = kGemma4Gguf,
    .nulls = R"({"final_logit_softcapping": 0.0, "global_head_dim": 0, "hidden_size_per_layer_input": 0})",
    .unread = kUnread};

checkpoint::WeightRules rules(const Config& config) {
  const Gemma4Plan plan = gemma4_plan(config);
  checkpoint::WeightRules rules;
  rules.drop = {"vision_tower", "multi_modal_projector", "audio_tower", "embed_audio", "embed_vision",
                "vision_embedder", "self_attn.rotary_emb",
                // Ranges of the clipped layers beside the text model.
                "input_max", "input_min", "output_max", "output_min"};
  for (int layer = plan.owners; layer < config.layers; ++layer)
    for (const char* const part : {"k_proj", "v_proj", "k_norm"})
      rules.drop.push_back(fmt::format("layers.{}.self_attn.{}", layer, part));
  rules.rename = renaming({{"language_model.model", "model"},
                           {"model.language_model", "model"},
                           {"language_model", ""},
                           // GGUF files have one tensor and its scale where the graph has two.
                           {"router.proj.scale", "router.scale"},
                           {"experts.down_proj.scale", "router.per_expert_scale"},
                           {"layer_scalar.weight", "layer_scalar"}});
  return rules;
}

cache::StateNeeds needs(const Config& config) { return gemma4_needs(gemma4_plan(config)); }

class Gemma4 final : public Model {
 public:
  Gemma4(const WeightScope& root, const Config& config, const Gemma4Plan& plan);

  cache::StateNeeds state_needs() const override { return needs_; }
  mx::array hidden(const mx::array& tokens, cache::Step& step) const override;
  mx::array logits(const mx::array& hidden) const override;

 private:
  nn::Embedding embedding_;
  std::optional<Gemma4LayerInputs> layer_inputs_;
  std::vector<Gemma4Layer> layers_;
  std::vector<int> states_;  // of each layer: the index of the state that it attends to
  nn::Norm norm_;
  nn::Linear head_;
  double soft_cap_;
  cache::StateNeeds needs_;
};

nn::Linear head_of(const WeightScope& root, const Config& config, bool is_tied,
                   const nn::Embedding& embedding) {
  return is_tied ? embedding.as_linear() : nn::Linear(root / "lm_head", config.hidden, config.vocabulary);
}

Gemma4::Gemma4(const WeightScope& root, const Config& config, const Gemma4Plan& plan)
    : embedding_(root / "model.embed_tokens", config.vocabulary, config.hidden, activation_dtype(config),
                 mx::array(std::sqrt(config.hidden), mx::float32)),
      norm_(root / "model.norm", {.dims = config.hidden, .eps = config.norm_eps}),
      head_(head_of(root, config, plan.is_tied, embedding_)),
      soft_cap_(plan.soft_cap),
      needs_(gemma4_needs(plan)) {
  if (plan.layer_input_dims > 0)
    layer_inputs_.emplace(root, config, gemma4_layer_vocabulary(root, config), plan.layer_input_dims);
  const auto rope_of = [](const std::optional<nn::Rope::Options>& options) {
    return options ? std::optional<nn::Rope>(*options) : std::nullopt;
  };
  const std::optional<nn::Rope> full = rope_of(plan.full_rope), sliding = rope_of(plan.sliding_rope);
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    layers_.emplace_back(layer_scope(root, static_cast<int>(i)), config, plan, i,
                         (plan.layers[i].is_full ? full : sliding).value());
    states_.push_back(plan.layers[i].state);
  }
  for (cache::LayerNeed& need : needs_) need.element_bytes = embedding_.element_bytes();
}

mx::array Gemma4::hidden(const mx::array& tokens, cache::Step& step) const {
  mx::array h = embedding_(tokens);
  std::optional<mx::array> inputs;
  if (layer_inputs_) inputs = (*layer_inputs_)(tokens, h);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    std::optional<mx::array> input;
    if (inputs) input = mx::take(*inputs, static_cast<int>(i), 1);
    h = layers_[i](h, step, step.layer(states_[i]), input);
  }
  return norm_(h);
}

mx::array Gemma4::logits(const mx::array& hidden) const {
  const mx::array y = head_(hidden);
  return soft_cap_ == 0.0 ? y : mx::tanh(y / scalar_like(soft_cap_, y)) * scalar_like(soft_cap_, y);
}

std::unique_ptr<Model> make(const WeightScope& root, const Config& config) {
  if (root.store().native())
    fail(ErrorCode::unsupported, "gemma4", "{}: native mode has no graph of Gemma 4; --math reference has",
         config.origin);
  Gemma4Plan plan = gemma4_plan(config);
  settle_gemma4_widths(root, config, plan);
  // What it says went into the config.
  if (config.from_gguf && plan.full_rope)
    static_cast<void>((root / "rope_freqs").dense_if_present("weight", {plan.full_rope->dims / 2}));
  return std::make_unique<Gemma4>(root, config, plan);
}

bool has_narrow_experts(const Config& config) {
  return config.boolean("enable_moe_block", false) && has_narrow_dense_experts(config);
}
constexpr std::array<LesserPromise, 1> kLesser = {{dense_experts(has_narrow_experts)}};

}  // namespace

const Family gemma4 = {
    .id = "gemma4", .dialect = &kDialect, .rules = rules, .needs = needs, .make = make, .lesser = kLesser};

}  // namespace godwit::models
