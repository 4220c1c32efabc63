// From a level to its kernels. Not for files built with ISA flags.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/kernel_table.h"

namespace godwit::kernels {

// The kernels of `level`. Throws Error{unsupported} when this machine or this build cannot run it: never
// another level in silence.
// Look it up once and keep the reference: asking the processor takes tens of microseconds on a virtual
// machine.
const KernelTable& kernels_for(Level level);

// "scalar", "avx2", "avx512" or "neon"; anything else is Error{invalid_argument} listing them.
Level level_from_name(std::string_view name);

std::vector<Level> runnable_levels();

}  // namespace godwit::kernels
