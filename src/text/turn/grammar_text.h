// Lark text under construction: named rules, and the pieces that several formats share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/turn/turn_format.h"

namespace godwit::text {

class GrammarText {
 public:
  explicit GrammarText(const TurnFormat& format) : format_(format) {}

  // Adds `name: body`; names are used once.
  void rule(std::string_view name, std::string_view body);
  bool has_rule(std::string_view name) const;
  std::string new_rule(std::string_view stem, std::string_view body);  // returns its name
  // The marker as the vocabulary has it: a special token, or text.
  std::string marker(std::string_view text) const;
  // Whether the marker begins with a special token, which free text never holds.
  bool is_special(std::string_view text) const;
  // Text up to `closer` and the closer itself.
  std::string text_to(std::string_view closer);
  std::string json(const Json& schema) const { return "%json " + dump_json(schema); }
  std::string str() const;

 private:
  const TurnFormat& format_;
  std::vector<std::string> rules_;
  std::vector<std::pair<std::string, std::string>> texts_;  // closer and rule
  int count_ = 0;
};

std::string lark_string(std::string_view text);
std::string lark_regex_escaped(std::string_view text);
std::string alternatives(const std::vector<std::string>& bodies);  // in parentheses

}  // namespace godwit::text
