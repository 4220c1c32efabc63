// Runs an opened model in `native` mode: forwards over rows, as the generation loop makes them.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/select.h"
#include "models/model_bundle.h"

namespace godwit::oracle {

struct NativeSetting {
  int threads = 2;
  kernels::Level level = kernels::best_level();
  std::optional<kernels::BlockFormat> quantize_on_load = {};
  std::optional<kernels::ActivationForm> activations = {};
  models::PlanUse plan = models::PlanUse::required;
};

// Throws when native mode cannot serve the file.
std::unique_ptr<models::ModelBundle> open_native(const std::filesystem::path& model,
                                                 NativeSetting setting = {});

// One step over the next tokens of several rows, packed: logits of all tokens, f32 row-major.
std::vector<float> native_step(const models::ModelBundle& model, std::span<const cache::RowSpan> spans,
                               std::span<const int> tokens, bool publish = true);
std::vector<float> native_forward(const models::ModelBundle& model, cache::Row& row,
                                  std::span<const int> tokens);
// A fresh row fed in spans of these sizes.
std::vector<float> native_plan(const models::ModelBundle& model, std::span<const int> tokens,
                               std::span<const int> spans);

// The last `tokens` rows of logits.
std::vector<float> last_rows(const models::ModelBundle& model, const std::vector<float>& logits,
                             std::size_t tokens);

}  // namespace godwit::oracle
