// godwit bench --load: what opening a model costs in memory and time.
#pragma once

#include "base/json.h"
#include "base/log.h"
#include "models/model_options.h"

namespace godwit::cli {

// Opens the model once, in the calling thread of a process that has opened none before: peaks are of the process and do
// not come down again. weights_bytes counts the files that tensors were read from; ratio is what the peak grew by,
// divided by them. ratio is null where the system does not tell the memory of a process.
Json bench_load(const models::ModelOptions& model, const Log& log);

}  // namespace godwit::cli
