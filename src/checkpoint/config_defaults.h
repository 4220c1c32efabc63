// What a family means by a key that its config.json leaves out. Data only: the parser knows no family.
#pragma once

#include <string_view>

#include "base/json.h"

namespace godwit::checkpoint {

// "mistral" -> "llama", ...; a type without an alias maps to itself.
std::string_view remapped_model_type(std::string_view model_type);

// The defaults of a model type (after the remap); an empty object when it has none of its own.
Json config_defaults(std::string_view model_type);

}  // namespace godwit::checkpoint
