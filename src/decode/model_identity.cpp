#include "decode/model_identity.h"

#include <mlx/version.h>

#include <fstream>

#include "base/json.h"
#include "base/sha256.h"
#include "decode/file_hashes.h"

namespace godwit::decode {
namespace {

// The BLAS under MLX picks its kernels by the processor. Empty where the system does not say.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line;
  return "";
}

std::string arithmetic_of(const models::ModelBundle& bundle) {
  if (bundle.mode == NumericMode::native) return fmt::format("{} int8", kArithmeticVersion);
  return fmt::format("{} MLX {} {}", kArithmeticVersion, mx::version(), processor());
}

}  // namespace

std::string model_identity(const models::ModelBundle& bundle, const std::filesystem::path& memo_folder,
                           const Log& log) {
  FileHashes hashes(memo_folder, log);
  Json whole = {{"arithmetic", arithmetic_of(bundle)},
                {"config", bundle.config.raw},
                {"gguf", bundle.config.from_gguf},
                {"files", Json::array()}};
  // What lies outside the decoder's part of the config shapes the graph too.
  const std::filesystem::path config = bundle.options.path / "config.json";
  if (std::filesystem::is_regular_file(config)) whole["files"].push_back(sha256_of_file(config));
  for (const auto& [file, state] : bundle.weight_files) whole["files"].push_back(hashes.of(file, state));
  hashes.save();
  Sha256 hash;
  const std::string text = dump_json(whole);
  hash.update(std::as_bytes(std::span(text)));
  return hash.hex_digest();
}

}  // namespace godwit::decode
