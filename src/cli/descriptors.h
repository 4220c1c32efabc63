// How many descriptors this process may open.
#pragma once

#include <cstddef>

#include "base/log.h"

namespace godwit::cli {

// Raises the soft limit to `wanted`, as far as the hard one lets it, and warns when that is less. Never lowers it.
void allow_descriptors(std::size_t wanted, const Log& log);

}  // namespace godwit::cli
