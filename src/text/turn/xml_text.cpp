#include "text/turn/xml_text.h"

#include <array>
#include <charconv>

#include "text/utf8.h"

namespace godwit::text {
namespace {

constexpr std::string_view kCdataEnd = "]]>";
constexpr std::size_t kMaxEntity = 10;

Match followed(const TurnInput& in, std::size_t at, std::span<const std::string_view> tags) {
  const auto gap = in.space(at);
  if (!gap) return Match::maybe;
  if (at + *gap == in.rest().size()) return Match::yes;  // the answer ends here
  Match best = Match::no;
  for (const std::string_view tag : tags) {
    const Match match = in.at(tag, at + *gap);
    if (match == Match::yes) return match;
    if (match == Match::maybe) best = match;
  }
  return best;
}

std::optional<std::string> entity(std::string_view name) {
  static constexpr std::array<std::array<std::string_view, 2>, 5> kNames = {
      {{"lt", "<"}, {"gt", ">"}, {"amp", "&"}, {"quot", "\""}, {"apos", "'"}}};
  for (const auto& [known, character] : kNames)
    if (name == known) return std::string(character);
  if (!name.starts_with('#')) return std::nullopt;
  const bool is_hex = name.size() > 1 && (name[1] == 'x' || name[1] == 'X');
  const std::string_view number = name.substr(is_hex ? 2 : 1);
  std::uint32_t code = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), code, is_hex ? 16 : 10);
  const bool is_character = code < 0x110000 && (code < 0xD800 || code > 0xDFFF);
  if (error != std::errc() || end != number.data() + number.size() || !is_character) return std::nullopt;
  std::string out;
  append_utf8(out, static_cast<char32_t>(code));
  return out;
}

}  // namespace

XmlValueEnd find_value_end(const TurnInput& in, const XmlCallSyntax& syntax, bool is_cdata) {
  const std::string_view text = in.rest();
  const std::string_view closer = is_cdata ? kCdataEnd : std::string_view(syntax.value_close);
  const std::array<std::string_view, 1> behind_cdata = {syntax.value_close};
  const std::array<std::string_view, 3> behind_value = {syntax.key_open, syntax.call_close,
                                                        syntax.section_close.text};
  const std::array<std::string_view, 1> behind_call = {syntax.section_close.text};
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '<' && text[at] != closer.front()) continue;
    Match match = in.at(closer, at);
    if (match == Match::yes && is_cdata) {
      match = followed(in, at + closer.size(), behind_cdata);
      if (match == Match::yes) {
        const std::size_t end = at + closer.size() + *in.space(at + closer.size());
        return {at, std::min(end + syntax.value_close.size(), text.size()) - at};
      }
    } else if (match == Match::yes) {
      match = followed(in, at + closer.size(), behind_value);
      if (match == Match::yes) return {at, closer.size()};
    }
    if (match == Match::maybe) return {at, std::nullopt};
    if (is_cdata || syntax.section_close.text.empty()) continue;
    match = in.at(syntax.call_close, at);  // the value's own closer was forgotten
    if (match == Match::yes) match = followed(in, at + syntax.call_close.size(), behind_call);
    if (match == Match::maybe) return {at, std::nullopt};
    if (match == Match::yes) return {at, 0};
  }
  return {text.size(), std::nullopt};
}

std::size_t decode_entities(std::string& text, bool is_last) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t amp = std::min(text.find('&', at), text.size());
    out.append(text, at, amp - at);
    at = amp;
    if (at == text.size()) break;
    const std::size_t end = text.find(';', at);
    if (end == std::string::npos && text.size() - at <= kMaxEntity && !is_last) break;
    const auto character = end == std::string::npos || end - at > kMaxEntity
                               ? std::nullopt
                               : entity(std::string_view(text).substr(at + 1, end - at - 1));
    out += character ? *character : "&";
    at = character ? end + 1 : at + 1;
  }
  text = std::move(out);
  return at;
}

std::string unquoted(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \n\r\t\"'");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \n\r\t\"'") - first + 1));
}

std::string xml_name(std::string_view text) {
  std::string name = unquoted(text);
  return name.find_first_of(" \n\r\t{}[]()<>\"'`") == std::string::npos ? name : std::string();
}

}  // namespace godwit::text
