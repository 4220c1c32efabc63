// Chat templates of families whose files may come without one.
#pragma once

#include <optional>
#include <string_view>

namespace godwit::text {

// By GGUF architecture or model_type; nullopt for a family that has none here (never a guess).
std::optional<std::string_view> builtin_chat_template(std::string_view family);

}  // namespace godwit::text
