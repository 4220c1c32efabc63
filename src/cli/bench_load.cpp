#include "cli/bench_load.h"

#include <chrono>
#include <cstdint>
#include <filesystem>

#include "cli/bench_support.h"
#include "cli/model_flags.h"
#include "models/model_bundle.h"

namespace godwit::cli {

Json bench_load(const models::ModelOptions& options, const Log& log) {
  const std::int64_t before = peak_bytes();
  const auto begin = std::chrono::steady_clock::now();
  const auto model = models::ModelBundle::open(options, log);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const std::int64_t peak = peak_bytes();
  std::int64_t weights = 0;
  for (const auto& [path, state] : model->weight_files)
    weights += static_cast<std::int64_t>(std::filesystem::file_size(path));
  return {{"model", options.id},
          {"math", name_of(model->mode)},
          {"activations", activations_of(*model)},
          {"text", options.with_text},
          {"weights_bytes", weights},
          {"process_bytes", before},
          {"peak_bytes", peak},
          {"ratio", peak > 0 && weights > 0 ? Json(double(peak - before) / double(weights)) : Json(nullptr)},
          {"open_s", took.count()}};
}

}  // namespace godwit::cli
