// One row of `godwit ls`: what a model says about itself, read without touching tensor data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "hub/local_models.h"
#include "models/catalogue.h"

namespace godwit::cli {

struct ModelSummary {
  hub::LocalModel model;
  std::string architecture;    // model_type, or general.architecture of a GGUF
  std::string quantization;    // "affine 4-bit group 64", "Q4_1" (the format of most bytes), "bfloat16"
  std::optional<int> context;  // positions the model was made for
  std::optional<models::ResolvedProfile> profile;  // how it would be opened; absent: refused
  std::string refused;                             // why no graph here can run it; empty: can be opened
};

// All that opening does before weights. Never throws for what is in the files: that is what `refused` is for.
ModelSummary summarise(const hub::LocalModel& model, const models::Catalogue& catalogue);

// null where a value is unknown.
Json json_of(const ModelSummary& summary);

}  // namespace godwit::cli
