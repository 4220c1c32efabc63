// Grammars under which a model writes calls of tools in its own format, with arguments that the tools' schemas allow. Lark
// in the dialect of llguidance: special tokens by id, JSON by schema. What such a grammar takes, the parser of the format
// reads as calls.
#pragma once

#include <span>
#include <string>

#include "text/turn/turn_format.h"

namespace godwit::text {

enum class CallWish {
  forced,  // one call or more and nothing else
  free,    // any text, but what opens a call must become one; arguments of tools that are not strict may be any
};

// `tools` are those that may be called, at least one. Without `is_parallel` there is one call at most. The grammar
// begins behind the reasoning. Error{unsupported} names a format for which there is none.
std::string call_grammar(const TurnFormat& format, std::span<const ToolSpec> tools, CallWish wish, bool is_parallel);

}  // namespace godwit::text
