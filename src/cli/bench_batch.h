// godwit bench --rows: what rows that share each step gain over one row alone.
#pragma once

#include "base/json.h"
#include "base/log.h"
#include "models/model_options.h"

namespace godwit::cli {

struct BatchBenchOptions {
  int rows = 8;
  int prompt = 16;    // tokens of each row before its first step
  int generate = 64;  // steps
  int repeats = 3;    // rounds, one row and `rows` rows in turn
};

// Runs in the calling thread. `native` only: Error{unsupported} else. Tokens per second of all rows together, as medians
// over the rounds.
Json bench_batch(const models::ModelOptions& model, const BatchBenchOptions& options, const Log& log);

}  // namespace godwit::cli
