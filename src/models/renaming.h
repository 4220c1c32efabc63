// Tensor names of one family in the graph's terms.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/dialect.h"

namespace godwit::models {

// A function that replaces whole dotted parts of a name: {"transformer.h", "model.layers"} turns
// "transformer.h.3.ln_1.weight" into "model.layers.3.ln_1.weight". From left to right, at each part the first spelling
// that fits. Null where there are no spellings.
std::function<std::string(std::string_view)> renaming(std::vector<checkpoint::Spelling> spellings);

}  // namespace godwit::models
