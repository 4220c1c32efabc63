// The list of models in Anthropic's shape.
#pragma once

#include <string>
#include <vector>

#include "serve/model_directory.h"

namespace godwit::serve {

Json anthropic_model_json(const ModelEntry& entry, const std::string& name);
// Every name of every model, on one page.
Json anthropic_model_list(const std::vector<ModelEntry>& models);

}  // namespace godwit::serve
