// Takes a model's turn apart while it is written: reasoning, content and calls of tools. A push machine fed
// one token at a time; pieces are final, and their texts join to what a parse of the whole turn gives.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/turn/turn_format.h"

namespace godwit::text {

struct TurnPiece {
  enum class Kind {
    reasoning,
    content,
    call,       // a new call: `call`, `id` and the whole `name`
    arguments,  // more of the arguments of `call`, JSON text
  };
  Kind kind = Kind::content;
  int call = 0;  // index among the calls of the turn, from 0
  std::string text = {};
  std::string id = {};
  std::string name = {};
};

struct TurnStart {
  bool is_in_reasoning = false;  // the prompt itself opened the reasoning
  std::uint64_t seed = 0;        // ids of calls follow from it
  bool is_parallel = true;       // false: the turn is over with its first whole call
};

class TurnParser {
 public:
  // The tools are those of the request: formats without types in the text take them from the schemas.
  TurnParser(const TurnFormat& format, std::span<const ToolSpec> tools, const TurnStart& start);

  // One token and the text that became certain with it; id -1: text alone.
  std::vector<TurnPiece> add(int id, std::string_view text);
  // What was held back, at the end of the turn.
  std::vector<TurnPiece> finish();
  // Whether the newest token belonged to the reasoning.
  bool is_in_reasoning() const { return false; }
  // Whether nothing more is wanted of the turn.
  bool is_over() const { return false; }
};

}  // namespace godwit::text
