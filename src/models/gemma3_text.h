// The graph of Gemma 3's text decoder, which its multimodal files hold, too.
#pragma once

#include "models/dense.h"

namespace godwit::models {

DenseSpec gemma3_text_spec(const checkpoint::Config& config);

}  // namespace godwit::models
