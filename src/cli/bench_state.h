// godwit bench --state: what the state store costs on a real model.
#pragma once

#include "base/json.h"
#include "base/log.h"
#include "models/model_options.h"

namespace godwit::cli {

struct StateBenchOptions {
  int row = 4096;       // tokens of the row that is forked, cut and listed
  int prefix = 2048;    // tokens restored from disk, against their prefill
  int near = 100, far = 8000;  // lengths between which a decode step's allocations are compared
  int repeats = 5;
};

// Runs in the calling thread. `native` only: Error{unsupported} else. Rows are filled with the model's own forward, so
// a large model takes its time. Medians over `repeats`; times in microseconds or seconds as the names say.
Json bench_state(const models::ModelOptions& model, const StateBenchOptions& options, const Log& log);

}  // namespace godwit::cli
