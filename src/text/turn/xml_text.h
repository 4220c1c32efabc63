// Where a plain text value ends, and what its characters stand for.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "text/turn/turn_input.h"
#include "text/turn/xml_calls.h"

namespace godwit::text {

struct XmlValueEnd {
  std::size_t at;                     // text before is the value's
  std::optional<std::size_t> closer;  // the size of what closes it at `at`; nullopt: nothing yet
};
// A closer counts where one of our tags or the end of the answer follows: a value may hold the same text.
XmlValueEnd find_value_end(const TurnInput& in, const XmlCallSyntax& syntax, bool is_cdata);

// &lt; &gt; &amp; &quot; &apos; and numbers. Returns how many bytes of `text` were read; less than all of it where
// an entity may go on, unless this `is_last`.
std::size_t decode_entities(std::string& text, bool is_last);

// Without space and quotes around it; empty where it can be no name.
std::string xml_name(std::string_view text);
std::string unquoted(std::string_view text);

}  // namespace godwit::text
