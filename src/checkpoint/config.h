// The typed model configuration: config.json (+ generation_config.json) of a folder, or the metadata of a
// GGUF file.
//
// One struct serves every decoder family; a key that only one family has stays in `raw` and is read with the
// typed getters. Sizes are checked here once (positive, divisible, bounded), so graphs need no checks of
// their own. Errors are Error{corrupt_file} naming the file and the key. Unknown keys are ignored.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "checkpoint/dialect.h"
#include "checkpoint/quantization.h"

namespace godwit::checkpoint {

// Keys of rope_scaling / rope_parameters. Defaults are those of the formulas, not of any one model.
struct RopeScaling {
  std::string type =
      "default";  // default, linear, dynamic, llama3, yarn, longrope, su, proportional, mrope, ...
  double factor = 1.0;
  std::optional<int> original_max_position;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  double mscale = 1.0;
  double mscale_all_dim = 0.0;
  std::optional<double> attention_factor;
  std::vector<double> short_factor;
  std::vector<double> long_factor;
  std::vector<int> mrope_section;
};

class Config {
 public:
  std::string model_type;         // of its dialect: mistral reads as llama, ...
  std::string source_model_type;  // as the file spells it
  std::string origin;             // the file, for messages
  int hidden = 0;
  int layers = 0;
  int intermediate = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int vocabulary = 0;
  double norm_eps = 0;

  double rope_theta = 10000.0;
  std::optional<double> rope_local_theta;  // sliding layers of Gemma 3
  std::optional<RopeScaling> rope_scaling;
  bool rope_traditional = false;
  double partial_rotary_factor = 1.0;

  bool attention_bias = false;
  bool mlp_bias = false;
  std::optional<bool> tie_word_embeddings;  // absent: the family's default

  std::vector<std::string> layer_types;  // empty, or one per layer: full_attention, sliding_attention, ...
  std::optional<int> sliding_window;
  std::optional<int> sliding_window_pattern;  // every n-th layer is full
  std::optional<double> query_pre_attn_scalar;
  std::optional<double> attn_logit_softcapping;
  std::optional<double> final_logit_softcapping;
  std::string hidden_act;
  std::optional<int> max_position_embeddings;

  std::optional<int> bos_id;
  std::set<int> end_ids;  // generation_config.json and config.json together; the tokenizer adds its own
  std::string dtype;      // torch_dtype / dtype: "bfloat16", ...; empty when the file does not say

  // Where the file is followed although the oracle reads it otherwise: why its bits are not promised. Blank: nowhere.
  std::string departure;

  QuantizationMap quantization;

  bool from_gguf = false;
  std::vector<std::string> warnings;  // keys that the file sets and mlx-lm would ignore; the opener logs them
  Json raw;                           // the decoder's object: text_config when nested

  // Getters over `raw` for keys of one family. A null counts as absent. A wrong type throws, naming file and
  // key; the forms without a default throw when the key is missing, too.
  bool has(std::string_view key) const;
  std::int64_t integer(std::string_view key) const;
  std::int64_t integer(std::string_view key, std::int64_t absent) const;
  double number(std::string_view key) const;
  double number(std::string_view key, double absent) const;
  bool boolean(std::string_view key) const;
  bool boolean(std::string_view key, bool absent) const;
  std::string string(std::string_view key) const;
  std::string string(std::string_view key, std::string absent) const;
  std::vector<double> numbers(std::string_view key) const;
  std::vector<int> integers(std::string_view key) const;
};

// `config` is the parsed config.json; `generation` that of generation_config.json when there is one. A type
// that no dialect reads is parsed with the parser's own defaults: refusing it is the registry's business.
Config parse_config(const Json& config, const std::optional<Json>& generation, std::string_view origin,
                    const Dialects& dialects = {});

// What config.json of a folder says about model_type, if it says a string; nothing else in it is looked at.
std::optional<std::string> read_model_type(const std::filesystem::path& folder);

// config.json and generation_config.json of a folder. No other file is opened.
Config read_config(const std::filesystem::path& folder, const Dialects& dialects = {});

}  // namespace godwit::checkpoint
