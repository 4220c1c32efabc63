// godwit bench --context: what a long context adds to a decode step, beside what reading its keys and values must cost.
#pragma once

#include "base/json.h"
#include "base/log.h"
#include "models/model_options.h"

namespace godwit::cli {

struct ContextBenchOptions {
  int context = 8192;  // tokens of the long row
  int prompt = 128;    // of the short one
  int generate = 32;   // steps of a round, on each
  int repeats = 5;     // rounds; each reads memory plainly, too
};

// Runs in the calling thread. `native` only: Error{unsupported} else. Medians over the rounds.
Json bench_context(const models::ModelOptions& model, const ContextBenchOptions& options, const Log& log);

}  // namespace godwit::cli
