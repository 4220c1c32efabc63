// godwit bench --grammar: what structured output costs beside a model's steps, over its vocabulary.
#pragma once

#include "base/json.h"
#include "base/log.h"
#include "models/model_options.h"

namespace godwit::cli {

// Reads the tokenizer alone. Every mask is computed once, by a matcher that has just been started, as an
// answer does.
Json bench_grammar(const models::ModelOptions& model, const Log& log);

}  // namespace godwit::cli
