#include "checkpoint/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
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

// The keys of a dialect under the names of the graph, beside those that have them already.
void add_common_spellings(Json& object, const Dialect* dialect) {
  if (!dialect) return;
  for (const auto& [own, common] : dialect->keys)
    if (object.contains(own) && !object.contains(common)) object[common] = object[own];
}

Json defaults_of(const Dialect* dialect) { return dialect ? Json::parse(dialect->defaults) : Json::object(); }

// A null that says something of its own becomes what it says.
void spell_out_nulls(Json& object, const Dialect* dialect) {
  constexpr const char* kTied = "tie_word_embeddings";  // Python takes None for false
  if (object.contains(kTied) && object[kTied].is_null()) object[kTied] = false;
  if (!dialect) return;
  const Json nulls = Json::parse(dialect->nulls);
  for (const auto& [key, meaning] : nulls.items())
    if (object.contains(key) && object[key].is_null()) object[key] = meaning;
}

Json flat_object(const Json& config, const Dialect* dialect) {
  Json given = config;
  add_common_spellings(given, dialect);
  spell_out_nulls(given, dialect);
  Json object = defaults_of(dialect);
  overlay(object, given);
  return object;
}

// The decoder's own object, with the defaults of its family beneath and the keys that only the outer object
// has.
Json decoder_object(const Json& config, const Dialect* dialect, const ConfigKeys& outer) {
  const Json* const text = outer.find("text_config");
  if (!text) return flat_object(config, dialect);
  if (!text->is_object()) outer.bad("text_config", *text, "an object");
  Json object = flat_object(*text, dialect);
  if (outer.find("vocab_size")) object["vocab_size"] = config["vocab_size"];
  for (const char* const key : {"tie_word_embeddings", "dtype", "torch_dtype", "bos_token_id"})
    if (outer.find(key) && (!text->contains(key) || (*text)[key].is_null())) object[key] = config[key];
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

void read_attention(const ConfigKeys& keys, Config& config) {
  config.attention_bias = keys.boolean("attention_bias").value_or(false);
  config.mlp_bias = keys.boolean("mlp_bias").value_or(false);
  config.tie_word_embeddings = keys.boolean("tie_word_embeddings");
  config.layer_types = read_layer_types(keys, config.layers);
  config.sliding_window = keys.size("sliding_window", kMaxPositions);
  const Json* const pattern = keys.find("sliding_window_pattern");
  if (pattern && pattern->is_number())
    config.sliding_window_pattern = keys.size("sliding_window_pattern", kMaxLayers);
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

// A sliding layer that the oracle reads in full is a warning.
void leave_out_windows(const Dialect& dialect, Config& config) {
  if (std::ranges::find(config.layer_types, "sliding_attention") != config.layer_types.end())
    config.warnings.push_back(fmt::format("{}: layer_types has sliding layers: mlx-lm reads each in full for {}, and so "
                                          "does this graph",
                                          config.origin, dialect.model_type));
  config.layer_types.clear();
  config.sliding_window.reset();
}

void warn_of_unread(const Dialect& dialect, Config& config) {
  for (const auto& [key, value] : dialect.unread)
    if (config.raw.contains(key) && config.raw[key] == value)
      config.warnings.push_back(fmt::format("{}: {} is '{}': mlx-lm does not read it for {}, nor does this graph",
                                            config.origin, key, value, config.source_model_type));
}

QuantizationMap read_quantization(const ConfigKeys& outer, const ConfigKeys& inner,
                                  const std::string& origin) {
  for (const ConfigKeys* const keys : {&outer, &inner})
    for (const char* const key : {"quantization", "quantization_config"})
      if (const Json* const map = keys->find(key)) return QuantizationMap(*map, origin);
  return {};
}

}  // namespace

Config parse_config(const Json& config, const std::optional<Json>& generation, std::string_view origin,
                    const Dialects& dialects) {
  if (!config.is_object()) fail(ErrorCode::corrupt_file, "config", "{}: is not an object", origin);
  Json whole = config;
  untag_floats(whole);
  Config result;
  result.origin = origin;
  const ConfigKeys outer(whole, result.origin);
  const auto type = outer.string("model_type");
  if (!type) outer.missing("model_type");
  result.source_model_type = *type;
  const Dialect* const dialect = dialects.of_type(*type);
  result.model_type = dialect ? std::string(dialect->model_type) : *type;
  result.raw = decoder_object(whole, dialect, outer);

  const ConfigKeys keys(result.raw, result.origin);
  read_sizes(keys, result);
  const Json* const text = outer.find("text_config");
  read_rope(keys, text ? *text : whole, dialect ? dialect->rope_parameters : RopeParameters::unread, result);
  read_attention(keys, result);
  result.dtype = keys.string("dtype").value_or(keys.string("torch_dtype").value_or(""));
  if (const auto bos = keys.integer("bos_token_id"); bos && *bos >= 0 && *bos <= kMaxVocabulary)
    result.bos_id = static_cast<int>(*bos);
  add_ids(whole, result.origin, "eos_token_id", result.end_ids);
  add_ids(result.raw, result.origin, "eos_token_id", result.end_ids);
  if (generation)
    add_ids(*generation, result.origin + " (generation_config.json)", "eos_token_id", result.end_ids);
  result.quantization = read_quantization(outer, keys, result.origin);
  if (dialect) warn_of_unread(*dialect, result);
  if (dialect && !dialect->reads_windows) leave_out_windows(*dialect, result);
  return result;
}

}  // namespace godwit::checkpoint
