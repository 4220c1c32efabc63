// The table of tool formats: how one is known, and how its calls are read.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "text/turn/call_reader.h"

namespace godwit::text {

// The marker with the token of the vocabulary that it begins with, if there is one.
Marker marker_of(const TurnFormat& format, std::string_view text);

std::vector<CallOpener> call_openers(const TurnFormat& format);
// Closers that models write once more behind a call.
std::vector<std::string_view> stray_closers(ToolFormat format);
// All texts of a format that may be tokens.
std::vector<std::string_view> marker_texts(ToolFormat format);
CallIds call_ids(ToolFormat format);

std::optional<ToolFormat> tool_format_named(std::string_view name);
// The format that the template's text shows; `none` when it shows none.
ToolFormat tool_format_of(std::string_view template_source);

}  // namespace godwit::text
