// How the files of one model family spell what the readers look for: the part of a family that lies below the
// graphs. Plain data, given by the family's own file; nothing here knows a family by name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace godwit::checkpoint {

struct GgufFile;

// {spelling in the file, spelling of the graph}
using Spelling = std::pair<std::string_view, std::string_view>;

struct GgufDialect {
  std::string_view architecture;   // general.architecture
  bool norms_include_one = false;  // norms of x * (1 + w) families are stored as 1 + w
  bool rows_are_permuted = false;  // q and k rows are stored for pairwise rotation
  // Stems of tensor names, tried before the common ones: {"ffn_norm", "pre_feedforward_layernorm"}.
  std::span<const Spelling> names = {};
  // Integer keys (behind "{architecture}.") that may differ between layers: the config gets the largest value.
  std::span<const std::string_view> keys_per_layer = {};
  // Adds to the config what only this architecture's metadata or tensors say.
  void (*complete)(const GgufFile& file, Json& config) = nullptr;
};

// What the oracle makes of rope_parameters, the newer spelling of rope_theta and rope_scaling.
enum class RopeParameters {
  unread,  // we follow the file, and promise no bits (Config::departure)
  second,  // they stand in for those two where the config lacks them
  first,   // they win
};

struct Dialect {
  std::string_view model_type;                     // what Config::model_type becomes
  std::span<const std::string_view> aliases = {};  // other model_types that read the same way
  std::string_view defaults = "{}";                // the oracle's defaults where the parser has others: a JSON object
  std::span<const Spelling> keys = {};             // config keys under other names: {"n_embd", "hidden_size"}
  RopeParameters rope_parameters = RopeParameters::unread;
  std::span<const GgufDialect> gguf = {};
  bool shares_gguf = false;  // its GGUF files bear an architecture of another dialect, which says so in `complete`
  bool reads_windows = true;  // false: the oracle reads every layer in full, whatever layer_types says
  // What an explicit null means where it is not the default: a JSON object. Other nulls count as absent.
  std::string_view nulls = "{}";
  // {key, value}: the model is another with it, and neither the oracle nor the graph reads it. A warning each.
  std::span<const Spelling> unread = {};
};

// The dialects of a build. A value: whoever opens files hands it down.
class Dialects {
 public:
  Dialects() = default;
  // Equal pointers count once. Two that claim one model_type or architecture are Error{internal} naming it.
  explicit Dialects(std::vector<const Dialect*> dialects);

  // By model_type or alias; null where nobody reads it.
  const Dialect* of_type(std::string_view model_type) const;

  struct Gguf {
    const Dialect* dialect;
    const GgufDialect* gguf;
  };
  // Throws Error{unsupported} naming `origin`, the architecture and all that can be read.
  Gguf of_architecture(std::string_view architecture, std::string_view origin) const;

 private:
  std::vector<const Dialect*> dialects_;
};

}  // namespace godwit::checkpoint
