// The universal dense decoder: one graph whose every difference between families is a field (reference: knobs of
// families.md 9.1). A family file says its differences from llama; the graph, the rules of its weights and the needs of
// its state follow from that.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/config.h"
#include "models/decoder.h"
#include "models/family.h"
#include "nn/attention.h"
#include "nn/mlp.h"
#include "nn/rope.h"

namespace godwit::models {

struct DenseRope {
  nn::Rope::Options options;
  bool takes_file_factors = true;  // rope_freqs of a GGUF file
};

struct DenseLayer {
  std::optional<int> window = {};  // positions a query sees, itself included; absent: all
  std::optional<int> rope = 0;     // index into DenseSpec::ropes; absent: positions are not encoded
  std::optional<nn::XieluScalars> xielu = {};  // of its activation, where they are no tensors
};

// The norms around a branch by the names of their weights; blank: none.
struct DenseNorms {
  std::string_view before, after;
};

enum class DenseTie { tied, untied, when_absent };  // the last: tied where the file has no lm_head

struct DenseSpec {
  nn::NormOptions norm;  // of every norm but those of q and k; dims are filled in
  DenseNorms attention_norms = {"input_layernorm", ""};
  DenseNorms mlp_norms = {"post_attention_layernorm", ""};
  std::optional<ParallelBlock::Order> parallel = {};  // one norm, attention_norms.before, for both branches
  nn::ResidualSum residual_sum = nn::ResidualSum::plain;
  std::optional<double> residual_multiplier = {};

  nn::Attention::Options attention;
  std::vector<DenseRope> ropes;
  std::vector<DenseLayer> layers;  // one per layer
  nn::Mlp::Options mlp;

  std::optional<mx::array> embedding_scale = {};
  std::optional<nn::NormOptions> embedding_norm = {};
  DenseTie tie = DenseTie::tied;
  HeadOptions head = {};  // but `tied`

  std::vector<std::string> drop = {"rotary_emb.inv_freq"};  // as in WeightRules
  // Parts of tensor names, ended by dots or the name's ends, in the file's and the graph's spelling; the first that
  // fits is replaced, then the search goes on behind it.
  std::vector<checkpoint::Spelling> names = {};
  bool checks_activation = true;  // refuses a hidden_act that names another activation than mlp.activation
  std::vector<std::string_view> activation_aliases = {};  // other values of hidden_act that the oracle runs as it
};

// Llama by the config: pre norms, SwiGLU, half-split or traditional rotary over the whole head, biases by
// attention_bias and mlp_bias, layer_types with sliding_window, tied unless the config says otherwise.
DenseSpec llama_spec(const checkpoint::Config& config);

// Parts of it that families take apart from the rest.
nn::Rope::Options dense_rope(const checkpoint::Config& config);  // the whole head, unless a GGUF file says less
nn::Rope::Options partial_rope(const checkpoint::Config& config);  // as much as partial_rotary_factor says
// Error{unsupported} naming a rope scaling of another type than `default` and these: the oracle would not apply it.
void require_rope_types(const checkpoint::Config& config, std::initializer_list<std::string_view> types = {});
// Error{unsupported} where heads times head_dim are not the hidden size: the oracle reads no head_dim.
void require_plain_heads(const checkpoint::Config& config);
// The norms' epsilon by the one key that the oracle reads; in a GGUF file by its own.
double norm_eps_by(const checkpoint::Config& config, std::string_view key);
// By layer_types: none where it says full_attention or nothing. Error{corrupt_file} without a sliding_window,
// Error{unsupported} for other types.
std::vector<std::optional<int>> windows_by_type(const checkpoint::Config& config);
// Every `period`-th layer is full, the others slide.
std::vector<std::optional<int>> windows_by_period(const checkpoint::Config& config, int period);

// What a Family row needs, from the spec alone.
checkpoint::WeightRules dense_rules(const checkpoint::Config& config, const DenseSpec& spec);
cache::StateNeeds dense_needs(const checkpoint::Config& config, const DenseSpec& spec);
std::unique_ptr<Model> dense_model(const checkpoint::WeightScope& root, const checkpoint::Config& config,
                                   DenseSpec spec);

template <DenseSpec (*spec)(const checkpoint::Config&)>
constexpr Family dense_family(std::string_view id, const checkpoint::Dialect* dialect,
                              bool (*accepts)(const checkpoint::Config&) = nullptr) {
  using checkpoint::Config;
  return {.id = id,
          .dialect = dialect,
          .accepts = accepts,
          .rules = [](const Config& config) { return dense_rules(config, spec(config)); },
          .needs = [](const Config& config) { return dense_needs(config, spec(config)); },
          .make = [](const checkpoint::WeightScope& root,
                     const Config& config) { return dense_model(root, config, spec(config)); },
          .specialization = Specialization::generic};
}

}  // namespace godwit::models
