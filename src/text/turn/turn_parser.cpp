#include "text/turn/turn_parser.h"

namespace godwit::text {

TurnParser::TurnParser(const TurnFormat&, std::span<const ToolSpec>, const TurnStart&) {}

std::vector<TurnPiece> TurnParser::add(int, std::string_view text) {
  if (text.empty()) return {};
  return {TurnPiece{.text = std::string(text)}};
}

std::vector<TurnPiece> TurnParser::finish() { return {}; }

}  // namespace godwit::text
