// How GGUF files spell Gemma 4.
#pragma once

#include <array>

#include "checkpoint/dialect.h"

namespace godwit::models {

extern const std::array<checkpoint::GgufDialect, 1> kGemma4Gguf;

}  // namespace godwit::models
