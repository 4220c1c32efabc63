// Grammars under which a model writes calls of tools in its own format, with arguments that the tools' schemas allow. Lark
// in the dialect of llguidance: special tokens by id, JSON by schema. What such a grammar takes, the parser of the format
// reads as calls.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "text/turn/turn_format.h"

namespace godwit::text {

enum class CallWish {
  forced,  // one call or more and nothing else
  free,    // any text, but what opens a call must become one; arguments of tools that are not strict may be any
};

// What may come in place of the calls that are forced: JSON of this schema. Not in formats whose calls begin as JSON does.
using JsonInstead = std::optional<Json>;
bool may_have_json_instead(const TurnFormat& format);

// `tools` are those that may be called, at least one. Without `is_parallel` there is one call at most. The grammar
// begins behind the reasoning. Error{unsupported} names a format for which there is none; Error{invalid_argument} a strict
// tool, and path and keyword of its schema, that could not be held to.
std::string call_grammar(const TurnFormat& format, std::span<const ToolSpec> tools, CallWish wish, bool is_parallel,
                         const JsonInstead& instead = {});

}  // namespace godwit::text
