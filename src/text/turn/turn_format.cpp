#include "text/turn/turn_format.h"

namespace godwit::text {

TurnFormat turn_format_of(std::string_view, const Tokenizer&) { return {}; }

}  // namespace godwit::text
