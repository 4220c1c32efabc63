// config.json as Python writes it.
#include "base/python_json.h"
#include "checkpoint/config.h"

namespace godwit::checkpoint {

Config read_config(const std::filesystem::path& folder, const Dialects& dialects) {
  const auto path = folder / "config.json";
  const auto generation_path = folder / "generation_config.json";
  const Json config = read_python_json_file(path);
  std::optional<Json> generation;
  if (std::filesystem::exists(generation_path)) generation = read_python_json_file(generation_path);
  return parse_config(config, generation, path.string(), dialects);
}

std::optional<std::string> read_model_type(const std::filesystem::path& folder) {
  const Json config = read_python_json_file(folder / "config.json");
  if (!config.is_object() || !config.contains("model_type") || !config["model_type"].is_string())
    return std::nullopt;
  return config["model_type"].get<std::string>();
}

}  // namespace godwit::checkpoint
