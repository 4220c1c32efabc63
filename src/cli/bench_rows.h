// Rows that benches decode: steps of the native executor without an engine around it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "cache/state.h"
#include "models/model_bundle.h"

namespace godwit::cli {

// Throws Error{unsupported} naming the flag for a model that is not open in native mode.
void need_native(const models::ModelBundle& model, std::string_view flag);

// One step over `rows`, `count` tokens of each. The greedy choices are looked for as an engine would, unless the tokens
// are those of a prompt.
void step_rows(const models::ModelBundle& model, std::span<cache::Row> rows, int count, bool is_prompt = false);

// `count` rows of `prompt` tokens each.
std::vector<cache::Row> prompted_rows(const models::ModelBundle& model, int count, int prompt);

}  // namespace godwit::cli
