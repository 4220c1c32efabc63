// A text encoder behind the seams of serve: one thread owns it and reads one text at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "models/model_options.h"
#include "serve/model_directory.h"

namespace godwit::serve {

// Opens it on a thread of its own and returns when it is ready; throws what opening threw. It has an embedder, and a
// generator that refuses everything. Destroying the last pointer ends the thread and gives the memory back.
std::shared_ptr<const LoadedModel> open_encoder_model(const models::ModelOptions& options,
                                                      std::vector<std::string> aliases, std::int64_t created,
                                                      bool takes_token_ids, const Log& log);

}  // namespace godwit::serve
