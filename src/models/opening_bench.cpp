// How long opening takes before weights: a config of 60 layers to its profile, code, rules and needs.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/json.h"
#include "models/opening.h"

namespace godwit::models {
namespace {

// A llama of 60 layers with a quantization override for each of its matrices, as mixed-precision checkpoints
// have.
std::filesystem::path large_config() {
  Json config = {
      {"model_type", "llama"},      {"hidden_size", 8192},       {"num_hidden_layers", 60},
      {"intermediate_size", 28672}, {"num_attention_heads", 64}, {"num_key_value_heads", 8},
      {"vocab_size", 128256},       {"rms_norm_eps", 1e-5},      {"max_position_embeddings", 131072}};
  Json map = {{"bits", 4}, {"group_size", 64}};
  for (int layer = 0; layer < 60; ++layer)
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      map["model.layers." + std::to_string(layer) + ".self_attn." + name] = {{"bits", 8}, {"group_size", 64}};
  config["quantization"] = map;
  const auto folder =
      std::filesystem::temp_directory_path() / ("godwit_opening_bench_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << config.dump();
  return folder;
}

void BM_Prepare(benchmark::State& state) {
  const auto folder = large_config();
  for (auto _ : state) benchmark::DoNotOptimize(prepare(folder, Catalogue::builtin()).needs.size());
  std::filesystem::remove_all(folder);
}
BENCHMARK(BM_Prepare)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace godwit::models
