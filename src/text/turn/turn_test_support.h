// What the tests of turns share: a turn put together again, and the same turn in pieces.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/turn/turn_parser.h"

namespace godwit::text::turn_test {

struct Call {
  std::string name, arguments, id;
  bool operator==(const Call&) const = default;
};

struct Turn {
  std::string reasoning, content;
  std::vector<Call> calls;
  bool operator==(const Turn&) const = default;
};

inline void PrintTo(const Turn& turn, std::ostream* out) {
  *out << "reasoning " << Json(turn.reasoning).dump(-1, ' ', false, Json::error_handler_t::replace) << ", content "
       << Json(turn.content).dump(-1, ' ', false, Json::error_handler_t::replace);
  for (const Call& call : turn.calls) *out << ", " << call.name << " " << call.arguments << " (" << call.id << ")";
}

// Puts pieces together as an SDK does: by index, and every rule of the stream checked.
inline void collect(Turn& turn, const std::vector<TurnPiece>& pieces) {
  for (const TurnPiece& piece : pieces) {
    switch (piece.kind) {
      case TurnPiece::Kind::reasoning: turn.reasoning += piece.text; break;
      case TurnPiece::Kind::content: turn.content += piece.text; break;
      case TurnPiece::Kind::call:
        EXPECT_EQ(piece.call, static_cast<int>(turn.calls.size()));
        EXPECT_FALSE(piece.id.empty());
        EXPECT_FALSE(piece.name.empty());
        turn.calls.push_back({piece.name, "", piece.id});
        break;
      case TurnPiece::Kind::arguments:
        ASSERT_EQ(piece.call, static_cast<int>(turn.calls.size()) - 1);
        turn.calls.back().arguments += piece.text;
    }
  }
}

inline Turn parse(const TurnFormat& format, std::span<const ToolSpec> tools, std::span<const std::string> pieces,
                  TurnStart start = {}) {
  TurnParser parser(format, tools, start);
  Turn turn;
  for (const std::string& piece : pieces) collect(turn, parser.add(-1, piece));
  collect(turn, parser.finish());
  for (const Call& call : turn.calls) EXPECT_TRUE(Json::accept(call.arguments)) << call.arguments;
  return turn;
}

inline Turn parse_whole(const TurnFormat& format, std::span<const ToolSpec> tools, const std::string& text,
                        TurnStart start = {}) {
  return parse(format, tools, std::vector<std::string>{text}, start);
}

inline std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> out;
  for (const char c : text) {
    if (out.empty() || (static_cast<unsigned char>(c) & 0xC0) != 0x80) out.emplace_back();
    out.back() += c;
  }
  return out;
}

inline std::vector<std::string> random_pieces(const std::vector<std::string>& characters, std::mt19937& random) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < characters.size();) {
    out.emplace_back();
    for (unsigned left = 1 + random() % 9; left > 0 && at < characters.size(); --left) out.back() += characters[at++];
  }
  return out;
}

// The parse of the whole text, after the same came of it character by character and in random pieces.
inline Turn parse_every_way(const TurnFormat& format, std::span<const ToolSpec> tools, const std::string& text,
                            std::mt19937& random, TurnStart start = {}) {
  const Turn whole = parse_whole(format, tools, text, start);
  const auto letters = characters(text);
  EXPECT_EQ(parse(format, tools, letters, start), whole) << "by characters: " << text;
  const auto pieces = random_pieces(letters, random);
  EXPECT_EQ(parse(format, tools, pieces, start), whole)
      << Json(pieces).dump(-1, ' ', false, Json::error_handler_t::replace);
  return whole;
}

inline std::vector<ToolSpec> tools() {
  const Json set = Json::parse(R"({"type": "object", "properties": {
    "text": {"type": "string"}, "count": {"type": "integer"}, "ratio": {"type": "number"}, "on": {"type": "boolean"},
    "list": {"type": "array", "items": {"type": "string"}}, "map": {"type": "object"},
    "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "unit": {"enum": ["c", "f"]},
    "nothing": {"type": "null"}, "mode": {"$ref": "#/$defs/mode"}},
    "$defs": {"mode": {"type": "string"}}})");
  const Json none = Json::parse(R"({"type": "object", "properties": {}})");
  return {{.name = "set", .description = "sets", .parameters = set}, {.name = "f", .parameters = none},
          {.name = "g", .parameters = none}};
}

inline TurnFormat format_of(ToolFormat tools) {
  return {.tools = tools, .reasoning_open = "<think>", .reasoning_close = "</think>"};
}

}  // namespace godwit::text::turn_test
