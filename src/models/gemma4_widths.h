// The widths that Gemma 4 files disagree about by default, held against the shapes of the tensors.
#pragma once

#include "checkpoint/config.h"
#include "checkpoint/weight_scope.h"
#include "models/gemma4_plan.h"

namespace godwit::models {

// Where the config does not say whether shared layers double their MLP, the tensors do. Error{corrupt_file}
// naming the tensor, its width and what the config says of it: MLP, heads of keys, inputs by layer.
void settle_gemma4_widths(const checkpoint::WeightScope& root, const checkpoint::Config& config,
                          Gemma4Plan& plan);

// Rows of the table of inputs by layer: at least the vocabulary, or Error{corrupt_file}. The vocabulary where
// there is no table.
int gemma4_layer_vocabulary(const checkpoint::WeightScope& root, const checkpoint::Config& config);

}  // namespace godwit::models
