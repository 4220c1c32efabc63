// What a grammar adds to the steps of the engine that makes an answer under it.
#pragma once

#include "base/json.h"
#include "base/log.h"
#include "models/model_options.h"

namespace godwit::cli {

struct GrammarStepsOptions {
  int generate;  // tokens of an answer
  int repeats;   // answers of each kind, in turn
};

// Answers of one row, free and as a JSON list that must not end: seconds from token to token, the first left out.
// Throws what opening the model throws, Error{unsupported} for one without a tokenizer.
Json bench_grammar_steps(const models::ModelOptions& model, const GrammarStepsOptions& bench, const Log& log);

}  // namespace godwit::cli
