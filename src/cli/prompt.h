// From flags and standard input to the tokens of a prompt.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "models/model_bundle.h"

namespace godwit::cli {

// "1,2,3". Throws Error{invalid_argument} naming the part that is no number.
std::vector<int> parse_token_list(std::string_view text);

// A whole file, or all of standard input for "-". Throws Error{not_found, io}; invalid_argument for a folder.
std::string read_text(const std::string& path);

// Through the model's chat template, ready for the assistant's turn. Throws Error{unsupported} when there is
// none.
std::vector<int> chat_tokens(const models::ModelBundle& model, const Json& messages);

}  // namespace godwit::cli
