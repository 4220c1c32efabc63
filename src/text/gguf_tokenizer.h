// The tokenizer.json that the tokenizer metadata of a GGUF stands for. Internal to this module.
#pragma once

#include <string>
#include <string_view>

#include "text/gguf_vocabulary.h"

namespace godwit::text {

// Throws Error{unsupported} for a model or pre-tokenizer that is not known and Error{corrupt_file} for lists
// that do not fit each other; both name `origin` and the value.
std::string tokenizer_json_of(const GgufVocabulary& vocabulary, std::string_view origin);

}  // namespace godwit::text
