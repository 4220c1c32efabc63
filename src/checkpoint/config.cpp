#include "checkpoint/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "checkpoint/config_defaults.h"
#include "checkpoint/config_keys.h"
#include "checkpoint/config_rope.h"

namespace godwit::checkpoint {
namespace {

// No real model comes near; products of two of them still fit 64 bits.
constexpr std::int64_t kMaxWidth = 1 << 24;
constexpr std::int64_t kMaxLayers = 100000;
constexpr std::int64_t kMaxHeads = 1 << 16;
constexpr std::int64_t kMaxVocabulary = 1 << 27;
constexpr std::int64_t kMaxPositions = 1 << 30;

// {"__float__": "Infinity"} is how some writers keep JSON valid.
void untag_floats(Json& value) {
  if (value.is_object() && value.size() == 1 && value.contains("__float__") &&
      value["__float__"].is_string()) {
    const std::string text = value["__float__"].get<std::string>();
    if (text == "Infinity")
      value = std::numeric_limits<double>::infinity();
    else if (text == "-Infinity")
      value = -std::numeric_limits<double>::infinity();
    else if (text == "NaN")
      value = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  if (!value.is_structured()) return;
  for (Json& item : value) untag_floats(item);
}

void overlay(Json& base, const Json& over) {
  for (const auto& [key, value] : over.items())
    if (!value.is_null() || !base.contains(key)) base[key] = value;
}

// The decoder's own object, with the defaults of its family beneath and the keys that only the outer object
// has.
Json decoder_object(const Json& config, const std::string& model_type, const ConfigKeys& outer) {
  const Json* const text = outer.find("text_config");
  if (!text) {
    Json object = config_defaults(model_type);
    overlay(object, config);
    return object;
  }
  if (!text->is_object()) outer.bad("text_config", *text, "an object");
  const std::string inner = ConfigKeys(*text, "text_config").string("model_type").value_or(model_type);
  Json object = config_defaults(inner);
  overlay(object, config_defaults(model_type));
  overlay(object, *text);
  if (outer.find("vocab_size")) object["vocab_size"] = config["vocab_size"];
  for (const char* const key : {"tie_word_embeddings", "dtype", "torch_dtype", "bos_token_id"})
    if (outer.find(key) && !object.contains(key)) object[key] = config[key];
  return object;
}

double read_norm_eps(const ConfigKeys& keys) {
  constexpr std::array kNames = {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon",
                                 "norm_eps"};
  for (const char* const name : kNames) {
    const auto value = keys.number(name);
    if (!value) continue;
    if (!(*value >= 0 && *value < 1)) keys.bad(name, Json(*value), "in [0, 1)");
    return *value;
  }
  keys.missing("rms_norm_eps");
}

void read_sizes(const ConfigKeys& keys, Config& config) {
  config.hidden = keys.need_size("hidden_size", kMaxWidth);
  config.layers = keys.need_size("num_hidden_layers", kMaxLayers);
  config.intermediate = keys.need_size("intermediate_size", kMaxWidth);
  config.heads = keys.need_size("num_attention_heads", kMaxHeads);
  config.kv_heads = keys.size("num_key_value_heads", kMaxHeads).value_or(config.heads);
  config.vocabulary = keys.need_size("vocab_size", kMaxVocabulary);
  if (config.heads % config.kv_heads != 0)
    keys.bad("num_key_value_heads", Json(config.kv_heads),
             fmt::format("a divisor of the {} heads", config.heads));
  if (const auto dim = keys.size("head_dim", kMaxWidth)) {
    config.head_dim = *dim;
  } else {
    if (config.hidden % config.heads != 0)
      keys.bad("num_attention_heads", Json(config.heads),
               fmt::format("a divisor of hidden_size {}", config.hidden));
    config.head_dim = config.hidden / config.heads;
  }
  config.norm_eps = read_norm_eps(keys);
}

std::vector<std::string> read_layer_types(const ConfigKeys& keys, int layers) {
  const Json* const list = keys.find("layer_types");
  if (!list) return {};
  if (!list->is_array()) keys.bad("layer_types", *list, "a list");
  // A list may be longer than a model that was cut; never shorter.
  if (static_cast<int>(list->size()) < layers)
    keys.bad("layer_types", Json(list->size()), fmt::format("at least {} entries", layers));
  std::vector<std::string> types;
  for (const Json& item : *list) {
    if (!item.is_string()) keys.bad("layer_types", item, "a string in each place");
    if (static_cast<int>(types.size()) < layers) types.push_back(item.get<std::string>());
  }
  return types;
}

// The period of "every n-th layer is full", when the list has one.
std::optional<int> period_of(const std::vector<std::string>& types) {
  const auto first = std::find(types.begin(), types.end(), "full_attention");
  if (first == types.end()) return std::nullopt;
  const std::size_t period = static_cast<std::size_t>(first - types.begin()) + 1;
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types[i] != ((i + 1) % period == 0 ? "full_attention" : "sliding_attention")) return std::nullopt;
  return static_cast<int>(period);
}

void read_attention(const ConfigKeys& keys, const Json& given, Config& config) {
  config.attention_bias = keys.boolean("attention_bias").value_or(false);
  config.mlp_bias = keys.boolean("mlp_bias").value_or(false);
  config.tie_word_embeddings = keys.boolean("tie_word_embeddings");
  config.layer_types = read_layer_types(keys, config.layers);
  config.sliding_window = keys.size("sliding_window", kMaxPositions);
  const Json* const pattern = keys.find("sliding_window_pattern");
  if (pattern && pattern->is_number())
    config.sliding_window_pattern = keys.size("sliding_window_pattern", kMaxLayers);
  // A newer file says the same by layer_types; a default of the family must not win over it.
  if (!given.contains("sliding_window_pattern"))
    if (const auto period = period_of(config.layer_types)) config.sliding_window_pattern = period;
  config.query_pre_attn_scalar = keys.number("query_pre_attn_scalar");
  config.attn_logit_softcapping = keys.number("attn_logit_softcapping");
  config.final_logit_softcapping = keys.number("final_logit_softcapping");
  if (config.query_pre_attn_scalar && !(*config.query_pre_attn_scalar > 0))
    keys.bad("query_pre_attn_scalar", Json(*config.query_pre_attn_scalar), "above 0");
  config.hidden_act = keys.string("hidden_activation").value_or(keys.string("hidden_act").value_or(""));
  config.max_position_embeddings = keys.size("max_position_embeddings", kMaxPositions);
}

void add_ids(const Json& object, std::string_view origin, std::string_view key, std::set<int>& ids) {
  const ConfigKeys keys(object, origin);
  const Json* const value = keys.find(key);
  if (!value) return;
  const auto add = [&](const Json& id) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0 || id.get<std::int64_t>() > kMaxVocabulary)
      keys.bad(key, id, "a token id");
    ids.insert(id.get<int>());
  };
  if (!value->is_array()) return add(*value);
  for (const Json& id : *value) add(id);
}

QuantizationMap read_quantization(const ConfigKeys& outer, const ConfigKeys& inner,
                                  const std::string& origin) {
  for (const ConfigKeys* const keys : {&outer, &inner})
    for (const char* const key : {"quantization", "quantization_config"})
      if (const Json* const map = keys->find(key)) return QuantizationMap(*map, origin);
  return {};
}

}  // namespace

Config parse_config(const Json& config, const std::optional<Json>& generation, std::string_view origin) {
  if (!config.is_object()) fail(ErrorCode::corrupt_file, "config", "{}: is not an object", origin);
  Json whole = config;
  untag_floats(whole);
  Config result;
  result.origin = origin;
  const ConfigKeys outer(whole, result.origin);
  const auto type = outer.string("model_type");
  if (!type) outer.missing("model_type");
  result.source_model_type = *type;
  result.model_type = remapped_model_type(*type);
  result.raw = decoder_object(whole, result.model_type, outer);

  const ConfigKeys keys(result.raw, result.origin);
  read_sizes(keys, result);
  read_rope(keys, result);
  const Json* const text = outer.find("text_config");
  read_attention(keys, text ? *text : whole, result);
  result.dtype = keys.string("dtype").value_or(keys.string("torch_dtype").value_or(""));
  if (const auto bos = keys.integer("bos_token_id"); bos && *bos >= 0 && *bos <= kMaxVocabulary)
    result.bos_id = static_cast<int>(*bos);
  add_ids(whole, result.origin, "eos_token_id", result.end_ids);
  add_ids(result.raw, result.origin, "eos_token_id", result.end_ids);
  if (generation)
    add_ids(*generation, result.origin + " (generation_config.json)", "eos_token_id", result.end_ids);
  result.quantization = read_quantization(outer, keys, result.origin);
  return result;
}

}  // namespace godwit::checkpoint
