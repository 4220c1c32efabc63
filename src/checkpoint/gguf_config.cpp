// Config of a GGUF file: its metadata under the keys of a config.json, then the one parser.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "checkpoint/gguf_model.h"

namespace godwit::checkpoint {
namespace {

// The period of "every n-th layer is full", when the list has one.
std::optional<std::int64_t> period_of(const Json& types) {
  const auto first = std::ranges::find(types, Json("full_attention"));
  if (first == types.end()) return std::nullopt;
  const auto period = static_cast<std::size_t>(first - types.begin()) + 1;
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types[i] != ((i + 1) % period == 0 ? "full_attention" : "sliding_attention")) return std::nullopt;
  return static_cast<std::int64_t>(period);
}

enum class Kind { integer, number };
struct KeyRule {
  std::string_view gguf;  // behind "{architecture}."
  const char* config;
  Kind kind;
  bool needed;
};
constexpr std::array<KeyRule, 16> kKeys = {{
    {"block_count", "num_hidden_layers", Kind::integer, true},
    {"embedding_length", "hidden_size", Kind::integer, true},
    {"feed_forward_length", "intermediate_size", Kind::integer, false},  // models of experts may leave it out
    {"attention.head_count", "num_attention_heads", Kind::integer, true},
    {"attention.head_count_kv", "num_key_value_heads", Kind::integer, false},
    {"attention.key_length", "head_dim", Kind::integer, false},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", Kind::number, false},
    {"attention.layer_norm_epsilon", "layer_norm_eps", Kind::number, false},
    {"context_length", "max_position_embeddings", Kind::integer, false},
    {"rope.freq_base", "rope_theta", Kind::number, false},
    {"rope.freq_base_swa", "rope_local_base_freq", Kind::number, false},
    {"attention.sliding_window", "sliding_window", Kind::integer, false},
    {"attn_logit_softcapping", "attn_logit_softcapping", Kind::number, false},
    {"final_logit_softcapping", "final_logit_softcapping", Kind::number, false},
    {"vocab_size", "vocab_size", Kind::integer, false},
    {"expert_count", "num_experts", Kind::integer, false},
}};

class Builder {
 public:
  Builder(const GgufFile& file, const Dialects::Gguf& dialect)
      : file_(file),
        metadata_(file.metadata),
        gguf_(*dialect.gguf),
        prefix_(std::string(dialect.gguf->architecture) + ".") {
    json_["model_type"] = dialect.dialect->model_type;
  }

  Json build() {
    json_["rope_theta"] = 10000.0;  // what a file without the key means, whatever the family's own default
    for (const KeyRule& rule : kKeys) copy(rule);
    if (!json_.contains("rms_norm_eps") && !json_.contains("layer_norm_eps")) missing(key(kKeys[6].gguf));
    read_window_pattern();
    read_rope();
    read_tokens();
    json_["tie_word_embeddings"] = !file_.has("output.weight");
    json_["attention_bias"] = file_.has("blk.0.attn_q.bias");
    json_["mlp_bias"] = file_.has("blk.0.ffn_up.bias");
    if (gguf_.complete) gguf_.complete(file_, json_);
    if (!json_.contains("intermediate_size")) missing(key("feed_forward_length"));
    return std::move(json_);
  }

 private:
  std::string key(std::string_view tail) const { return prefix_ + std::string(tail); }

  void copy(const KeyRule& rule) {
    const std::string from = key(rule.gguf);
    if (!metadata_.has(from)) {
      if (rule.needed) missing(from);
      return;
    }
    if (rule.kind == Kind::number)
      json_[rule.config] = *metadata_.number(from);
    else if (std::ranges::find(gguf_.keys_per_layer, rule.gguf) != gguf_.keys_per_layer.end())
      json_[rule.config] = largest_of_all_layers(from);
    else
      json_[rule.config] = one_for_all_layers(from);
  }

  [[noreturn]] void missing(const std::string& from) const {
    fail(ErrorCode::corrupt_file, "config", "{}: the key {} is missing", metadata_.origin(), from);
  }

  std::int64_t largest_of_all_layers(const std::string& from) const {
    const auto values = metadata_.integers(from).value_or(std::vector<std::int64_t>{});
    if (values.empty())
      fail(ErrorCode::corrupt_file, "config", "{}: {} is an empty list", metadata_.origin(), from);
    return std::ranges::max(values);
  }

  // Some writers store one value per layer; layers that differ need a graph that knows it.
  std::int64_t one_for_all_layers(const std::string& from) const {
    const auto values = metadata_.integers(from).value_or(std::vector<std::int64_t>{});
    if (values.empty() || std::any_of(values.begin(), values.end(), [&](auto v) { return v != values[0]; }))
      fail(ErrorCode::unsupported, "config", "{}: {} differs between layers", metadata_.origin(), from);
    return values[0];
  }

  // A period, or one truth value per layer.
  void read_window_pattern() {
    const std::string from = key("attention.sliding_window_pattern");
    const GgufValue* const value = metadata_.find(from);
    if (!value) return;
    if (std::holds_alternative<std::int64_t>(*value)) {
      json_["sliding_window_pattern"] = std::get<std::int64_t>(*value);
      return;
    }
    Json types = Json::array();
    const auto sliding = metadata_.integers(from).value_or(std::vector<std::int64_t>{});
    for (const auto is_sliding : sliding)
      types.push_back(is_sliding ? "sliding_attention" : "full_attention");
    if (const auto period = period_of(types)) json_["sliding_window_pattern"] = *period;
    json_["layer_types"] = std::move(types);
  }

  void read_rope() {
    const auto rotated = metadata_.integer(key("rope.dimension_count"));
    const auto dim = head_dim();
    json_["partial_rotary_factor"] = 1.0;  // what a file without the key means, whatever the family's own default
    if (rotated && dim > 0 && (*rotated <= 0 || *rotated % 2 != 0 || *rotated > dim))
      fail(ErrorCode::corrupt_file, "config", "{}: {} is {}; an even number of the {} values of a head is turned",
           metadata_.origin(), key("rope.dimension_count"), *rotated, dim);
    if (rotated && dim > 0 && *rotated < dim)
      json_["partial_rotary_factor"] = static_cast<double>(*rotated) / static_cast<double>(dim);
    // A factor without a type is linear; rope.scale_linear is its older spelling.
    const auto type = metadata_.string(key("rope.scaling.type")).value_or("linear");
    auto factor = metadata_.number(key("rope.scaling.factor"));
    if (!factor) factor = metadata_.number(key("rope.scale_linear"));
    if (type == "none" || !factor || *factor == 0) return;
    if (type != "linear" && type != "yarn")
      fail(ErrorCode::unsupported, "config", "{}: {} is {}", metadata_.origin(), key("rope.scaling.type"),
           type);
    Json scaling = {{"type", type}, {"factor", *factor}};
    if (const auto original = metadata_.integer(key("rope.scaling.original_context_length")))
      scaling["original_max_position_embeddings"] = *original;
    if (const auto fast = metadata_.number(key("rope.scaling.yarn_beta_fast"))) scaling["beta_fast"] = *fast;
    if (const auto slow = metadata_.number(key("rope.scaling.yarn_beta_slow"))) scaling["beta_slow"] = *slow;
    json_["rope_scaling"] = std::move(scaling);
  }

  std::int64_t head_dim() const {
    if (json_.contains("head_dim")) return json_["head_dim"].get<std::int64_t>();
    const auto heads = json_["num_attention_heads"].get<std::int64_t>();
    return heads > 0 ? json_["hidden_size"].get<std::int64_t>() / heads : 0;
  }

  // The embedding's rows are what the graph needs; the token list may be shorter.
  void read_tokens() {
    const auto embedding =
        std::find_if(file_.tensors.begin(), file_.tensors.end(),
                     [](const TensorEntry& entry) { return entry.name == "token_embd.weight"; });
    const StringList* const tokens = metadata_.strings("tokenizer.ggml.tokens");
    if (embedding != file_.tensors.end() && embedding->shape.size() == 2)
      json_["vocab_size"] = embedding->shape[0];
    else if (tokens && !json_.contains("vocab_size"))
      json_["vocab_size"] = tokens->size();
    Json ends = Json::array();
    for (const char* const name : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
      const auto id = metadata_.integer(std::string("tokenizer.ggml.") + name);
      if (id && *id >= 0 && *id != 0xffffffff) ends.push_back(*id);
    }
    json_["eos_token_id"] = std::move(ends);
    const auto bos = metadata_.integer("tokenizer.ggml.bos_token_id");
    if (bos && *bos >= 0 && *bos != 0xffffffff) json_["bos_token_id"] = *bos;
  }

  const GgufFile& file_;
  const GgufMetadata& metadata_;
  const GgufDialect& gguf_;
  std::string prefix_;
  Json json_ = Json::object();
};

}  // namespace

Dialects::Gguf gguf_dialect(const GgufMetadata& metadata, const Dialects& dialects) {
  const auto name = metadata.string("general.architecture");
  if (!name)
    fail(ErrorCode::corrupt_file, "gguf", "{}: the key general.architecture is missing", metadata.origin());
  return dialects.of_architecture(*name, metadata.origin());
}

Config gguf_config(const GgufFile& file, const Dialects& dialects) {
  const Json json = Builder(file, gguf_dialect(file.metadata, dialects)).build();
  Config config = parse_config(json, std::nullopt, file.metadata.origin(), dialects);
  config.from_gguf = true;
  return config;
}

}  // namespace godwit::checkpoint
