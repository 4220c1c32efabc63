// godwit bench --step: where the time of a decode step goes, beside what memory could deliver.
#pragma once

#include "base/json.h"
#include "base/log.h"
#include "models/model_options.h"

namespace godwit::cli {

struct StepBenchOptions {
  int prompt = 16;    // tokens of the row before its first step
  int generate = 64;  // steps of a round
  int repeats = 3;    // rounds; each reads memory plainly, too
};

// Runs in the calling thread. `native` only: Error{unsupported} else. Medians over the rounds.
Json bench_step(const models::ModelOptions& model, const StepBenchOptions& options, const Log& log);

}  // namespace godwit::cli
