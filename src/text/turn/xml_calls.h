// Calls whose arguments are plain text between tags: Qwen3-Coder, Seed, MiniMax, MiniCPM5, GLM, DeepSeek V3.2. The
// JSON is ours: text arguments stream, others are converted by the tool's schema when they are complete.
#pragma once

#include "text/turn/call_reader.h"

namespace godwit::text {

struct XmlCallSyntax {
  Marker section_open = {}, section_close = {};  // around calls; often forgotten. Empty: none
  Marker call_open = {};                    // what the name follows
  std::string name_end = {};                // behind the name; empty: a line break or a tag, which stays
  std::string call_close = {};
  std::string key_open = {}, key_end = {};       // around an argument's name
  std::string value_open = {};              // behind key_end, attributes aside; empty: nothing
  std::string value_close = {};
  bool strips_newline = false;         // one line break on each side of a value is layout
  bool has_cdata = false;              // <![CDATA[...]]> and entities
};

CallReaderMaker xml_calls(XmlCallSyntax syntax);

}  // namespace godwit::text
