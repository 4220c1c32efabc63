#include "decode/model_identity.h"

#include <mlx/version.h>

#include <fstream>

#include "base/json.h"
#include "base/sha256.h"
#include "base/file_hashes.h"
#include "kernels/quantize_blocks.h"

namespace godwit::decode {
namespace {

// The BLAS under MLX picks its kernels by the processor. Empty where the system does not say.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line;
  return "";
}

std::string_view activations_of(const models::ModelBundle& bundle) {
  return models::name_of(bundle.activations().value_or(kernels::ActivationForm::int8));
}

std::string arithmetic_of(const models::ModelBundle& bundle) {
  const std::string_view weights = kernels::quantized_name(bundle.options.quantize_on_load);
  if (bundle.mode == NumericMode::native)
    return fmt::format("{} {}{}{}", kArithmeticVersion, activations_of(bundle), weights.empty() ? "" : " weights ", weights);
  return fmt::format("{} MLX {} {}", kArithmeticVersion, mx::version(), processor());
}

}  // namespace

std::string model_identity(const models::ModelBundle& bundle, const std::filesystem::path& memo_folder,
                           const Log& log) {
  FileHashes hashes(memo_folder, log);
  Json whole = {{"arithmetic", arithmetic_of(bundle)},
                {"config", bundle.config.raw},
                {"gguf", bundle.config.from_gguf},
                {"profile", bundle.profile.profile ? bundle.profile.profile->id : ""},
                {"files", Json::array()}};
  // What lies outside the decoder's part of the config shapes the graph too.
  const std::filesystem::path config = bundle.options.path / "config.json";
  if (std::filesystem::is_regular_file(config)) whole["files"].push_back(sha256_of_file(config));
  for (const auto& [file, state] : bundle.weight_files) whole["files"].push_back(hashes.of(file, state));
  hashes.save();
  return sha256_of(dump_json(whole));
}

}  // namespace godwit::decode
