// The table of verbs: one line each in verbs.cpp.
#pragma once

#include <span>

#include "cli/command.h"

namespace godwit::cli {

std::span<const AddVerb> verbs();

}  // namespace godwit::cli
