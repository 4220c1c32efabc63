// BERT and what shares its graph (MiniLM, BGE, E5, GTE of the first kind): learned positions, post norms with bias,
// exact GELU. Truth: Devlin et al. 2018 and transformers' BertModel; the pooler is not part of sentence embeddings.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/gguf.h"
#include "models/encoder.h"
#include "models/families.h"
#include "models/renaming.h"
#include "nn/embedding.h"
#include "nn/mlp.h"
#include "nn/norm.h"
#include "nn/self_attention.h"

namespace godwit::models {
namespace {

using checkpoint::Config;
using checkpoint::WeightScope;

// The order is that of llama.cpp's numbers. Its converter writes mean and cls only.
constexpr std::array<std::string_view, 5> kPoolingTypes = {"none", "mean", "cls", "last", "rank"};

template <typename... Args>
[[noreturn]] void refuse(const checkpoint::GgufFile& file, fmt::format_string<Args...> format,
                         Args&&... args) {
  fail(ErrorCode::unsupported, "bert", "{}: {}", file.metadata.origin(),
       fmt::format(format, std::forward<Args>(args)...));
}

std::string_view pooling_of(const checkpoint::GgufFile& file, std::int64_t type) {
  const auto known = static_cast<std::int64_t>(kPoolingTypes.size());
  const std::string_view name = type >= 0 && type < known ? kPoolingTypes[type] : "unknown";
  if (name != "mean" && name != "cls")
    refuse(file, "bert.pooling_type is {} ({}); mean (1) and cls (2) are served", type, name);
  return name;
}

// Architecture "bert" holds RoBERTa and its kin, too: those tell themselves by their vocabulary.
void complete(const checkpoint::GgufFile& file, Json& config) {
  const checkpoint::GgufMetadata& metadata = file.metadata;
  if (const auto model = metadata.string("tokenizer.ggml.model"); model && *model != "bert")
    refuse(file, "tokenizer.ggml.model is '{}'; of architecture bert only WordPiece ('bert') is served",
           *model);
  if (metadata.boolean("bert.attention.causal").value_or(false))
    refuse(file, "bert.attention.causal is true, the graph reads every text in full");
  if (const auto type = metadata.integer("bert.pooling_type")) config["pooling"] = pooling_of(file, *type);
  const auto types = std::ranges::find(file.tensors, "token_types.weight", &checkpoint::TensorEntry::name);
  if (types != file.tensors.end() && types->shape.size() == 2) config["type_vocab_size"] = types->shape[0];
}

constexpr std::array<checkpoint::Spelling, 6> kGgufNames = {
    {{"token_embd", "embeddings.word_embeddings"},
     {"position_embd", "embeddings.position_embeddings"},
     {"token_types", "embeddings.token_type_embeddings"},
     {"token_embd_norm", "embeddings.norm"},
     {"attn_output_norm", "attention_norm"},
     {"layer_output_norm", "mlp_norm"}}};
constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "bert", .names = kGgufNames, .complete = complete}}};

constexpr checkpoint::Dialect kDialect = {
    .model_type = "bert",
    .defaults =
        R"({"vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
                    "intermediate_size": 3072, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
                    "max_position_embeddings": 512, "type_vocab_size": 2})",
    .gguf = kGguf};

nn::Norm layer_norm(const WeightScope& scope, const Config& config) {
  return nn::Norm(scope, {.dims = config.hidden, .eps = config.norm_eps, .kind = nn::NormKind::layer, .bias = true});
}

class Layer {
 public:
  Layer(const WeightScope& scope, const Config& config)
      : attention_(scope / "self_attn", {.hidden = config.hidden, .heads = config.heads}),
        attention_norm_(layer_norm(scope / "attention_norm", config)),
        mlp_(scope / "mlp", {.hidden = config.hidden,
                             .intermediate = config.intermediate,
                             .form = nn::MlpForm::plain,
                             .activation = nn::Activation::gelu,
                             .bias = true}),
        mlp_norm_(layer_norm(scope / "mlp_norm", config)) {}

  mx::array operator()(const mx::array& x) const {
    const mx::array h = attention_norm_(attention_(x) + x);
    return mlp_norm_(mlp_(h) + h);
  }

 private:
  nn::SelfAttention attention_;
  nn::Norm attention_norm_;
  nn::Mlp mlp_;
  nn::Norm mlp_norm_;
};

class Bert final : public Encoder {
 public:
  Bert(const WeightScope& root, const Config& config)
      : words_(root / "embeddings.word_embeddings", config.vocabulary, config.hidden),
        positions_(root / "embeddings.position_embeddings", *config.max_position_embeddings, config.hidden),
        types_(root / "embeddings.token_type_embeddings", static_cast<int>(config.integer("type_vocab_size")),
               config.hidden),
        norm_(layer_norm(root / "embeddings.norm", config)),
        max_tokens_(*config.max_position_embeddings) {
    for (int i = 0; i < config.layers; ++i) layers_.emplace_back(root / "encoder.layer" / i, config);
  }

  int max_tokens() const override { return max_tokens_; }

  // One text is one segment, so every token has type 0.
  mx::array hidden(const mx::array& tokens) const override {
    const mx::array positions = mx::arange(0, tokens.shape(0), mx::int32);
    mx::array h = norm_(words_(tokens) + types_(mx::zeros_like(tokens)) + positions_(positions));
    for (const Layer& layer : layers_) h = layer(h);
    return h;
  }

 private:
  nn::Embedding words_, positions_, types_;
  nn::Norm norm_;
  std::vector<Layer> layers_;
  int max_tokens_;
};

std::vector<checkpoint::Spelling> names() {
  return {{"bert", ""},
          {"model.layers", "encoder.layer"},  // blocks of GGUF files
          {"attention.self.query", "self_attn.q_proj"},
          {"attention.self.key", "self_attn.k_proj"},
          {"attention.self.value", "self_attn.v_proj"},
          {"attention.output.dense", "self_attn.o_proj"},
          {"attention.output.LayerNorm", "attention_norm"},
          {"intermediate.dense", "mlp.up_proj"},
          {"output.dense", "mlp.down_proj"},
          {"output.LayerNorm", "mlp_norm"},
          {"LayerNorm", "norm"}};
}

checkpoint::WeightRules rules(const Config& config) {
  if (config.hidden_act != "gelu")
    fail(ErrorCode::unsupported, "bert", "{}: hidden_act is '{}', the graph has gelu", config.origin,
         config.hidden_act);
  const std::string positions = config.string("position_embedding_type", "absolute");
  if (positions != "absolute")
    fail(ErrorCode::unsupported, "bert", "{}: position_embedding_type is '{}', the graph has absolute ones",
         config.origin, positions);
  if (config.hidden % config.heads != 0)
    fail(ErrorCode::corrupt_file, "bert", "{}: hidden_size {} is not a multiple of {} heads", config.origin,
         config.hidden, config.heads);
  return {.drop = {"position_ids", "pooler.", "cls."}, .rename = renaming(names())};
}

std::unique_ptr<Encoder> make(const WeightScope& root, const Config& config) {
  return std::make_unique<Bert>(root, config);
}

}  // namespace

const Family bert = {.id = "bert",
                     .dialect = &kDialect,
                     .rules = rules,
                     .make_encoder = make,
                     .loop = Loop::encoder,
                     .oracle = Oracle::transformers,
                     .figures = "cosine of at least 0.9999 between embeddings"};

}  // namespace godwit::models
