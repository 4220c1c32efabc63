#include "models/pooling.h"

#include <array>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/mx_ops.h"

namespace godwit::models {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOrigin = "pooling";

// The last part of "sentence_transformers.models.Pooling".
std::string kind_of(const Json& module, const fs::path& file) {
  if (!module.is_object() || !module.contains("type") || !module["type"].is_string())
    fail(ErrorCode::corrupt_file, kOrigin, "{}: a module without a type", file.string());
  const std::string type = module["type"].get<std::string>();
  return type.substr(type.rfind('.') + 1);
}

bool is_on(const Json& config, const char* key) {
  return config.contains(key) && config[key].is_boolean() && config[key].get<bool>();
}

Pooling pooling_of(const fs::path& file) {
  const Json config = read_json_file(file);
  constexpr std::array<std::pair<const char*, Pooling>, 4> kWays = {{{"pooling_mode_mean_tokens", Pooling::mean},
                                                                     {"pooling_mode_cls_token", Pooling::first},
                                                                     {"pooling_mode_lasttoken", Pooling::last},
                                                                     {"pooling_mode_max_tokens", Pooling::max}}};
  std::optional<Pooling> found;
  int ways = 0;
  for (const auto& [key, value] : config.items())
    if (key.starts_with("pooling_mode_") && is_on(config, key.c_str())) ++ways;
  for (const auto& [key, pooling] : kWays)
    if (is_on(config, key)) found = pooling;
  if (!found || ways != 1)
    fail(ErrorCode::unsupported, kOrigin, "{}: exactly one of mean, cls, last-token and max pooling is served, {} are on",
         file.string(), ways);
  return *found;
}

fs::path module_folder(const fs::path& folder, const Json& module, const fs::path& file) {
  const std::string name = module.value("path", std::string());
  if (name.empty() || fs::path(name).filename() != fs::path(name) || name == "..")
    fail(ErrorCode::corrupt_file, kOrigin, "{}: '{}' is no folder beside it", file.string(), name);
  return folder / name;
}

void read_modules(const fs::path& folder, const fs::path& file, PoolingOptions& options) {
  const Json modules = read_json_file(file);
  if (!modules.is_array()) fail(ErrorCode::corrupt_file, kOrigin, "{}: is not a list", file.string());
  options.normalize = false;
  for (const Json& module : modules) {
    const std::string kind = kind_of(module, file);
    if (kind == "Pooling")
      options.pooling = pooling_of(module_folder(folder, module, file) / "config.json");
    else if (kind == "Normalize")
      options.normalize = true;
    else if (kind != "Transformer")
      fail(ErrorCode::unsupported, kOrigin, "{}: the module '{}' is not served; Transformer, Pooling and Normalize are",
           file.string(), kind);
  }
}

int max_tokens_of(const fs::path& file) {
  if (!fs::exists(file)) return 0;
  const Json config = read_json_file(file);
  if (!config.is_object() || !config.contains("max_seq_length") || config["max_seq_length"].is_null()) return 0;
  const Json& value = config["max_seq_length"];
  if (!value.is_number_integer() || value.get<std::int64_t>() < 3 || value.get<std::int64_t>() > (1 << 30))
    fail(ErrorCode::corrupt_file, kOrigin, "{}: max_seq_length is {}, wanted a length from 3 on", file.string(),
         dump_json(value));
  return value.get<int>();
}

}  // namespace

bool has_pooling(const fs::path& folder) { return fs::is_regular_file(folder / "modules.json"); }

PoolingOptions read_pooling(const fs::path& folder) {
  PoolingOptions options;
  const fs::path modules = folder / "modules.json";
  if (fs::exists(modules)) read_modules(folder, modules, options);
  options.max_tokens = max_tokens_of(folder / "sentence_bert_config.json");
  return options;
}

PoolingOptions gguf_pooling(const checkpoint::Config& config) {
  const std::string name = config.string("pooling", "mean");
  if (name != "mean" && name != "cls")
    fail(ErrorCode::unsupported, kOrigin, "{}: pooling is '{}'; mean and cls are served", config.origin,
         name);
  return {.pooling = name == "cls" ? Pooling::first : Pooling::mean};
}

mx::array pooled(const mx::array& hidden, const PoolingOptions& options) {
  const mx::array wide = mx::astype(hidden, mx::float32);
  const int chosen = options.pooling == Pooling::last ? wide.shape(0) - 1 : 0;
  mx::array vector = options.pooling == Pooling::mean  ? mx::mean(wide, 0)
                     : options.pooling == Pooling::max ? mx::max(wide, 0)
                                                       : mx::take(wide, mx::array(chosen), 0);
  if (!options.normalize) return vector;
  const mx::array length = mx::sqrt(mx::sum(mx::square(vector)));
  return vector / mx::maximum(length, mx::array(1e-12f));
}

}  // namespace godwit::models
