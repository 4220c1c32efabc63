// How llama's files are spelled, for the families that share it and part its configs among them.
#pragma once

#include "checkpoint/config.h"
#include "checkpoint/dialect.h"

namespace godwit::models {

extern const checkpoint::Dialect kLlamaDialect;

// MiniCPM5 1B by its exact shape: nothing else in its config names it.
bool is_minicpm5(const checkpoint::Config& config);

}  // namespace godwit::models
