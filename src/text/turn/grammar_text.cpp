#include "text/turn/grammar_text.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "text/turn/literal_reader.h"
#include "text/turn/tool_formats.h"

namespace godwit::text {

std::string lark_string(std::string_view text) { return json_string(text); }

std::string lark_regex_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\/.+*?()[]{}|^$-&~#\"").find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out;
}

std::string alternatives(const std::vector<std::string>& bodies) {
  return fmt::format("({})", fmt::join(bodies, " | "));
}

void GrammarText::rule(std::string_view name, std::string_view body) {
  rules_.push_back(fmt::format("{}: {}", name, body));
}

bool GrammarText::has_rule(std::string_view name) const {
  return std::ranges::any_of(rules_, [name](const std::string& rule) {
    return rule.starts_with(name) && std::string_view(rule).substr(name.size()).starts_with(':');
  });
}

std::string GrammarText::new_rule(std::string_view stem, std::string_view body) {
  std::string name = fmt::format("{}_{}", stem, count_++);
  rule(name, body);
  return name;
}

bool GrammarText::is_special(std::string_view text) const {
  return std::ranges::find(format_.hidden_tokens, marker_of(format_, text).id) != format_.hidden_tokens.end();
}

std::string GrammarText::marker(std::string_view text) const {
  if (text.empty()) return "";
  if (!is_special(text)) return lark_string(text);
  const int id = marker_of(format_, text).id;
  const std::string_view rest = text.substr(format_.token_texts.at(id).size());
  return fmt::format("<[{}]>{}", id, rest.empty() ? "" : " " + lark_string(rest));
}

std::string GrammarText::text_to(std::string_view closer) {
  for (const auto& [known, name] : texts_)
    if (known == closer) return name;
  const std::string name = fmt::format("text_{}", texts_.size());
  if (is_special(closer))
    rule(name, fmt::format("/(?s:.*)/ {}", marker(closer)));
  else
    rules_.push_back(fmt::format("{}[suffix={}]: /(?s:.*)/", name, lark_string(closer)));
  texts_.emplace_back(closer, name);
  return name;
}

std::string GrammarText::str() const { return fmt::format("{}\n", fmt::join(rules_, "\n")); }

}  // namespace godwit::text
