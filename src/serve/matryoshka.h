// Vectors that were trained to be cut: their first numbers are a vector of fewer dimensions.
#pragma once

#include <vector>

#include "base/json.h"

namespace godwit::serve {

// Whether a model's config says so of this number: "matryoshka_dimensions" lists it, or "is_matryoshka" allows all up to
// `dimensions`.
bool is_matryoshka(const Json& config, int count, int dimensions);

// To length 1; a vector of zeros stays what it is.
void normalize(std::vector<float>& vector);

}  // namespace godwit::serve
